"""Candidates to order anew."""

from __future__ import annotations

import pytest

from colbert_prf import Hit, Index, Ranking, Retriever, Searcher

TEXTS = {
    "fish": "Goldfish grow all their life if the tank is large.",
    "pond": "A goldfish in a pond becomes larger than one in a bowl.",
    "bank": "The bank raised its rates again.",
    "tank": "The tank bombarded the troops at night.",
    "rain": "Rain fell on the roofs of the old town.",
}


class Fixed(Retriever):
    """Gives the same documents for every query, with falling scores."""

    def __init__(self, *doc_ids, texts=TEXTS):
        self.hits = tuple(
            Hit(doc_id, 10.0 - rank, lambda doc_id=doc_id: texts.get(doc_id)) for rank, doc_id in enumerate(doc_ids)
        )

    def search(self, query, k=1000):
        return Ranking(query, self.hits[:k], {"score": 0.5})


@pytest.fixture(scope="session")
def fixed():
    return Fixed


@pytest.fixture(scope="session")
def searcher(tmp_path_factory, encoder):
    path = tmp_path_factory.mktemp("rerank") / "my.index"
    return Searcher(Index.create(path, TEXTS.items(), encoder=encoder, bits=16, progress=False))
