"""The preset `paper`, against brute force and against its own definition written out in NumPy."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, Index, InputError, MemoryIndex, Searcher
from colbert_prf.search import ivfpq as paper
from colbert_prf.search.budget import Execution
from colbert_prf.search.ivfpq import PaperEngine

NUM_DOCUMENTS, DIM, EVERYTHING = 300, 20, 1_000_000


def document(seed: int, length: int | None = None) -> EncodedDocument:
    random = np.random.default_rng(seed)
    length = int(random.integers(2, 12)) if length is None else length
    vectors = np.eye(DIM, dtype=np.float32)[random.integers(0, DIM, length)]
    vectors = vectors + 0.3 * random.standard_normal((length, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedDocument(np.zeros(length, np.int32), vectors)


def query(seed: int) -> EncodedQuery:
    encoded = document(10_000 + seed, 5)
    return EncodedQuery(encoded.token_ids, encoded.vectors, np.array([1, 0.5, 2, 1, 0.1], np.float32))


def make_index(path: Path, count: int = NUM_DOCUMENTS, bits: int = 16) -> Index:
    documents = [(f"d{i}", document(i), "", {"even": i % 2 == 0}) for i in range(count)]
    return Index.create_from_vectors(path, documents, bits=bits, vocabulary_size=1, texts=True, progress=False)


def faiss_file(index: Index) -> Path:
    return index.snapshot.layout.folder(index.snapshot.manifest.derived) / paper.FILE


def ranked(index: Index, asked: EncodedQuery, positions=slice(None)) -> list[tuple[str, float]]:
    """Documents and exact scores, best first."""
    scores = index.score(asked)
    chosen = np.arange(index.num_positions)[positions]
    order = chosen[np.argsort(-scores[chosen], kind="stable")]
    return [(index.doc_id(int(p)), float(scores[p])) for p in order if np.isfinite(scores[p])]


def assert_ranking(found, expected) -> None:
    assert [hit.doc_id for hit in found] == [doc_id for doc_id, _ in expected]
    assert [hit.score for hit in found] == pytest.approx([score for _, score in expected], abs=1e-4)


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Path:
    """An index with its FAISS file: 300 documents in two segments."""
    index = make_index(tmp_path_factory.mktemp("paper") / "my.index", 200)
    index.add_vectors((f"d{i}", document(i), "", {"even": i % 2 == 0}) for i in range(200, NUM_DOCUMENTS))
    Searcher(index, preset="paper").search(query(0))
    return Path(index.info().path)


@pytest.fixture(scope="module")
def built(searched):
    return paper.build(Index.open(searched).snapshot)


@pytest.fixture
def index(searched, tmp_path) -> Index:
    shutil.copytree(searched, tmp_path / "my.index")
    return Index.open(tmp_path / "my.index")


@pytest.fixture
def searcher(index) -> Searcher:
    return Searcher(index, preset="paper", threads=2)


def test_with_every_list_and_vector_the_ranking_is_exact(index):
    engine = PaperEngine(nearest=EVERYTHING)
    for seed in range(5):
        found = engine.scored(index.snapshot, query(seed), NUM_DOCUMENTS - 1, EVERYTHING, Execution())
        found = found.top(NUM_DOCUMENTS - 1)
        expected = ranked(index, query(seed))[:-1]
        assert [index.doc_id(int(p)) for p in found.positions] == [doc_id for doc_id, _ in expected]
        assert found.scores.tolist() == pytest.approx([score for _, score in expected], abs=1e-4)


@pytest.mark.parametrize(("probes", "nearest"), [(1, 30), (3, 30), (EVERYTHING, 30), (3, EVERYTHING)])
def test_candidates_have_one_of_the_nearest_vectors(index, built, probes, nearest):
    """The definition in NumPy: code every vector, look into the nearest lists, take the nearest decoded vectors."""
    vectors = np.concatenate([index.vectors(position) for position in range(NUM_DOCUMENTS)])
    vectors = np.pad(vectors, ((0, 0), (0, 12)))
    owners = np.repeat(np.arange(NUM_DOCUMENTS), [len(index.vectors(p)) for p in range(NUM_DOCUMENTS)])
    assert (built.nlist, built.pq.M, built.pq.nbits) == (32, 16, 8)
    centroids = built.quantizer.reconstruct_n(0, built.nlist)
    lists = built.quantizer.search(vectors, 1)[1][:, 0]
    decoded = built.sa_decode(built.sa_encode(vectors))
    for seed in range(5):
        expected: set[int] = set()
        for asked in np.pad(query(seed).vectors, ((0, 0), (0, 12))):
            probed = np.isin(lists, np.argsort(-(centroids @ asked))[:probes])
            nearness = np.where(probed, decoded @ asked, -np.inf)
            expected |= set(owners[np.argsort(-nearness)[: min(nearest, int(probed.sum()))]].tolist())
        assert 10 < len(expected) < NUM_DOCUMENTS
        engine = PaperEngine(nearest=nearest)
        found = engine.scored(index.snapshot, query(seed), len(expected), probes, Execution())
        assert set(found.positions.tolist()) == expected


def test_the_preset_finds_what_exact_search_finds(searcher, index):
    for seed in range(5):
        assert_ranking(searcher.search(query(seed), k=10), ranked(index, query(seed))[:10])


@pytest.mark.parametrize("probes", [None, 1])
@pytest.mark.parametrize("k", [1, 150, NUM_DOCUMENTS - 1, NUM_DOCUMENTS, 10 * NUM_DOCUMENTS])
def test_k_results_come_back_when_k_exist(searcher, k, probes):
    assert len(searcher.search(query(1), k=k, probes=probes)) == min(k, NUM_DOCUMENTS)


@pytest.mark.parametrize("probes", [1, EVERYTHING])
def test_filters_hold(searcher, index, probes):
    allowed = list(range(3, NUM_DOCUMENTS, 7))
    found = searcher.search(query(2), k=len(allowed) - 1, probes=probes, allowed=[f"d{i}" for i in allowed])
    assert_ranking(found, ranked(index, query(2), allowed)[:-1])
    found = searcher.search(query(2), k=140, probes=probes, where=lambda metadata: metadata["even"])
    assert_ranking(found, ranked(index, query(2), slice(0, None, 2))[:140])


def test_deleted_documents_are_not_found_and_nothing_is_built_again(searcher, index, monkeypatch):
    best = searcher.search(query(3), k=3).doc_ids
    monkeypatch.setattr(paper, "build", None)
    index.delete(best)
    for again in (searcher, Searcher(index, preset="paper")):
        assert_ranking(again.search(query(3), k=10), ranked(index, query(3))[:10])
        assert len(again.search(query(3), k=296)) == 296
    assert not set(best) & set(searcher.search(query(3), k=297).doc_ids)
    assert not set(best) & set(searcher.search(query(3), k=10, where=lambda metadata: True).doc_ids)


def test_added_documents_are_found(searcher, index):
    old = faiss_file(index)
    asked = query(4)
    index.add_vectors([("copy", EncodedDocument(asked.token_ids, asked.vectors), "")])
    assert searcher.search(asked, k=1).doc_ids == ["copy"]
    assert not old.exists()
    assert faiss_file(index).exists()
    index.delete(["d0"])
    index.merge()
    assert_ranking(searcher.search(asked, k=10), ranked(index, asked)[:10])
    assert index.verify().num_documents == NUM_DOCUMENTS


def test_stages_are_timed(searcher):
    assert list(searcher.search(query(0)).timings) == ["prepare", "candidates", "maxsim", "hits"]
    assert list(searcher.search(query(0)).timings) == ["candidates", "maxsim", "hits"]


def test_threads_searching_at_once_share_one_build_and_find_the_same(index, searcher, monkeypatch):
    before = faiss.omp_get_max_threads()
    alone = [searcher.search(query(seed), k=20).hits for seed in range(30)]
    builds, build = [], paper.build
    monkeypatch.setattr(paper, "build", lambda *given, **named: builds.append(1) or build(*given, **named))
    faiss_file(index).unlink()
    fresh = Searcher(index, preset="paper", threads=2)
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda seed: fresh.search(query(seed), k=20).hits, range(30))) == alone
        assert set(pool.map(lambda _: faiss.omp_get_max_threads(), range(30))) == {before}
    assert builds == [1]


def test_the_file_is_used_again(searcher, monkeypatch):
    monkeypatch.setattr(paper, "build", None)
    assert len(searcher.search(query(0), k=10)) == 10


@pytest.mark.parametrize("damage", [lambda c: c[:1000], lambda c: c[:99] + b"x" + c[100:], lambda c: b"PK" * 500])
def test_a_damaged_file_is_made_again(searcher, index, damage):
    file = faiss_file(index)
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    assert_ranking(searcher.search(query(5), k=10), ranked(index, query(5))[:10])
    assert file.read_bytes() == sound


def test_a_folder_that_cannot_be_written_is_no_hindrance(searcher, index):
    folder = faiss_file(index).parent
    shutil.rmtree(folder)
    folder.write_text("in the way")
    assert len(searcher.search(query(0), k=10)) == 10
    assert folder.read_text() == "in the way"


def test_a_small_index_and_documents_without_vectors(tmp_path, capfd):
    documents = [
        ("none", document(0, 0)),
        ("one", document(1, 1)),
        ("two", document(2, 2)),
        ("also none", document(3, 0)),
    ]
    index = Index.create_from_vectors(tmp_path / "my.index", documents, bits=16, vocabulary_size=1, progress=False)
    searcher = Searcher(index, preset="paper")
    for k in range(1, 6):
        assert_ranking(searcher.search(query(0), k=k), ranked(index, query(0))[:k])
    index.delete(["one", "two"])
    assert searcher.search(query(0), k=1).doc_ids == []
    index.delete(["none", "also none"])
    index.merge()
    assert searcher.search(query(0), k=1).doc_ids == []
    assert capfd.readouterr().err == ""  # FAISS warns of few vectors there


def test_what_does_not_suit_is_refused(tmp_path, searcher):
    with pytest.raises(InputError, match=r"needs an index folder with bits=16, found one with bits=4.*bits=16\)"):
        Searcher(make_index(tmp_path / "4.index", 3, bits=4), preset="paper")
    with pytest.raises(InputError, match="found one in memory"):
        Searcher(MemoryIndex(["a"], [document(0)]), preset="paper")
    with pytest.raises(InputError, match=r"preset must be one of \('default', 'paper'\), found 'papr'"):
        Searcher(searcher.index, preset="papr")
    with pytest.raises(InputError, match="leave rescore out"):
        searcher.search(query(0), rescore=100)
    assert (
        Searcher(searcher.index, preset="default").search(query(0), k=3).hits
        == Searcher(searcher.index).search(query(0), k=3).hits
    )
