"""One small local Ray for all tests of this folder, and a crew that needs none."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from colbert_prf import Encoder, Index
from colbert_prf.distributed.encoding import Job, SliceEncoder, Task
from colbert_prf.distributed.indexing import ClusterBuilder
from colbert_prf.errors import ColbertPrfError
from colbert_prf.index.builder import BuildOptions, create_index
from colbert_prf.index.documents import documents_of_texts
from colbert_prf.index.manifest import SegmentInfo
from colbert_prf.index.model import settings_for

CPUS = 4


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[object]:
    """Ray with four logical CPUs and little memory; `connected()` uses it instead of starting another."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=CPUS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 << 20,
    )
    yield ray
    ray.shutdown()


DOCUMENTS = [
    (f"d{i}", f"Passage {i} tells of goldfish, tanks and {i * 7919 % 1000} banks.", {"n": i} if i % 3 == 0 else {})
    for i in range(60)
]


class CrewOfOne:
    """The work of a crew in this process, without Ray; it notes what it did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def check(self, job: Job) -> None:
        if (fault := SliceEncoder(job).fault) is not None:
            raise fault

    def run(
        self, job: Job, tasks: Iterable[Task], advance: Callable[[int], object]
    ) -> Iterator[tuple[int, SegmentInfo]]:
        encoder = SliceEncoder(job)
        for task in tasks:
            outcome = encoder.outcome(task)
            if isinstance(outcome.result, ColbertPrfError):
                raise outcome.result
            self.done.append(task.name)
            advance(task.num_documents)
            yield outcome.number, outcome.result


def build_here(
    path: Path, encoder: Encoder, crew: CrewOfOne, documents: Iterable[tuple] = DOCUMENTS, **options: Any
) -> Index:
    """Build as `distributed.create_index` does, with another crew."""
    settings = settings_for(encoder, 4, options.pop("texts", True), options.pop("passages", None))
    build_options = BuildOptions(options.pop("codec", None), options.pop("resume", False), False, None, 0)
    make_builder = partial(ClusterBuilder, crew, options.pop("size", 20))
    given = documents_of_texts(documents)
    create_index(path, settings, given, encoder=encoder, options=build_options, make_builder=make_builder)
    return Index.open(path)


@pytest.fixture
def documents() -> list[tuple]:
    return DOCUMENTS


@pytest.fixture
def crew() -> CrewOfOne:
    return CrewOfOne()


@pytest.fixture
def build(encoder) -> Callable[..., Index]:
    return lambda path, crew, *arguments, **options: build_here(path, encoder, crew, *arguments, **options)


@pytest.fixture(scope="session")
def single(tmp_path_factory) -> Index:
    """The same documents, indexed by one machine."""
    return Index.create(tmp_path_factory.mktemp("single") / "my.index", DOCUMENTS, progress=False)
