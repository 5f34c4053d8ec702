"""Long documents: how texts are split, and an index of passages from its creation to deleting."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import Index, InputError, Passages
from colbert_prf.index.manifest import Manifest, Settings
from colbert_prf.index.passages import document_of, passage_id, split_text


def words(text: str) -> list[tuple[int, int]]:
    """A token for each word and each mark: offsets as a tokenizer gives them."""
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def split(text: str, length: int, stride: int) -> list[str]:
    return list(split_text(text, words(text), length, stride))


def test_passages_begin_and_end_at_sentences():
    text = "One two three. Four five. Six seven eight nine. Ten."
    assert split(text, 8, 4) == [
        "One two three. Four five.",  # 7 tokens: the next sentence has 5 more
        "Four five. Six seven eight nine.",
        "Six seven eight nine. Ten.",
    ]
    assert split(text, 8, 8) == ["One two three. Four five.", "Six seven eight nine. Ten."]
    assert split(text, 99, 50) == [text]


def test_a_sentence_longer_than_a_passage_is_split_at_words():
    assert split("a b c d e f g", 3, 3) == ["a b c", "d e f", "g"]
    assert split("Short. a b c d e f g", 4, 4) == ["Short.", "a b c d", "e f g"]


def test_paragraphs_end_sentences_and_abbreviations_within_quotes_do_not_lose_text():
    assert split('He said "no." Then\n\na heading\n\nand text.', 6, 6) == [
        'He said "no."',
        "Then\n\na heading\n\nand text.",
    ]
    assert split("", 5, 5) == [""]
    assert split("   ", 5, 5) == ["   "]


@given(
    ends=st.lists(st.sampled_from([" ", " ", " ", ". ", "! ", ", ", "\n\n", ".", "-"]), max_size=60),
    length=st.integers(1, 12),
    stride=st.integers(1, 12),
)
def test_nothing_is_lost_and_nothing_is_too_long(ends, length, stride):
    text = "".join(f"w{number}{end}" for number, end in enumerate(ends))
    parts = split(text, length, min(stride, length))
    assert all(len(words(part)) <= length for part in parts)
    assert all(part in text for part in parts)
    ranges = [[int(number) for number in re.findall(r"w(\d+)", part)] for part in parts]
    ranges = [numbers for numbers in ranges if numbers]  # a part of marks alone has none
    assert sorted({number for numbers in ranges for number in numbers}) == list(range(len(ends)))
    for before, after in pairwise(ranges):
        assert before[0] <= after[0] <= before[-1] + 1
        assert before[-1] <= after[-1]


@given(st.text(), st.integers(0, 10**6))
def test_the_document_of_a_passage(doc_id, number):
    assert document_of(passage_id(doc_id, number)) == doc_id


@pytest.mark.parametrize(
    ("length", "stride", "message"),
    [(0, None, "length of passages must be a whole"), (10, 11, "stride must be at most the length, 10, found 11")],
)
def test_bad_lengths(length, stride, message):
    with pytest.raises(InputError, match=message):
        Passages(length, stride)


def test_the_model_says_how_long_a_passage_can_be(encoder):
    assert Passages().fitted(encoder.tokenization) == Passages(180, 90)
    with pytest.raises(InputError, match="from 4 to 180 with this model, found 181"):
        Passages(181).fitted(encoder.tokenization)


LONG = " ".join(f"Sentence number {number} speaks of goldfish in a pond." for number in range(12))
DOCUMENTS = [("fish", LONG, {"year": 1999}), ("bank#1", "The bank raised its rates."), ("none", "")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, encoder):
    path = tmp_path_factory.mktemp("passages") / "my.index"
    Index.create(path, DOCUMENTS, encoder=encoder, bits=4, passages=Passages(40, 20), progress=False)
    return path


def test_an_index_of_passages(folder, encoder):
    index = Index.open(folder)
    ids = [index.doc_id(position) for position in range(index.num_positions)]
    number = sum(doc_id.startswith("fish#") for doc_id in ids)
    assert number > 5
    assert ids == [*(f"fish#{n}" for n in range(number)), "bank#1#0", "none#0"]
    assert index.metadata(3) == {"year": 1999}
    assert index.text(0) == LONG[: len(index.text(0))]
    assert all(len(index.token_ids(position)) <= 40 for position in range(index.num_positions))
    assert Manifest.read(folder / "manifest.json").settings.passages == Passages(40, 20)


def test_documents_are_added_and_deleted_whole(folder, encoder, tmp_path):
    shutil.copytree(folder, tmp_path / "i")
    index = Index.open(tmp_path / "i", encoder=encoder)
    index.add([("more", LONG)])
    assert index.snapshot.find("more#3") is not None
    with pytest.raises(InputError, match="'more#0' is in the index already"):
        index.add([("more", "x")])
    with pytest.raises(InputError, match="no document 'more#0'; 'more#0' is a passage, delete its document 'more'"):
        index.delete(["more#0"])
    with pytest.raises(InputError, match=r"the index has no document 'less'$"):
        index.delete(["less"])
    index.delete(["more", "bank#1"])
    assert index.snapshot.find("more#3") is None
    left = [index.doc_id(p) for p in range(index.num_positions) if index.snapshot.live[p]]
    assert {document_of(passage) for passage in left} == {"fish", "none"}


def test_upsert_replaces_all_passages_of_a_document(folder, encoder, tmp_path):
    shutil.copytree(folder, tmp_path / "i")
    index = Index.open(tmp_path / "i", encoder=encoder)
    before = index.generation
    index.upsert([("fish", "Goldfish grow.", {"year": 2020}), ("bank#1", LONG), ("new", "Carp live long.")])
    assert index.generation == before + 1
    left = [index.doc_id(p) for p in range(index.num_positions) if index.snapshot.live[p]]
    longer = [doc_id for doc_id in left if doc_id.startswith("bank#1#")]
    assert len(longer) > 5
    assert left == ["none#0", "fish#0", *longer, "new#0"]
    assert index.text("fish#0") == "Goldfish grow."
    assert index.metadata("fish#0") == {"year": 2020}
    index.verify()


def test_a_manifest_of_before_has_no_passages(tmp_path, index):
    import json

    from colbert_prf.storage.json_form import _text

    path = tmp_path / "my.index" / "manifest.json"
    document = json.loads(path.read_text())
    del document["checksum"], document["content"]["settings"]["passages"]
    path.write_text(_text(document))
    assert isinstance(Manifest.read(path).settings, Settings)
    assert Index.open(tmp_path / "my.index").num_documents == 10
