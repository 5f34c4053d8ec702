"""What HTTP costs: throughput and latency against the same searches in this process, overload, memory.

    python benchmarks/server.py my.index --seconds 10

Everything is measured over loopback against a server in a process of its own, interleaved with searches in this
process; figures are ratios, since other load on the machine changes both sides.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from colbert_prf import Index, Searcher
from colbert_prf.demo import QUESTIONS

WAITING = 16


def resident_megabytes(process_id: int) -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Load:
    """Requests from many clients at once: the times of those accepted, and of those refused."""

    def __init__(self, address: str, body: dict) -> None:
        self.address = address
        self.body = body

    async def run(self, clients: int, seconds: float, pause: float = 0.0) -> tuple[list[float], list[float], int]:
        accepted, refused, wrong = [], [], 0
        deadline = time.perf_counter() + seconds

        async def one(http: httpx.AsyncClient) -> None:
            nonlocal wrong
            while (began := time.perf_counter()) < deadline:
                response = await http.post(self.address, json=self.body)
                taken = time.perf_counter() - began
                if response.status_code == 200:
                    accepted.append(taken)
                elif response.status_code == 503:
                    refused.append(taken)
                    await asyncio.sleep(pause)
                else:
                    wrong += 1

        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(limits=limits, timeout=60) as http:
            await asyncio.gather(*(one(http) for _ in range(clients)))
        return accepted, refused, wrong


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def throughput(searcher: Searcher, address: str, rounds: int, batch: int, threads: int) -> float:
    """Queries per second over HTTP, in batches, by those in this process on as many threads; the median of rounds."""
    queries = [QUESTIONS[number % len(QUESTIONS)] for number in range(batch)]
    body = {"queries": queries, "k": 10}
    ratios = []
    with ThreadPoolExecutor(threads) as pool, httpx.Client(timeout=600) as http:

        def over_http(_: int) -> None:
            http.post(address, json=body).raise_for_status()

        def here(_: int) -> None:
            for query in queries:
                [hit.text for hit in searcher.search(query, 10, threads=1)]

        for _ in range(rounds):
            times = []
            for function in (here, over_http):
                began = time.perf_counter()
                list(pool.map(function, range(2 * threads)))
                times.append(time.perf_counter() - began)
            ratios.append(times[0] / times[1])
    return statistics.median(ratios)


def added_latency(searcher: Searcher, address: str, rounds: int) -> tuple[float, float]:
    """Medians of one search in this process and of one over HTTP, in turn, in milliseconds."""
    here, there = [], []
    with httpx.Client(timeout=60) as http:
        for number in range(rounds):
            query = QUESTIONS[number % len(QUESTIONS)]
            began = time.perf_counter()
            [hit.text for hit in searcher.search(query, 10, threads=1)]
            here.append(time.perf_counter() - began)
            began = time.perf_counter()
            http.post(address, json={"query": query, "k": 10}).raise_for_status()
            there.append(time.perf_counter() - began)
    return 1000 * statistics.median(here), 1000 * statistics.median(there)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--requests", type=int, default=2000, help="over which memory is watched")
    given = parser.parse_args()
    command = "from colbert_prf.cli import main; main()"
    options = ["--port", "0", "--quiet", "--workers", str(given.threads), "--waiting", str(WAITING)]
    server = subprocess.Popen(
        [sys.executable, "-c", command, "serve", f"x={given.index}", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        base = server.stdout.readline().strip()
        while httpx.get(f"{base}/ready").status_code != 200:
            time.sleep(0.1)
        report(given, server.pid, f"{base}/v1/indexes/x/search")
    finally:
        server.terminate()
        server.wait()


def report(given: argparse.Namespace, process_id: int, address: str) -> None:
    index = Index.open(given.index)
    index.encoder.threads = 1
    searcher = Searcher(index)
    searcher.search(QUESTIONS[0])
    here, there = added_latency(searcher, address, 40 * given.rounds)
    result = {
        "throughput over HTTP / in process": round(throughput(searcher, address, given.rounds, 32, given.threads), 3),
        "median ms in process": round(here, 2),
        "median ms over HTTP": round(there, 2),
        "added ms": round(there - here, 2),
    }
    load = Load(address, {"query": QUESTIONS[0], "k": 10})
    capacity = given.threads + WAITING
    first, refused, wrong = asyncio.run(load.run(capacity, given.seconds))
    result |= {"p99 ms at capacity": round(1000 * percentile(first, 0.99), 1), "refused at capacity": len(refused)}
    over, refused, wrong_over = asyncio.run(load.run(4 * capacity, given.seconds, pause=1.0))
    result |= {
        "p99 ms of accepted at 4 times capacity": round(1000 * percentile(over, 0.99), 1),
        "p99 / p99 at capacity": round(percentile(over, 0.99) / percentile(first, 0.99), 2),
        "refused at 4 times capacity": len(refused),
        "p99 ms of refusals": round(1000 * percentile(refused, 0.99), 1),
        "wrong answers": wrong + wrong_over,
    }
    before = resident_megabytes(process_id)
    with httpx.Client(timeout=60) as http:
        for number in range(given.requests):
            http.post(address, json={"query": QUESTIONS[number % 4], "k": 10, "feedback": {}}).raise_for_status()
    result |= {
        "memory MB before": round(before),
        f"memory MB after {given.requests} requests": round(resident_megabytes(process_id)),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
