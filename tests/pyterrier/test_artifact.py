"""Indexes as artifacts, and how they are made."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

pt = pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")

import pandas as pd  # noqa: E402

from colbert_prf import ColbertPRF, Index, InputError, Passages  # noqa: E402
from colbert_prf.baselines import RM3  # noqa: E402
from colbert_prf.errors import IndexFormatError  # noqa: E402
from colbert_prf.pyterrier import ColbertIndex, ColbertIndexer  # noqa: E402

DOCUMENTS = [
    {"docno": "a", "title": "Goldfish", "text": "They grow all their life.", "year": 1999},
    {"docno": "b", "title": "Rates", "text": "The bank raised them.", "year": 2004},
]


@pytest.fixture
def made(tmp_path):
    return ColbertIndexer(tmp_path / "my.index", bits=4, progress=False).index(iter(DOCUMENTS))


def test_an_index_of_the_library_opens_by_its_path(index):
    """The entry points are registered, and nothing of PyTerrier need be in the folder."""
    opened = pt.Artifact.load(str(index.path))
    assert opened == index
    assert type(opened) is ColbertIndex
    assert pt.inspect.artifact_type_format(opened) == ("dense_index", "colbert_prf")
    assert len(opened) == 8


def test_other_folders_are_not_taken_for_ours(tmp_path):
    for name, content in (("theirs", "{}"), ("list", "[]"), ("damaged", "{"), ("empty", None)):
        (tmp_path / name).mkdir()
        if content is not None:
            (tmp_path / name / "manifest.json").write_text(content)
        with pytest.raises(ValueError, match="No implementation found"):
            pt.Artifact.load(str(tmp_path / name))


def test_a_package_holds_the_index_and_opens_elsewhere(made, tmp_path):
    package = made.build_package(str(tmp_path / "package.tar.lz4"), verbose=False)
    opened = _unpacked(package, tmp_path / "other")
    Index.open(opened.path).verify()
    query = pt.new.queries("do fish grow")
    pd.testing.assert_frame_equal(opened.end_to_end()(query), made.end_to_end()(query))


def _unpacked(package, folder):
    import tarfile

    from lz4.frame import LZ4FrameFile

    with LZ4FrameFile(package) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        archive.extractall(folder, filter="data")
    return pt.Artifact.load(str(folder))


def test_a_missing_folder_is_named_when_it_is_used(tmp_path):
    missing = ColbertIndex(tmp_path / "none")
    with pytest.raises(IndexFormatError, match="none"):
        missing.end_to_end().search("fish")


def test_it_is_pickled_and_compared_by_what_it_was_made_with(index):
    len(index)
    again = pickle.loads(pickle.dumps(index))  # noqa: S301
    assert again == index
    assert "_searcher" not in vars(again)
    assert ColbertIndex(index.path, threads=1) != index
    assert repr(ColbertIndex("x", threads=1)) == "ColbertIndex('x', threads=1)"


def test_documents_become_an_index(made):
    assert len(made) == 2
    assert (made.end_to_end() % 1).search("do fish grow")["docno"].tolist() == ["a"]
    assert made.text_loader()(pd.DataFrame({"docno": ["b"]}))["text"].tolist() == ["The bank raised them."]


def test_fields_are_joined_and_others_kept(tmp_path):
    indexer = ColbertIndex(tmp_path / "my.index").indexer(
        text_field=["title", "text"], metadata=["year"], bits=4, progress=False
    )
    assert pt.inspect.indexer_inputs(indexer) == [["docno", "title", "text"]]
    made = indexer.index(DOCUMENTS)
    loaded = made.text_loader(["text", "year"])(pd.DataFrame({"docno": ["a"]}))
    assert loaded.to_dict("records") == [{"docno": "a", "text": "Goldfish\nThey grow all their life.", "year": 1999}]


def test_documents_are_added(made):
    made.end_to_end().search("winter")
    more = [{"docno": "c", "text": "Ponds freeze in winter."}]
    made.indexer(mode="append", progress=False).index(more)
    assert len(made) == 2
    made.reload()
    assert (made.end_to_end() % 1).search("winter")["docno"].tolist() == ["c"]


def test_an_indexer_ends_a_pipeline(tmp_path):
    indexer = ColbertIndexer(tmp_path / "my.index", bits=4, progress=False)
    pipeline = pt.apply.text(lambda row: row["title"]) >> indexer
    assert len(pipeline.index(DOCUMENTS)) == 2


def test_bad_documents_are_refused(tmp_path):
    indexer = ColbertIndexer(tmp_path / "my.index", progress=False)
    for documents in ([], [{"docno": "a"}]):
        with pytest.raises(pt.validate.InputValidationError, match="text"):
            indexer.index(documents)
    with pytest.raises(InputError, match="document 2 has no 'docno'; found 'text'"):
        indexer.index([DOCUMENTS[0], {"text": "No id."}])
    with pytest.raises(InputError, match="document 'b': its 'text' must be a string, found NoneType"):
        indexer.index([DOCUMENTS[0], {"docno": "b", "text": None}])
    with pytest.raises(InputError, match="mode must be one of"):
        ColbertIndexer(tmp_path / "my.index", mode="overwrite")


def test_importing_the_plugin_needs_no_java():
    code = "import sys; import colbert_prf.pyterrier; print('jnius' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_feedback_is_a_method_or_its_name_everywhere(index):
    assert index.scorer(feedback="prf").feedback == index.text_scorer(feedback="prf").feedback == ColbertPRF()
    assert index.bm25(feedback="rm3").feedback == RM3()
    for make, feedback, message in (
        (index.bm25, "rm4", "there is no feedback 'rm4' of terms; choose rm3, bo1, kl"),
        (index.scorer, "prv", "there is no feedback method 'prv'"),
        (index.scorer, 3, r"feedback is a method such as ColbertPRF\(\) or its name, found 3"),
    ):
        with pytest.raises(InputError, match=message):
            make(feedback=feedback)
    with pytest.raises(InputError, match="a feedback method has its parameters already; leave out rerank"):
        index.prf(rerank=True, feedback=ColbertPRF())
    assert index.prf(feedback=ColbertPRF(rerank=True)).feedback.rerank


def test_what_an_indexer_gives_has_the_options_of_the_index(tmp_path):
    indexer = ColbertIndex(tmp_path / "my.index", preset="paper", threads=1).indexer(bits=16, progress=False)
    made = indexer.index(DOCUMENTS)
    assert (made.preset, made.threads) == ("paper", 1)
    assert made.indexer(threads=2).threads == 2


def test_passages_are_grouped_by_document(tmp_path, encoder):
    sentences = " ".join(f"Sentence {number} is about interest rates." for number in range(20))
    texts = {"long": f"{sentences} Goldfish grow in a pond.", "tank": "The tank bombarded the troops."}
    documents = [{"docno": docno, "text": text} for docno, text in texts.items()]
    indexer = ColbertIndex(tmp_path / "my.index").indexer(bits=4, passages=Passages(40, 20), progress=False)
    index = indexer.index(documents)
    found = index.end_to_end(5, group="document").search("do fish grow")
    assert found["docno"].tolist() == ["long", "tank"]
    passages = index.end_to_end(5).search("do fish grow")["docno"]
    assert passages[0].startswith("long#")
    assert set(index.prf(num_results=5, group="document").search("do fish grow")["docno"]) == {"long", "tank"}
