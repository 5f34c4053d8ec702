"""fast-plaid and xtr-warp-rs on the vectors of the cache, in an environment of their own.

`search.py --peers PYTHON` starts this script with the interpreter of an environment that has both:

    python -m venv peers && peers/bin/pip install torch==2.11.0 'fast-plaid==1.7.0.*' 'xtr-warp-rs==2.1.0.*'

It takes 5 GB, most of it libraries for GPUs, which are not used. The settings are those the packages take by
themselves. Threads are given by the environment, before PyTorch and rayon start, so each number of threads has a
process of its own, which searches the index built before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from latency import CUTOFFS, THREADS, cell, measure, report
from numpy.typing import NDArray
from vectors import Texts, folder_bytes, write_json

PEERS = {
    "fast-plaid-2": ("fast-plaid", 2),
    "fast-plaid-4": ("fast-plaid", 4),
    "xtr-warp-4": ("xtr-warp-rs", 4),
}
"""The package and the bits of each."""

Search = Callable[[Any, int], list[list[tuple[int, float]]]]


def run_peer(
    name: str, python: Path, *, cache: Path, queries: Path, passages: int, repeats: int, workdir: Path
) -> tuple[dict[str, Any], dict[int, Any]]:
    """Build, then search with each number of threads; called by search.py. A step that fails is a RuntimeError.

    An index that is in ``workdir`` from an earlier run, for other queries, is not built again.

    Returns
    -------
    result
        Build seconds, bytes and latencies.
    rankings
        For each cutoff the places of documents, of shape (num_queries, cutoff).
    """
    settings = ["--cache", cache, "--queries", queries, "--index", workdir / name, "--passages", passages]
    command = [python, Path(__file__).resolve(), name, *settings, "--repeats", repeats]
    built = workdir / f"{name}.json"
    if not built.exists():
        report(f"building {name} ...")
        shutil.rmtree(workdir / name, ignore_errors=True)
        workdir.mkdir(parents=True, exist_ok=True)
        write_json(built, _output([*command, "build"], threads=max(THREADS)))
    result = json.loads(built.read_text(encoding="utf-8"))
    for threads in THREADS:
        report(f"timing {name} on {threads} thread{'s' if threads > 1 else ''} ...")
        wanted = ["--rankings", workdir] if threads == THREADS[0] else []
        found = _output([*command, "search", "--threads", threads, *wanted], threads=threads)
        result.setdefault("latency", {}).update(found)
    return result, {cutoff: np.load(workdir / f"{name}.{cutoff}.npy") for cutoff in CUTOFFS}


def _output(command: list[object], *, threads: int) -> dict[str, Any]:
    """Run a step; its last line is JSON."""
    variables = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, str(threads))
    environment.pop("PYTHONPATH", None)
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with code {done.returncode}")
    output: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=PEERS)
    parser.add_argument("step", choices=("build", "search"))
    parser.add_argument("--cache", type=Path, required=True, help="the folder with documents.vectors.npy")
    parser.add_argument("--queries", type=Path, required=True, help="the folder with queries.vectors.npy")
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--passages", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rankings", type=Path, help="where to save SYSTEM.CUTOFF.npy, if wanted")
    arguments = parser.parse_args()
    step = build if arguments.step == "build" else search
    print(json.dumps(step(arguments)))


def build(arguments: argparse.Namespace) -> dict[str, Any]:
    """Build an index; converting the vectors to tensors does not count."""
    import torch

    package, bits = PEERS[arguments.system]
    documents = Texts.load(arguments.cache, "documents").first(arguments.passages)
    tensors = [torch.from_numpy(vectors) for _, _, vectors in documents]
    if package == "fast-plaid":
        from fast_plaid.search import FastPlaid  # type: ignore[import-not-found]

        started = perf_counter()
        FastPlaid(str(arguments.index), device="cpu").create(tensors, nbits=bits)
    else:
        from xtr_warp.search import XTRWarp  # type: ignore[import-not-found]

        started = perf_counter()
        XTRWarp(str(arguments.index)).create(tensors, device="cpu", nbits=bits, show_progress=False)
    seconds = perf_counter() - started
    versions = {name: version(name) for name in (package, "torch")}
    return {"build_seconds": seconds, "bytes": folder_bytes(arguments.index), "versions": versions}


def search(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time every cutoff, and save the rankings if they are wanted."""
    import torch

    torch.set_num_threads(arguments.threads)
    call = opened(arguments.system, arguments.index, arguments.threads)
    queries = [torch.from_numpy(vectors) for _, _, vectors in Texts.load(arguments.queries, "queries")]
    found = {}
    for cutoff in CUTOFFS:
        if arguments.rankings:
            np.save(arguments.rankings / f"{arguments.system}.{cutoff}.npy", rankings(call, queries, cutoff))
        found[cell(cutoff, arguments.threads)] = measure(call, queries, arguments.repeats, cutoff)
    return found


def rankings(call: Search, queries: list[Any], cutoff: int) -> NDArray[np.int64]:
    """The places of the documents found, of shape (num_queries, cutoff), -1 where fewer were found."""
    filled = np.full((len(queries), cutoff), -1, dtype=np.int64)
    for row, query in zip(filled, queries, strict=True):
        places = [place for place, _ in call(query, cutoff)[0]]
        row[: len(places)] = places
    return filled


def opened(system: str, index: Path, threads: int) -> Search:
    """An index ready to search."""
    if PEERS[system][0] == "fast-plaid":
        from fast_plaid.search import FastPlaid

        plaid = FastPlaid(str(index), device="cpu")
        return lambda query, k: plaid.search(query[None], top_k=k, show_progress=False, n_processes=1)
    from xtr_warp.search import XTRWarp

    warp = XTRWarp(str(index)).load(device="cpu")
    return lambda query, k: warp.search(query[None], top_k=k, num_threads=threads, show_progress=False)


if __name__ == "__main__":
    main()
