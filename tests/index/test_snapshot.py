from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf import Index, InputError
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.storage.layout import IndexLayout


def test_readers_keep_their_snapshot(index, tmp_path, make_documents, contents, a_query):
    reader = Index.open(tmp_path / "my.index")
    before, scores = contents(reader), reader.score(a_query)
    index.add_vectors(make_documents(3, first=10))
    index.delete(["d1"])
    index.merge()
    index.merge(retrain=True)
    assert not (tmp_path / "my.index" / "segment-000001-0000").exists()
    assert reader.generation == 1
    assert contents(reader) == before
    assert np.array_equal(reader.score(a_query), scores)
    reader.reload()
    assert contents(reader) == contents(index)


def test_a_writer_starts_from_the_newest_generation(index, tmp_path, make_documents):
    stale = Index.open(tmp_path / "my.index")
    index.delete(["d1"])
    stale.add_vectors(make_documents(1, first=10))
    assert (stale.generation, stale.num_documents) == (3, 10)


def test_a_generation_replaced_while_it_is_opened(index, tmp_path, monkeypatch):
    """Between reading the manifest and mapping the files a writer merges: the reader gets the new generation."""
    layout = IndexLayout(tmp_path / "my.index")
    index.delete(["d1"])
    once = []
    original = Snapshot.__init__

    def slow(self, layout, manifest):
        if not once:
            once.append(True)
            index.merge()
        original(self, layout, manifest)

    monkeypatch.setattr(Snapshot, "__init__", slow)
    assert Snapshot.open(layout).manifest.generation == 3


def test_readers_opening_while_a_writer_works_see_whole_generations(index, tmp_path, make_documents):
    stop = threading.Event()

    def read() -> set[tuple[int, int]]:
        seen = set()
        while not stop.is_set():
            reader = Index.open(tmp_path / "my.index")
            seen.add((reader.generation, len([reader.doc_id(p) for p in range(reader.num_positions)])))
        return seen

    pool = ThreadPoolExecutor(1)
    reading = pool.submit(read)
    expected = {(1, 10)}
    for step in range(6):
        index.add_vectors(make_documents(1, first=10 + step))
        expected.add((index.generation, index.num_positions))
        index.delete([f"d{step}"])
        expected.add((index.generation, index.num_positions))
        index.merge()
        expected.add((index.generation, index.num_positions))
    stop.set()
    assert reading.result() <= expected
    pool.shutdown()


def test_a_position_outside_is_refused(index):
    for position in (-1, 10):
        with pytest.raises(InputError, match=f"position {position} is not in the index"):
            index.doc_id(position)


def test_lists_name_the_documents_of_each_centroid(index):
    segment = index.segments[0]
    for code in range(index.codec.num_centroids):
        expected = [
            document
            for document in range(len(segment))
            if code in segment.columns["codes"][segment.offsets[document] : segment.offsets[document + 1]]
        ]
        assert np.flatnonzero(segment.documents_with_any(np.array([code]))).tolist() == expected
        documents, starts = segment.postings()
        assert documents[starts[code] : starts[code + 1]].tolist() == expected
