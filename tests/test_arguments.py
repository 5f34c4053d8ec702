"""Wrong arguments to all kinds of index: one clear error each, and no folder is left that cannot be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, Index, InputError, MemoryIndex
from colbert_prf.baselines import BM25, LexicalIndex, SingleVector
from colbert_prf.baselines.lexical import Analyzer
from colbert_prf.baselines.single_vector import VectorEncoder, VectorIndex

DIM = 4
UNITS = np.eye(DIM, dtype=np.float32)
HUGE = 10**30


def document(*token_ids: int) -> EncodedDocument:
    return EncodedDocument(np.array(token_ids, np.int32), UNITS[list(token_ids)])


VECTORS = [("a", document(1, 2)), ("b", document(3))]
TEXTS = [("a", "1 2"), ("b", "3")]
EMPTY = EncodedDocument(np.empty(0, np.int32), np.empty((0, 0), np.float32))


class Counts(VectorEncoder):
    """The vector of a text of numbers counts each of them."""

    name = "counts"

    def encode_query(self, text):
        return np.bincount([int(word) for word in text.split()], minlength=DIM).astype(np.float32)

    def encode_documents(self, texts, *, progress=None):
        for text in texts:
            yield self.encode_query(text)[None]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("indexes")
    analyzer = Analyzer(stop_words="none", stemmer="none")
    return {
        "index": Index.create_from_vectors(folder / "index", VECTORS, vocabulary_size=9, progress=False),
        "memory": MemoryIndex.create_from_vectors(VECTORS),
        "lexical": LexicalIndex.create(folder / "lexical", TEXTS, analyzer=analyzer, progress=False),
        "single": VectorIndex.create(folder / "single", TEXTS, encoder=Counts(), progress=False),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 4.0}, r"bits must be a whole number, found 4\.0"),
        ({"bits": "4"}, "bits must be a whole number, found '4'"),
        ({"bits": None}, "bits must be a whole number, found None"),
        ({"bits": HUGE}, "bits must be one of"),
        ({"vocabulary_size": 9.5}, r"vocabulary_size must be a whole number, found 9\.5"),
        ({"vocabulary_size": HUGE}, "vocabulary_size must be from 1 to"),
        ({"vocabulary_size": 0}, "vocabulary_size must be at least 1, found 0"),
        ({"special_ids": 3}, "special_ids must be token ids, such as"),
        ({"special_ids": ["x"]}, "a special token id must be a whole number, found 'x'"),
        ({"special_ids": [-1]}, "a special token id must be at least 0, found -1"),
        ({"seed": 1.5}, r"seed must be a whole number, found 1\.5"),
        ({"seed": None}, "seed must be a whole number, found None"),
        ({"total": "9"}, "total must be a whole number, found '9'"),
        ({"codec": "x"}, "codec must be the codec of another index, such as index.codec, found 'x'"),
        ({"texts": None}, "texts must be True or False, found None"),
        ({"fingerprint": 3}, "fingerprint must be a string, found 3"),
    ],
    ids=str,
)
def test_settings_of_the_wrong_type_make_no_folder(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        Index.create_from_vectors(tmp_path / "i", VECTORS, progress=False, **options)
    assert not (tmp_path / "i").exists()


def test_passages_are_given_as_passages(tmp_path):
    with pytest.raises(InputError, match=r"passages must be Passages\(\.\.\.\), such as Passages\(180\), found 180"):
        Index.create(tmp_path / "i", TEXTS, passages=180, progress=False)


def test_numbers_of_numpy_are_whole_numbers(tmp_path):
    index = Index.create(tmp_path / "i", TEXTS, bits=np.int64(4), seed=np.uint8(7), progress=False)
    assert (index.bits, Index.open(index.path).bits) == (4, 4)


@pytest.mark.parametrize("wrong", [None, 3])
def test_documents_must_be_iterable(tmp_path, indexes, wrong):
    calls = [
        lambda: Index.create(tmp_path / "i", wrong, progress=False),
        lambda: MemoryIndex.create(wrong, progress=False),
        lambda: LexicalIndex.create(tmp_path / "i", wrong, progress=False),
        lambda: VectorIndex.create(tmp_path / "i", wrong, encoder=Counts(), progress=False),
        lambda: Index.create_from_vectors(tmp_path / "i", wrong, progress=False),
        lambda: indexes["index"].add_vectors(wrong),
        lambda: indexes["lexical"].upsert(wrong),
    ]
    for call in calls:
        with pytest.raises(InputError, match=f"documents must be an iterable of tuples .*, found {wrong}"):
            call()
    assert not (tmp_path / "i").exists()


def test_a_document_without_vectors_is_named(indexes):
    with pytest.raises(InputError, match="document 'x' must be an EncodedDocument, found NoneType"):
        indexes["index"].add_vectors([("x", None)])


@pytest.mark.parametrize("path", [None, 3, b"my.index"])
def test_a_path_is_a_string_or_a_path(path):
    for call in (
        Index.open,
        LexicalIndex.open,
        VectorIndex.open,
        lambda path: Index.create_from_vectors(path, VECTORS),
    ):
        with pytest.raises(InputError, match="a path must be a string or a Path, found"):
            call(path)


@pytest.mark.parametrize("kind", ["index", "lexical", "single"])
@pytest.mark.parametrize(
    ("doc_ids", "message"),
    [
        (None, r"give document ids, such as \['d1'\], found None"),
        ([3], "a document id is a string, found 3"),
        ([["a"]], r"a document id is a string, found \['a'\]"),
        (["a", "x"], "the index has no document 'x'"),
    ],
)
def test_wrong_ids_delete_nothing(indexes, kind, doc_ids, message):
    with pytest.raises(InputError, match=message):
        indexes[kind].delete(doc_ids)
    assert indexes[kind].num_documents == 2


@pytest.mark.parametrize("kind", ["index", "memory", "single"])
@pytest.mark.parametrize(
    ("position", "message"),
    [
        (HUGE, f"position {HUGE} is not in the index, which has 2, from 0 on"),
        (2, "position 2 is not in the index"),
        (-1, "position -1 is not in the index, which has 2, from 0 on"),
        (1.5, r"a position must be a whole number, found 1\.5"),
        (None, "a position must be a whole number, found None"),
    ],
)
def test_positions_are_those_of_the_index(indexes, kind, position, message):
    for read in (indexes[kind].text, indexes[kind].doc_id):
        with pytest.raises(InputError, match=message):
            read(position)


@pytest.mark.parametrize("kind", ["index", "memory"])
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ([[1.0]], "a query must be an EncodedQuery, found list"),
        (EncodedQuery(np.zeros(1, np.int32), np.ones((1, 1), np.float32)), "vectors of dim 1, the index of dim 4"),
    ],
)
def test_scores_need_an_encoded_query_of_the_same_dim(indexes, kind, query, message):
    with pytest.raises(InputError, match=message):
        indexes[kind].score(query)


@pytest.mark.parametrize("token_ids", [None, "x", 1.5, [HUGE]])
def test_token_ids_are_whole_numbers(indexes, token_ids):
    with pytest.raises(InputError, match="token ids are whole numbers, found"):
        indexes["index"].document_frequency(token_ids)


@pytest.mark.parametrize("seed", ["x", 1.5, -1, None])
def test_a_codec_is_trained_again_with_a_whole_seed(indexes, seed):
    with pytest.raises(InputError, match="seed must be"):
        indexes["index"].merge(retrain=True, seed=seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"doc_ids": [1, "b"]}, "a document id must be a string, found 1"),
        ({"documents": [document(1), UNITS]}, "document 'b' must be an EncodedDocument, found ndarray"),
        ({"documents": [EMPTY, EMPTY]}, r"documents must have the shape \(num_tokens, dim\).*found dim 0"),
        ({"texts": ["x", 3]}, "the text of document 'b' must be a string, found int"),
        ({"metadata": [{}, 3]}, "the metadata of document 'b' must be a mapping, found int"),
    ],
)
def test_what_a_memory_index_refuses(arguments, message):
    good: dict[str, Any] = {"doc_ids": ["a", "b"], "documents": [document(1), document(2)]}
    with pytest.raises(InputError, match=message):
        MemoryIndex(**{**good, **arguments})


def test_single_vectors_near_a_list_are_those_near_an_array(indexes):
    query = [1.0, 0.0, 0.0, 2.0]
    expected = indexes["single"].nearest(np.array(query, np.float32), 2)
    for k in (2, HUGE):
        positions, similarities = indexes["single"].nearest(query, k, exact=False, ef=HUGE)
        assert (positions.tolist(), similarities.tolist()) == (expected[0].tolist(), expected[1].tolist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": -1}, "k must be at least 0, found -1"),
        ({"k": 1.5}, r"k must be a whole number, found 1\.5"),
        ({"ef": "x"}, "ef must be a whole number, found 'x'"),
        ({"query": None}, r"the query has a vector of shape \(\), the index of dim 4"),
        ({"query": np.full(DIM, np.nan)}, "the query holds a NaN or an infinity"),
    ],
)
def test_what_a_search_for_single_vectors_refuses(indexes, arguments, message):
    with pytest.raises(InputError, match=message):
        indexes["single"].nearest(**{"query": UNITS[0], "k": 1, **arguments})


@pytest.mark.parametrize("k", [0, -1, 1.5, "x", None, [1]])
def test_baselines_find_a_whole_number_of_documents(indexes, k):
    for system in (BM25(indexes["lexical"]), SingleVector(indexes["single"], Counts())):
        with pytest.raises(InputError, match="k must be"):
            system.search("1", k=k)
        assert len(system.search("1", k=HUGE)) >= 1


def test_terms_are_those_of_a_text(indexes):
    with pytest.raises(InputError, match="a text must be a string, found NoneType"):
        BM25(indexes["lexical"]).search(None)


def test_a_failed_build_leaves_no_folder(tmp_path):
    nested: dict[str, Any] = {}
    for _ in range(3000):
        nested = {"a": nested}
    with pytest.raises(InputError, match="the metadata of document 'b' is nested too deep"):
        Index.create_from_vectors(tmp_path / "i", [VECTORS[0], ("b", document(3), nested)], progress=False)
    assert not Path(tmp_path / "i").exists()
