"""The lexical index on disk: changes, crashes, damage, and how it follows a vector index."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import Index, InputError
from colbert_prf.baselines.lexical import BM25, Analyzer, LexicalIndex, changes
from colbert_prf.errors import IndexFormatError, IndexLockedError, StorageError
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writer_lock

MORE = [("v", "tank tank water"), ("w", "cold water")]


def found(index, query="fish tank water bank"):
    return [(hit.doc_id, hit.score) for hit in BM25(index).search(query)]


def test_opening_again_is_the_same(index):
    assert found(LexicalIndex.open(index.path)) == found(index)
    assert index.verify().num_documents == 3


def test_adding_is_as_if_all_had_been_there(index, tmp_path):
    whole = [("x", "fish fish tank"), ("y", "fish bank"), ("z", "bank rates rates fell"), *MORE]
    index.add(MORE)
    fresh = LexicalIndex.create(tmp_path / "fresh", whole, analyzer=index.analyzer, progress=False)
    assert dict(found(index)) == pytest.approx(dict(found(fresh)))
    assert (index.num_documents, index.generation) == (5, 2)


def test_adding_then_deleting_restores_every_score(index):
    before = found(index)
    index.add(MORE)
    assert found(index) != before
    index.delete(["v", "w"])
    assert found(index) == before
    index.merge()
    assert found(index) == before
    assert index.snapshot.num_positions == 3
    assert index.text("y") == "fish bank"


def test_a_deleted_document_counts_nowhere(index):
    index.delete(["x"])
    snapshot = index.snapshot
    assert (snapshot.num_documents, snapshot.num_tokens, snapshot.average_length) == (2, 6, 3.0)
    assert (index.document_frequency("fish"), index.document_frequency("tank")) == (1, 0)
    with pytest.raises(InputError, match="no document 'x'"):
        index.delete(["x"])
    index.add([("x", "fish again")])
    assert index.text("x") == "fish again"


def test_a_change_is_whole_or_absent(index):
    before = found(index)
    with pytest.raises(InputError, match="'x' is in the index already; to replace it use upsert"):
        index.add([*MORE, ("x", "once more")])
    assert found(LexicalIndex.open(index.path)) == before
    index.add(MORE)  # what the failed writer left is no obstacle
    assert index.num_documents == 5


def test_killed_before_the_manifest_is_swapped(index, monkeypatch):
    before = found(index)

    def killed(self, path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(changes.LexicalManifest, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            index.add(MORE)
    assert found(LexicalIndex.open(index.path)) == before
    index.add(MORE)
    assert LexicalIndex.open(index.path).num_documents == 5


def test_one_writer_at_a_time(index):
    with writer_lock(IndexLayout(index.path), "add"), pytest.raises(IndexLockedError):
        index.add(MORE)


@pytest.mark.parametrize("name", ["posting_documents", "terms", "term_id_bytes"])
def test_a_damaged_file_is_named(index, name):
    (file,) = index.path.glob(f"segment-*/{name}.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(IndexFormatError, match=name):
        index.verify()
    file.write_bytes(content[:-4])
    with pytest.raises(IndexFormatError, match=name):
        LexicalIndex.open(index.path)


def test_a_folder_with_something_in_it_is_refused(index, tmp_path):
    with pytest.raises(StorageError, match="there is an index in the folder already"):
        LexicalIndex.create(index.path, MORE, progress=False)
    with pytest.raises(IndexFormatError, match="not a colbert-prf lexical index"):
        LexicalIndex.open(tmp_path / "nowhere")
    with pytest.raises(InputError, match="at least one document"):
        LexicalIndex.create(tmp_path / "none", [], progress=False)
    with pytest.raises(InputError, match="given twice"):
        LexicalIndex.create(tmp_path / "none", MORE + MORE, progress=False)
    assert LexicalIndex.create(tmp_path / "none", MORE, progress=False).num_documents == 2


def test_terms_given_with_frequencies(tmp_path):
    index = LexicalIndex.create_from_terms(tmp_path / "l", [("a", {"fish": 70, "tank": 3}), ("b", {"tank": 1})])
    assert index.snapshot.term_frequencies(0) == {"fish": 70, "tank": 3}
    assert index.snapshot.lengths.tolist() == [73, 1]
    with pytest.raises(InputError, match="at least 1"):
        LexicalIndex.create_from_terms(tmp_path / "m", [("a", {"fish": 0})])


@given(texts=st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(" ".join), min_size=1, max_size=6))
def test_postings_and_terms_tell_the_same(tmp_path_factory, texts):
    index = LexicalIndex.create(
        tmp_path_factory.mktemp("l") / "l",
        [(str(place), text) for place, text in enumerate(texts)],
        analyzer=Analyzer(stop_words="none", stemmer="none"),
        progress=False,
    )
    for term in "abcd":
        postings = index.snapshot.postings(term)
        counts = [text.split().count(term) for text in texts]
        assert dict(zip(postings.positions.tolist(), postings.frequencies.tolist(), strict=True)) == {
            place: count for place, count in enumerate(counts) if count
        }
        for place, count in enumerate(counts):
            assert index.snapshot.term_frequencies(place).get(term, 0) == count


class TestBesideAVectorIndex:
    @pytest.fixture
    def vectors(self, tmp_path, encoder):
        documents = [("fish", "Goldfish grow."), ("bank", "The bank raised rates."), ("pond", "Ponds have goldfish.")]
        return Index.create(tmp_path / "my.index", documents, encoder=encoder, bits=4, progress=False)

    def test_it_is_made_once_and_follows(self, vectors):
        lexical = LexicalIndex.of(vectors, progress=False)
        assert sorted(doc_id for doc_id, _ in found(lexical, "goldfish")) == ["fish", "pond"]
        assert LexicalIndex.of(vectors).generation == lexical.generation
        vectors.add([("tank", "A tank for goldfish.")])
        vectors.delete(["fish"])
        lexical = LexicalIndex.of(vectors)
        assert sorted(doc_id for doc_id, _ in found(lexical, "goldfish")) == ["pond", "tank"]
        assert lexical.num_documents == vectors.num_documents == 3
        assert lexical.text("tank") == "A tank for goldfish."
        vectors.merge()
        assert found(LexicalIndex.of(vectors), "goldfish") == found(lexical, "goldfish")
        vectors.verify()

    def test_a_document_replaced_under_the_same_id_is_seen(self, vectors):
        LexicalIndex.of(vectors)
        vectors.delete(["bank"])
        vectors.add([("bank", "A river bank.")])
        assert [doc_id for doc_id, _ in found(LexicalIndex.of(vectors), "river")] == ["bank"]

    @pytest.mark.parametrize(
        "change",
        [lambda lexical: lexical.delete(["fish"]), lambda lexical: lexical.add([("stray", "A goldfish on the bank.")])],
    )
    def test_what_was_changed_by_itself_is_put_right(self, vectors, change):
        expected = sorted(found(LexicalIndex.of(vectors), "goldfish bank"))
        change(LexicalIndex.of(vectors))
        assert sorted(found(LexicalIndex.of(vectors), "goldfish bank")) == expected

    def test_another_analyzer_makes_it_anew(self, vectors):
        assert found(LexicalIndex.of(vectors), "ponds")
        plain = Analyzer(stop_words="none", stemmer="none")
        lexical = LexicalIndex.of(vectors, analyzer=plain)
        assert (lexical.document_frequency("ponds"), lexical.document_frequency("pond")) == (1, 0)
        assert LexicalIndex.of(vectors).analyzer == plain

    def test_without_texts_it_says_what_to_do(self, tmp_path, encoder):
        bare = Index.create(tmp_path / "b", [("a", "Some text.")], encoder=encoder, bits=4, texts=False, progress=False)
        with pytest.raises(InputError, match=r"LexicalIndex\.create"):
            LexicalIndex.of(bare)


def test_an_index_that_another_writer_just_finished_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "lexical").mkdir()
    real, calls = IndexLayout.foreign, []

    def finished_meanwhile(layout):
        calls.append(layout)
        if len(calls) == 1:
            LexicalIndex.create(tmp_path / "lexical", [("a", "Goldfish grow.")])
        return real(layout)

    monkeypatch.setattr(IndexLayout, "foreign", finished_meanwhile)
    with pytest.raises(StorageError, match="there is an index in the folder already"):
        LexicalIndex.create(tmp_path / "lexical", [("b", "Bank rates fell.")])
    assert LexicalIndex.open(tmp_path / "lexical").num_documents == 1
