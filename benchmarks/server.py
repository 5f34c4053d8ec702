"""What HTTP costs: throughput and latency against the same searches in this process, overload, memory.

    python benchmarks/server.py my.index --requests 50000

Everything is measured over loopback against a server in a process of its own, in turn with searches in this process;
figures are ratios, since other load on the machine changes both sides. The load comes from `hey`
(`apt-get install hey`).
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from colbert_prf import Index, Searcher
from colbert_prf.demo import QUESTIONS

K = 10
WAITING = 16
"""Searches that may wait: the server's default."""
GROUPS, PER_GROUP = 16, 8
"""`hey` sends in time with its own clock: groups that start one after the other make its load even."""


def resident_megabytes(process_id: int) -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def body(query: str) -> str:
    return json.dumps({"query": query, "k": K})


def hey(address: str, *options: str) -> subprocess.Popen[str]:
    """Start a load: one query again and again."""
    request = ["-m", "POST", "-T", "application/json", "-d", body(QUESTIONS[0])]
    command = ["hey", "-o", "csv", *options, *request, address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answers(*loads: subprocess.Popen[str]) -> dict[int, list[float]]:
    """Milliseconds of the answers of loads, by status."""
    times: dict[int, list[float]] = {}
    for load in loads:
        for row in csv.DictReader(load.communicate()[0].splitlines()):
            times.setdefault(int(row["status-code"]), []).append(1000 * float(row["response-time"]))
    return times


def at_rate(address: str, rate: float, seconds: float) -> dict[int, list[float]]:
    """Send so many requests a second, whatever the server does with them."""
    of_one = rate / (GROUPS * PER_GROUP)
    loads = []
    for _ in range(GROUPS):
        loads.append(hey(address, "-z", f"{seconds}s", "-c", str(PER_GROUP), "-q", f"{of_one:.4f}"))
        time.sleep(1 / of_one / GROUPS)
    return answers(*loads)


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98] if len(values) > 1 else float("nan")


class Connection:
    """One connection to the server, kept."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._path, self._http = parts.path, HTTPConnection(parts.netloc)

    def search(self, query: str) -> list[str]:
        """The ids of the hits."""
        self._http.request("POST", self._path, body(query), {"Content-Type": "application/json"})
        answer = json.loads(self._http.getresponse().read())
        return [hit["doc_id"] for hit in answer["results"][0]["hits"]]


def throughput(searcher: Searcher, address: str, given: argparse.Namespace) -> tuple[float, float]:
    """Searches per second over HTTP, one in each request, and over those of `search_many`; medians of rounds."""
    rates, ratios = [], []
    for _ in range(given.rounds):
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < given.seconds:
            rankings = searcher.search_many([QUESTIONS[0]] * 100, K, threads=given.threads)
            count += sum(len([hit.text for hit in ranking]) for ranking in rankings) // K
        here = count / (time.perf_counter() - began)
        (times,) = answers(hey(address, "-z", f"{given.seconds}s", "-c", str(4 * given.threads))).values()
        rates.append(len(times) / given.seconds)
        ratios.append(rates[-1] / here)
    return statistics.median(rates), statistics.median(ratios)


def latency(searcher: Searcher, address: str, rounds: int) -> tuple[float, float]:
    """Medians of one search in this process and of one over HTTP, in turn, in milliseconds."""
    here, there, connection = [], [], Connection(address)
    for number in range(rounds):
        query = QUESTIONS[number % len(QUESTIONS)]
        began = time.perf_counter()
        [hit.text for hit in searcher.search(query, K, threads=1)]
        here.append(time.perf_counter() - began)
        began = time.perf_counter()
        connection.search(query)
        there.append(time.perf_counter() - began)
    return 1000 * statistics.median(here), 1000 * statistics.median(there)


def endurance(searcher: Searcher, address: str, process_id: int, given: argparse.Namespace) -> dict[str, object]:
    """Send many requests, compare every answer with that of this process, and look at the memory of the server."""
    expected = {query: searcher.search(query, K).doc_ids for query in QUESTIONS}

    def send(count: int) -> int:
        connection = Connection(address)
        queries = [QUESTIONS[number % len(QUESTIONS)] for number in range(count)]
        return sum(connection.search(query) == expected[query] for query in queries)

    sizes, right, parts = [resident_megabytes(process_id)], 0, 5
    with ThreadPoolExecutor(given.threads) as pool:
        for _ in range(parts):
            right += sum(pool.map(send, [given.requests // parts // given.threads] * given.threads))
            sizes.append(resident_megabytes(process_id))
    sent = given.requests // parts // given.threads * parts * given.threads
    return {
        f"memory MB, every {sent // parts:,} requests": [round(size) for size in sizes],
        "answers lost or wrong": f"{sent - right} of {sent:,}",
    }


def report(given: argparse.Namespace, process_id: int, address: str) -> dict[str, object]:
    index = Index.open(given.index)
    index.encoder.threads = 1
    searcher = Searcher(index)
    searcher.search(QUESTIONS[0])
    here, there = latency(searcher, address, 100 * given.rounds)
    capacity, ratio = throughput(searcher, address, given)
    full, over = (at_rate(address, times * capacity, 2 * given.seconds) for times in (1, 4))
    odd = sum(len(values) for found in (full, over) for status, values in found.items() if status not in (200, 503))
    return {
        "median ms in process": round(here, 2),
        "median ms over HTTP": round(there, 2),
        "added ms": round(there - here, 2),
        "searches per second over HTTP": round(capacity),
        "over HTTP / search_many": round(ratio, 3),
        "at capacity: answered, refused": [len(full.get(200, [])), len(full.get(503, []))],
        "at capacity: p99 ms": round(p99(full[200]), 1),
        "at 4 times capacity: answered, refused": [len(over[200]), len(over[503])],
        "at 4 times capacity: p99 ms of answers": round(p99(over[200]), 1),
        "at 4 times capacity: p99 / p99 at capacity": round(p99(over[200]) / p99(full[200]), 2),
        "at 4 times capacity: p99 ms of refusals": round(p99(over[503]), 1),
        "other answers": odd,
        **endurance(searcher, address, process_id, given),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--requests", type=int, default=2000, help="over which answers and memory are watched")
    given = parser.parse_args()
    if shutil.which("hey") is None:
        sys.exit("this benchmark sends its load with hey, which is not installed; apt-get install hey")
    options = ["--port", "0", "--quiet", "--workers", str(given.threads), "--waiting", str(WAITING)]
    command = [sys.executable, "-m", "colbert_prf", "serve", f"x={given.index}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            base = server.stdout.readline().strip()
            while not ready(base):
                time.sleep(0.1)
            print(json.dumps(report(given, server.pid, f"{base}/v1/indexes/x/search"), indent=2))
        finally:
            server.terminate()


def ready(base: str) -> bool:
    http = HTTPConnection(urlsplit(base).netloc)
    http.request("GET", "/ready")
    return http.getresponse().status == 200


if __name__ == "__main__":
    main()
