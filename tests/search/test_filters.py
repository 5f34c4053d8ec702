"""Filters as data: hand-worked cases, the law that columns give what the definition gives, search over every index."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, InputError, MemoryIndex, Searcher
from colbert_prf.search.candidates import FEW_ALLOWED
from colbert_prf.search.filters import filter_mask, parse_filter
from colbert_prf.storage.fields import Fields

LIBRARY = [
    {"source": "garden", "year": 2019, "tags": ["pond", "fish"], "open": True},
    {"source": "garden", "year": 2021.5, "tags": [], "open": False},
    {"source": "pond", "year": None, "isbn": "x"},
    {"source": "Garden", "year": 2020, "tags": "pond", "open": 1},
    {},
]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"source": "garden"}, [0, 1]),
        ({"source": {"=": "garden"}}, [0, 1]),
        ({"source": {"!=": "garden"}}, [2, 3, 4]),
        ({"source": {"<": "garden"}}, [3]),
        ({"source": {">=": "garden", "<=": "pond"}}, [0, 1, 2]),
        ({"source": {">": "h"}}, [2]),
        ({"source": ["garden", "pond", "lake"]}, [0, 1, 2]),
        ({"source": {"in": []}}, []),
        ({"year": {">=": 2020}}, [1, 3]),
        ({"year": {">": 2019, "<": 2021}}, [3]),
        ({"year": 2020.0}, [3]),
        ({"year": None}, [2, 4]),
        ({"year": {"!=": None}}, [0, 1, 3]),
        ({"year": {"exists": True}}, [0, 1, 3]),
        ({"isbn": {"exists": False}}, [0, 1, 3, 4]),
        ({"year": [None, 2019]}, [0, 2, 4]),
        ({"open": True}, [0]),
        ({"open": {"!=": False}}, [0, 2, 3, 4]),
        ({"open": 1}, [3]),
        ({"tags": "pond"}, [0, 3]),
        ({"tags": {"!=": "pond"}}, [1, 2, 4]),
        ({"tags": {"exists": True}}, [0, 1, 3]),
        ({"source": "garden", "year": {">=": 2020}}, [1]),
        ({"or": [{"isbn": "x"}, {"year": 2019}]}, [0, 2]),
        ({"and": [{"source": "garden"}, {"open": False}]}, [1]),
        ({"not": {"or": [{"source": "garden"}, {"source": "pond"}]}}, [3, 4]),
        ({"or": []}, []),
    ],
)
def test_what_each_filter_selects(where, expected):
    parsed = parse_filter(where)
    assert [number for number, metadata in enumerate(LIBRARY) if parsed.matches(metadata)] == expected
    assert np.flatnonzero(filter_mask(parsed, [Fields.of(LIBRARY)])).tolist() == expected


NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.0, 1.0, 10**400, -(10**400), 2**53, 2**53 + 1]),
    st.sampled_from(["", "a", "b", "ab", "é", "\ud800", "\uffff", "\U0001f600"]),
)
VALUES = st.one_of(st.none(), SCALARS, st.lists(st.one_of(st.none(), SCALARS), max_size=3), st.just({"deep": 1}))
ORDERED = SCALARS.filter(lambda value: not isinstance(value, bool))
CONDITIONS = st.one_of(
    st.none(),
    SCALARS,
    st.lists(st.one_of(st.none(), SCALARS), max_size=3),
    st.fixed_dictionaries({"=": SCALARS}),
    st.fixed_dictionaries({"!=": st.one_of(st.none(), SCALARS)}),
    st.fixed_dictionaries({"exists": st.booleans()}),
    st.dictionaries(st.sampled_from(["<", "<=", ">", ">="]), ORDERED, min_size=1),
)
FILTERS = st.recursive(
    st.dictionaries(NAMES, CONDITIONS, max_size=2),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"and": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"or": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=6,
)


@given(where=FILTERS, documents=st.lists(st.dictionaries(NAMES, VALUES), max_size=12))
def test_columns_select_what_the_definition_selects(where, documents):
    parsed = parse_filter(where)
    assert parsed.mask(Fields.of(documents)).tolist() == [parsed.matches(metadata) for metadata in documents]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"colour": "red"}, "no field 'colour'; there are 'isbn', 'open', 'source', 'tags', 'year'"),
        ({"year": "2020"}, "the field 'year' has numbers, found '2020' to compare with"),
        ({"year": {"~": 3}}, "unknown operator '~' of the field 'year'; use one of = != < <= > >= in exists"),
        ({"year": {}}, "the field 'year' needs an operator"),
        ({"year": {"<": True}}, "'<' of the field 'year' compares numbers or strings, found True"),
        ({"year": {"<": None}}, "found None"),
        ({"year": {"=": [2020]}}, r"'=' of the field 'year' compares booleans or numbers or strings, found \[2020\]"),
        ({"year": float("nan")}, "found nan"),
        ({"year": {"in": 2020}}, "'in' of the field 'year' takes a list of values, found 2020"),
        ({"year": {"exists": 1}}, "'exists' of the field 'year' takes true or false, found 1"),
        ({"or": {"year": 1}}, "'or' takes a list of filters"),
        ({"not": "year"}, "a filter is a mapping such as"),
        ({7: "year"}, "a field name is a string, found 7"),
        ("year", "where must be a filter such as"),
        (json.loads('{"not":' * 300 + "{}" + "}" * 300), "nested more than 100 deep"),
    ],
)
def test_what_is_no_filter_is_refused(where, message):
    index = MemoryIndex(
        [str(number) for number in range(len(LIBRARY))], [document(n) for n in range(len(LIBRARY))], metadata=LIBRARY
    )
    with pytest.raises(InputError, match=message):
        Searcher(index).search(query(), where=where)


def test_an_index_without_metadata_says_so():
    index = MemoryIndex(["a"], [document(1)])
    with pytest.raises(InputError, match="no field 'year'; its documents have no metadata"):
        Searcher(index).search(query(), where={"year": 1})


VOCABULARY, DIM = 40, 16


def document(seed: int) -> EncodedDocument:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((int(random.integers(2, 7)), DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedDocument(random.integers(0, VOCABULARY, len(vectors)).astype(np.int32), vectors)


def query(seed: int = 0) -> EncodedQuery:
    made = document(1000 + seed)
    return EncodedQuery(made.token_ids, made.vectors)


def metadata_of(number: int) -> dict:
    if number % 7 == 0:
        return {}
    return {"number": number, "half": number // 2, "name": f"n{number % 5}", "tags": [f"t{number % 3}", "all"]}


def library(first: int, count: int) -> list[tuple]:
    return [(f"d{n}", document(n), metadata_of(n)) for n in range(first, first + count)]


WHERES = [
    {"name": "n3"},
    {"number": {">=": 20, "<": 90}},
    {"tags": {"in": ["t0", "t1"]}, "half": {"!=": 30}},
    {"or": [{"name": {"exists": False}}, {"number": 55}]},
]


@pytest.fixture
def changed(tmp_path) -> Index:
    """Three segments, one of them without metadata, some deletions."""
    index = Index.create_from_vectors(tmp_path / "my.index", library(0, 60), bits=4, vocabulary_size=VOCABULARY)
    index.add_vectors([("bare", document(999))])
    index.add_vectors(library(60, 60))
    index.delete(["d8", "d13", "d61", "d90"])
    return index


def expected_ids(index: Index, where: dict) -> set[str]:
    parsed = parse_filter(where)
    live = np.flatnonzero(index.snapshot.live).tolist()
    return {index.doc_id(position) for position in live if parsed.matches(index.metadata(position))}


@pytest.mark.parametrize("where", WHERES)
def test_search_finds_all_that_match_and_nothing_else(changed, where):
    searcher = Searcher(changed)
    expected = expected_ids(changed, where)
    assert 1 < len(expected) < changed.num_documents
    whole = {hit.doc_id: hit.score for hit in searcher.search(query(), k=200)}
    found = searcher.search(query(), k=200, where=where)
    assert set(found.doc_ids) == expected
    assert all(hit.score == whole[hit.doc_id] for hit in found)
    assert searcher.search(query(), k=200, where=parse_filter(where).matches).hits == found.hits
    assert set(searcher.search(query(), k=200, where=where, feedback=ColbertPRF(clusters=4)).doc_ids) == expected
    allowed = [*sorted(expected)[:3], "bare"]
    assert set(searcher.search(query(), k=9, where=where, allowed=allowed).doc_ids) == expected & set(allowed)
    changed.merge()
    assert set(Searcher(changed).search(query(), k=200, where=where).doc_ids) == expected


@pytest.mark.parametrize("where", WHERES)
def test_a_folder_without_columns_gives_the_same(changed, where, monkeypatch):
    expected = Searcher(changed).search(query(), k=200, where=where).hits
    for segment in changed.segments:
        for name in [name for name in segment.arrays if name.startswith("field_")]:
            del segment.arrays[name]
        segment.__dict__.pop("fields", None)
    assert Searcher(changed).search(query(), k=200, where=where).hits == expected


@pytest.mark.parametrize("where", WHERES)
def test_an_index_in_memory_gives_the_same(where):
    documents = library(0, 60)
    index = MemoryIndex(
        [doc_id for doc_id, _, _ in documents], [one for _, one, _ in documents], metadata=[m for _, _, m in documents]
    )
    parsed = parse_filter(where)
    expected = {doc_id for doc_id, _, metadata in documents if parsed.matches(metadata)}
    assert set(Searcher(index).search(query(), k=99, where=where).doc_ids) == expected


def test_few_documents_are_all_candidates_whatever_is_probed(changed):
    where = {"number": {"<": 50}}
    assert changed.num_documents < FEW_ALLOWED
    everything = Searcher(changed).search(query(), k=10, where=where)
    assert Searcher(changed).search(query(), k=10, where=where, probes=1).hits == everything.hits


def test_columns_are_verified(changed):
    from colbert_prf.errors import IndexFormatError
    from colbert_prf.index.verification import verify_segment

    changed.verify()
    snapshot = changed.snapshot
    values = snapshot.segments[0].arrays["field_values"].copy()
    values[0] += 1
    snapshot.segments[0].arrays["field_values"] = values
    with pytest.raises(IndexFormatError, match=r"field_values\.npy.*columns are not those of the metadata"):
        verify_segment(snapshot, snapshot.segments[0])


def test_a_field_that_only_another_segment_has_is_known(changed):
    changed.add_vectors([("new", document(5000), {"colour": "red"})])
    assert Searcher(changed).search(query(), where={"colour": "red"}).doc_ids == ["new"]


def test_memory_index_keeps_metadata_of_texts():
    index = MemoryIndex.create(
        [("a", "Goldfish grow.", {"year": 1999}), ("b", "Goldfish grow all their life.")], progress=False
    )
    assert (index.metadata(0), index.metadata(1)) == ({"year": 1999}, {})
    assert Searcher(index).search("fish", where={"year": {"<": 2000}}).doc_ids == ["a"]


def test_a_filter_may_be_a_default_of_the_searcher():
    documents = [("a", "Goldfish grow.", {"year": 1999}), ("b", "Goldfish grow all their life.", {"year": 2020})]
    searcher = Searcher(MemoryIndex.create(documents, progress=False), where={"year": {"<": 2000}})
    assert searcher.search("fish").doc_ids == ["a"]
    assert searcher.search("fish", where={"year": 2020}).doc_ids == ["b"]
    assert sorted(searcher.search("fish", where={}).doc_ids) == ["a", "b"]
    assert len(searcher.with_defaults(where=None).search("fish")) == 2
    with pytest.raises(InputError, match="where must be a filter"):
        Searcher(searcher.index, where=3)
    with pytest.raises(InputError, match="group='document' needs an index of passages"):
        Searcher(searcher.index, group="document")
