"""Documents ranked by their best passage, against all passages grouped by hand."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedQuery, Hit, Index, InputError, MemoryIndex, Passages, Ranking, Searcher
from colbert_prf.search.grouping import by_document

TOPICS = ["goldfish in ponds", "interest rates", "tanks and troops", "rivers in winter", "glass bowls"]
DOCUMENTS = [
    (
        f"d{number}",
        " ".join(
            f"Sentence {line} of text {number} is about {TOPICS[(number + line) % 5]}." for line in range(3 + number)
        ),
        {"number": number},
    )
    for number in range(12)
]


@pytest.fixture(scope="module")
def searcher(tmp_path_factory, encoder) -> Searcher:
    path = tmp_path_factory.mktemp("grouping") / "my.index"
    index = Index.create(path, DOCUMENTS, encoder=encoder, bits=4, passages=Passages(30, 15), progress=False)
    return Searcher(index)


def expected(searcher: Searcher, k: int, **options) -> list[tuple[str, float, str]]:
    best: dict[str, tuple[str, float, str]] = {}
    for hit in searcher.search("goldfish", k=10_000, **options):
        document = hit.doc_id.rpartition("#")[0]
        best.setdefault(document, (document, hit.score, hit.doc_id))
    return list(best.values())[:k]


@pytest.mark.parametrize("k", [1, 3, 12, 50])
@pytest.mark.parametrize("options", [{}, {"where": {"number": {">": 4}}}, {"allowed": ["d7", "d9", "d2#0"]}])
def test_documents_are_ranked_by_their_best_passage(searcher, k, options):
    ranking = searcher.search("goldfish", k, group="document", **options)
    assert [(hit.doc_id, hit.score, hit.passage_id) for hit in ranking] == expected(searcher, k, **options)
    assert ranking.doc_ids == [hit.doc_id for hit in ranking]
    hit = ranking.hits[0]
    assert hit.text == searcher.search("goldfish", 1, allowed=[hit.passage_id]).hits[0].text
    assert "encode" in ranking.timings


def test_feedback_learns_from_passages_and_moves_documents(searcher):
    ranking = searcher.search("goldfish", 5, group="document", feedback=ColbertPRF(clusters=4, expansion_vectors=4))
    assert len(ranking) == 5
    assert ranking.expansion is not None
    assert all("#" in passage for passage in ranking.expansion.feedback)
    assert [hit.doc_id for hit in ranking.before] == [document for document, _, _ in expected(searcher, 5)]


def test_it_searches_deeper_until_there_are_enough():
    """One document has the best hundred passages."""
    query = EncodedQuery(np.array([1], np.int32), np.ones((1, 1), np.float32))
    hits = [*(Hit(f"long#{n}", 100.0 - n / 10) for n in range(100)), Hit("a#0", 2.0), Hit("b#0", 1.0)]
    depths = []

    def search(depth: int) -> Ranking:
        depths.append(depth)
        return Ranking(query, tuple(hits[:depth]))

    assert by_document(search, 2, 102).doc_ids == ["long", "a"]
    assert depths == [8, 32, 102]
    assert by_document(search, 9, 102).doc_ids == ["long", "a", "b"]


def test_what_was_not_split_cannot_be_grouped(searcher):
    index = MemoryIndex.create([("a", "Goldfish grow.")], progress=False)
    with pytest.raises(InputError, match="needs an index of passages"):
        Searcher(index).search("goldfish", group="document")
    with pytest.raises(InputError, match="group must be 'document' or None, found 'year'"):
        searcher.search("goldfish", group="year")
