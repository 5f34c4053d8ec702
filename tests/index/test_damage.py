"""Flipped bits that opening does not see: an error that names the file where they matter, and never a wild read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.errors import IndexFormatError
from colbert_prf.search import candidates

ROUNDS = Path(__file__).parents[1] / "storage" / "damage_rounds.py"
SEGMENT = "segment-000001-0000"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["2", "16", "lexical", "single"])
def test_flipped_bits_never_crash(tmp_path, kind):
    command = [sys.executable, ROUNDS, tmp_path, kind, "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ))
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


def damage(path: Path, name: str, change: Callable[[np.ndarray], object]) -> Path:
    """Change the data of an array in place, and nothing else of its file."""
    file = path / f"{name}.npy"
    content = bytearray(file.read_bytes())
    array = np.load(file)
    start = len(content) - array.nbytes
    change(array)
    content[start:] = array.tobytes()
    file.write_bytes(content)
    return file


def set_last(value: int) -> Callable[[np.ndarray], object]:
    return lambda array: array.__setitem__(-1, value)


@pytest.fixture
def path(index, tmp_path) -> Path:
    """An index of ten documents of which one is deleted."""
    index.delete(["d4"])
    return tmp_path / "my.index"


def test_a_code_without_a_centroid_is_refused_by_everything_that_decodes(path, a_query):
    num_centroids = Index.open(path).codec.num_centroids
    file = damage(path / SEGMENT, "codes", set_last(num_centroids))
    index = Index.open(path)
    searcher = Searcher(index)
    for use in (
        lambda: searcher.search(a_query),
        lambda: searcher.search(a_query, probes=1),
        lambda: searcher.explain(a_query, "d1"),
        lambda: index.score(a_query),
        lambda: index.vectors(0),
    ):
        with pytest.raises(IndexFormatError, match=rf"a code is {num_centroids}, there are .* colbert-prf verify") as e:
            use()
        assert e.value.path == str(file)
    assert index.doc_id(0) == "d0"
    damage(path / SEGMENT, "codes", set_last(num_centroids - 1))
    assert len(Searcher(Index.open(path)).search(a_query)) == 9


@pytest.mark.parametrize("name", ["offsets", "list_offsets"])
def test_an_offset_that_falls_is_refused_at_once(path, name):
    file = damage(path / SEGMENT, name, lambda array: array.__setitem__(1, array[-1] + 1))
    with pytest.raises(IndexFormatError, match="an offset is smaller than the one before it") as caught:
        Index.open(path)
    assert caught.value.path == str(file)


@pytest.mark.parametrize("byte", [10, 0x80])
def test_a_list_that_leads_outside_is_refused(path, a_query, byte, monkeypatch):
    """10 is one more than the last document; 0x80 says that the number goes on."""
    monkeypatch.setattr(candidates, "FEW_ALLOWED", 0)  # or no list is read, because few documents are left
    file = damage(path / SEGMENT, "lists", set_last(byte))
    index = Index.open(path)
    last = int(np.flatnonzero(np.diff(index.segments[0].list_offsets))[-1])
    for use in (
        lambda: Searcher(index).search(a_query, probes=1000),
        lambda: index.segments[0].documents_with_any(np.array([last])),
        lambda: index.snapshot.centroid_frequencies,
    ):
        with pytest.raises(IndexFormatError) as caught:
            use()
        assert caught.value.path == str(file)
    assert len(Searcher(index).search(a_query)) == 9  # without probing the lists are not used


def test_an_id_whose_position_is_outside_is_refused(path):
    file = damage(path / SEGMENT, "id_order", lambda array: array.fill(10))
    with pytest.raises(IndexFormatError, match="position 10 of 10 documents") as caught:
        Index.open(path).positions(["d1"])
    assert caught.value.path == str(file)


def test_deletions_of_another_number_are_refused(path):
    file = damage(path / "deletions-000002", f"{SEGMENT}.deleted", lambda array: array.fill(0))
    with pytest.raises(IndexFormatError, match="expected 1 deleted documents, found 0") as caught:
        Index.open(path)
    assert caught.value.path == str(file)


def test_a_token_that_no_document_has_is_refused(path, a_query):
    file = damage(path / SEGMENT, "token_ids", set_last(50))
    index = Index.open(path)
    for use in (
        lambda: index.token_ids(9),
        lambda: index.snapshot.collection_frequencies,
        lambda: Searcher(index).explain(a_query, "d9"),
        lambda: Searcher(index).search(a_query, feedback=ColbertPRF(feedback_docs=10)),
    ):
        with pytest.raises(IndexFormatError, match=r"a token is 50, the segment has none from \d+ on") as e:
            use()
        assert e.value.path == str(file)
    assert len(index.token_ids(0))


@pytest.mark.parametrize("retrain", [False, True])
def test_merging_does_not_give_damage_a_new_checksum(path, retrain):
    file = damage(path / SEGMENT, "residuals", lambda array: np.bitwise_xor(array, 1, out=array))
    index = Index.open(path)
    with pytest.raises(IndexFormatError, match="the checksum is not the one in the manifest") as caught:
        index.merge(retrain=retrain)
    assert caught.value.path == str(file)
    assert Index.open(path).generation == 2
