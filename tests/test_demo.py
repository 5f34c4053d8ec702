from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import Searcher, demo

FEW = 60


@pytest.fixture
def few_passages(monkeypatch):
    chosen = demo.demo_passages()[:FEW]
    monkeypatch.setattr(demo, "demo_passages", lambda: chosen)
    return chosen


def test_the_corpus_has_the_promised_size_and_distinct_ids():
    passages = demo.demo_passages()
    assert 2000 <= len(passages) <= 4000
    assert len({doc_id for doc_id, _ in passages}) == len(passages)
    assert passages == demo.demo_passages()
    names = {doc_id for doc_id, _ in passages}
    assert {"str.split", "subprocess.run", "python.for", "collections.Counter"} <= names


def test_the_corpus_is_the_same_where_a_library_has_hooks_of_its_own(monkeypatch):
    passages = demo.demo_passages()
    monkeypatch.setattr("sys.excepthook", lambda *_error: None)
    assert demo.demo_passages() == passages


def test_passages_are_passages():
    lengths = [len(text.split()) for _, text in demo.demo_passages()]
    assert min(lengths) >= demo.MIN_WORDS
    assert np.median(lengths) <= demo.WORDS_PER_PASSAGE


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("too short", []),
        ("one two three four five six seven eight", ["one two three four five six seven eight"]),
        ("*****\n\na b c d e f g h", ["a b c d e f g h"]),
        (("w " * 60 + "\n\n") * 2, ["w " * 59 + "w"] * 2),
        (("w " * 40 + "\n\n") * 2, ["w " * 79 + "w"]),
    ],
)
def test_paragraphs_are_joined_up_to_a_passage(text, passages):
    assert list(demo._cut(text)) == passages


def test_passages_are_indexed_once(few_passages, encoder, tmp_path, monkeypatch):
    first = demo.demo_index(encoder, cache=tmp_path, progress=False)
    monkeypatch.setattr(demo.Index, "create", lambda *_, **__: pytest.fail("indexed again"))
    second = demo.demo_index(encoder, cache=tmp_path)
    assert (second.num_documents, second.generation) == (FEW, 1)
    question = "how does the assert statement work"
    found = Searcher(second).search(question, 3)
    assert found.hits == Searcher(first).search(question, 3).hits
    assert found.hits[0].text == dict(few_passages)[found.hits[0].doc_id]


def test_other_passages_are_indexed_anew(few_passages, encoder, tmp_path):
    demo.demo_index(encoder, cache=tmp_path, progress=False)
    few_passages.pop()
    assert demo.demo_index(encoder, cache=tmp_path, progress=False).num_documents == FEW - 1
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupted_build_is_continued(few_passages, encoder, tmp_path, monkeypatch):
    encode_documents = type(encoder).encode_documents

    def interrupted(self, texts, **options):
        for number, encoded in enumerate(encode_documents(self, texts, **options)):
            if number == 20:
                raise KeyboardInterrupt
            yield encoded

    with monkeypatch.context() as patch:
        patch.setattr(type(encoder), "encode_documents", interrupted)
        with pytest.raises(KeyboardInterrupt):
            demo.demo_index(encoder, cache=tmp_path, progress=False)
    assert demo.demo_index(encoder, cache=tmp_path, progress=False).num_documents == FEW


def test_an_index_of_another_format_is_left_alone(few_passages, encoder, tmp_path, monkeypatch):
    demo.demo_index(encoder, cache=tmp_path, progress=False)
    monkeypatch.setattr(demo, "FORMAT_VERSION", demo.FORMAT_VERSION + 1)
    assert demo.demo_index(encoder, cache=tmp_path, progress=False).num_documents == FEW
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_index_is_made_again(few_passages, encoder, tmp_path):
    first = demo.demo_index(encoder, cache=tmp_path, progress=False)
    [folder] = tmp_path.glob("demo-*.index")
    (folder / "manifest.json").write_text("{}")
    assert demo.demo_index(encoder, cache=tmp_path, progress=False).num_documents == first.num_documents
