from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import Index, InputError
from colbert_prf.errors import IndexFormatError, IndexMismatchError, StorageError
from colbert_prf.index import batch, builder, segment_writer
from colbert_prf.index.build_state import unfinished_build
from colbert_prf.storage.layout import IndexLayout


@pytest.fixture
def small_pieces(monkeypatch):
    """Batches of some 8 vectors, chunks of 20, segments of 60, a spool of 100."""
    monkeypatch.setattr(batch, "BATCH_VECTORS", 8)
    monkeypatch.setattr(segment_writer, "CHUNK_VECTORS", 20)
    for module in (segment_writer, builder):
        monkeypatch.setattr(module, "SEGMENT_VECTORS", 60)
    monkeypatch.setattr(builder, "SPOOL_VECTORS", 100)


class StreamError(Exception):
    pass


def interrupted(documents, after):
    yield from documents[:after]
    raise StreamError


def create(path, documents, **options):
    options = {"vocabulary_size": 50, "texts": True, "progress": False, **options}
    return Index.create_from_vectors(path, documents, **options)


def test_a_build_leaves_nothing_but_the_index(index, tmp_path):
    names = sorted(entry.name for entry in (tmp_path / "my.index").iterdir())
    assert names == ["codec-000001", "manifest.json", "segment-000001-0000", "writer.lock"]


def test_everything_given_is_kept(tmp_path, make_documents):
    documents = make_documents(10)
    index = create(tmp_path / "i", documents, bits=16)
    for position, (doc_id, encoded, text, metadata) in enumerate(documents):
        assert index.doc_id(position) == doc_id
        assert index.text(position) == text
        assert index.metadata(position) == metadata
        assert index.token_ids(position).tolist() == encoded.token_ids.tolist()
        assert np.array_equal(index.vectors(position), encoded.vectors.astype(np.float16).astype(np.float32))


def test_pieces_do_not_change_the_content(tmp_path, make_documents, contents, request):
    documents = make_documents(60)
    whole = create(tmp_path / "whole", documents)
    request.getfixturevalue("small_pieces")
    pieces = create(tmp_path / "pieces", iter(documents), codec=whole.codec)
    assert len(pieces.segments) > 3
    assert all(len(segment.token_ids) <= 60 for segment in pieces.segments)
    assert contents(pieces) == contents(whole)
    assert pieces.verify().num_documents == 60


def test_the_spool_is_bounded(tmp_path, make_documents, small_pieces, monkeypatch):
    spooled = []
    save = builder.Builder._save

    def watched(self, **changes):
        save(self, **changes)
        spooled.append(self.state.num_spooled)

    monkeypatch.setattr(builder.Builder, "_save", watched)
    index = create(tmp_path / "i", make_documents(100))
    assert index.num_vectors > 300
    assert 100 <= max(spooled) < 100 + 20
    assert index.codec.trained_for >= 4 * 100  # guessed, because the stream had not ended


def test_the_number_of_documents_guides_the_codec(tmp_path, make_documents, small_pieces):
    documents = make_documents(100)
    index = create(tmp_path / "i", iter(documents), total=100)
    assert index.num_vectors == pytest.approx(index.codec.trained_for, rel=0.2)


@pytest.mark.parametrize("after", [1, 30, 59])
@pytest.mark.parametrize("given_codec", [False, True])
def test_a_resumed_build_is_the_build_that_was_not_interrupted(
    tmp_path, make_documents, contents, small_pieces, after, given_codec
):
    documents = make_documents(60)
    whole = create(tmp_path / "whole", documents)
    options = {"codec": whole.codec} if given_codec else {}
    with pytest.raises(StreamError):
        create(tmp_path / "again", interrupted(documents, after), total=60, **options)
    resumed = create(tmp_path / "again", documents, resume=True, **options)
    assert contents(resumed) == contents(whole)
    assert resumed.verify().num_documents == 60
    assert not IndexLayout(tmp_path / "again").building.exists()


def test_a_build_interrupted_while_training_trains_on_the_same_sample(
    tmp_path, make_documents, contents, small_pieces, monkeypatch
):
    documents = make_documents(60)
    whole = create(tmp_path / "whole", documents)
    with monkeypatch.context() as patch:
        patch.setattr(builder, "sample_vectors", lambda *given, **options: next(interrupted([], 0)))
        with pytest.raises(StreamError):
            create(tmp_path / "again", documents)
    assert contents(create(tmp_path / "again", documents, resume=True)) == contents(whole)


def test_documents_already_done_are_not_encoded_again(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(batch, "BATCH_VECTORS", 16)
    monkeypatch.setattr(segment_writer, "CHUNK_VECTORS", 16)
    documents = [(f"d{i}", f"a text about the number {i}") for i in range(30)]
    with pytest.raises(StreamError):
        Index.create(tmp_path / "i", interrupted(documents, 28), encoder=encoder, progress=False)
    encoded = []
    original = type(encoder).encode_documents

    def watched(self, texts, **options):
        return original(self, (encoded.append(text) or text for text in texts), **options)

    monkeypatch.setattr(type(encoder), "encode_documents", watched)
    index = Index.create(tmp_path / "i", documents, encoder=encoder, resume=True, progress=False)
    assert index.num_documents == 30
    assert 2 <= len(encoded) < 30


def test_resuming_nothing_is_a_new_build(tmp_path, make_documents):
    assert create(tmp_path / "i", make_documents(3), resume=True).num_documents == 3


def test_a_build_killed_after_its_manifest_is_finished_by_resuming(index, tmp_path, make_documents):
    (tmp_path / "my.index" / "building").mkdir()
    assert create(tmp_path / "my.index", make_documents(10), resume=True).num_documents == 10
    assert not (tmp_path / "my.index" / "building").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda documents: [("other", *documents[0][1:]), *documents[1:]], "had 'd0' as document 0, now it is 'other'"),
        (lambda documents: documents[:3], "now it is nothing"),
    ],
)
def test_resuming_with_other_documents_is_refused(tmp_path, make_documents, small_pieces, change, message):
    documents = make_documents(60)
    with pytest.raises(StreamError):
        create(tmp_path / "i", interrupted(documents, 50))
    with pytest.raises(IndexMismatchError, match=message):
        create(tmp_path / "i", change(documents), resume=True)
    assert create(tmp_path / "i", documents, resume=True).num_documents == 60


def test_resuming_with_other_settings_is_refused(tmp_path, make_documents, small_pieces):
    documents = make_documents(60)
    with pytest.raises(StreamError):
        create(tmp_path / "i", interrupted(documents, 50))
    with pytest.raises(IndexMismatchError, match="had bits = 4, now it is 2"):
        create(tmp_path / "i", documents, resume=True, bits=2)
    with pytest.raises(StorageError, match="resume=True"):
        create(tmp_path / "i", documents)


def test_a_codec_for_another_index_is_refused(index, tmp_path, make_documents, make_document):
    with pytest.raises(InputError, match="the codec is for 4 bits and dim 8, the index for 2 bits"):
        create(tmp_path / "i", make_documents(3), codec=index.codec, bits=2)
    with pytest.raises(InputError, match="the index for 4 bits and dim 5"):
        create(tmp_path / "i", [("a", make_document(0, 3, dim=5))], codec=index.codec, texts=False)


def test_an_index_or_anything_else_in_the_folder_is_left_alone(index, tmp_path, make_documents):
    for resume in (False, True):
        with pytest.raises(StorageError, match="there is an index in the folder already"):
            create(tmp_path / "my.index", make_documents(3), resume=resume)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "holiday.jpg").touch()
    with pytest.raises(StorageError, match=r"not empty, it has 'holiday\.jpg'"):
        create(tmp_path / "photos", make_documents(3))


def test_a_build_that_fails_at_once_can_be_repeated(tmp_path, make_documents):
    bad = [*make_documents(3), *make_documents(1)]
    with pytest.raises(InputError, match="'d0' was given twice"):
        create(tmp_path / "i", bad)
    assert create(tmp_path / "i", make_documents(3)).num_documents == 3


@pytest.mark.parametrize("bits", [2, 4, 16])
def test_every_number_of_bits(tmp_path, make_documents, a_query, bits):
    documents = make_documents(20)
    index = create(tmp_path / "i", documents, bits=bits)
    assert index.bits == bits
    assert index.verify().num_documents == 20
    exact = create(tmp_path / "exact", documents, bits=16)
    assert index.score(a_query) == pytest.approx(exact.score(a_query), abs={2: 2, 4: 0.6, 16: 0}[bits])


def test_a_token_id_takes_two_bytes_where_the_vocabulary_allows(tmp_path, make_documents):
    for size, num_bytes in ((50, 2), (1 << 16, 2), ((1 << 16) + 1, 4)):
        index = create(tmp_path / str(size), make_documents(3), vocabulary_size=size)
        assert index.segments[0].token_ids.itemsize == num_bytes


def test_a_build_that_comes_to_nothing_leaves_nothing(tmp_path, make_documents):
    twice = [*make_documents(2), *make_documents(1)]
    with pytest.raises(InputError, match="'d0' was given twice"):
        Index.create_from_vectors(tmp_path / "my.index", twice, texts=True, progress=False)
    assert not (tmp_path / "my.index").exists()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match=r"the folder is not empty, it has 'notes\.txt'"):
        Index.create_from_vectors(tmp_path, make_documents(2), progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_chunk_is_closed_by_time_too(tmp_path, make_documents, contents, monkeypatch):
    """Ten seconds between documents: a build interrupted after some of them goes on where it was."""
    clock = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(batch, "monotonic", lambda: next(clock))
    monkeypatch.setattr(segment_writer, "monotonic", lambda: next(clock))
    documents = make_documents(40)
    whole = create(tmp_path / "whole", documents)
    with pytest.raises(StreamError):
        create(tmp_path / "i", interrupted(documents, 25))
    state = unfinished_build(IndexLayout(tmp_path / "i"))
    assert state is not None
    assert state.num_documents == 25
    resumed = create(tmp_path / "i", documents, resume=True)
    assert contents(resumed) == contents(whole)


def test_a_long_build_has_few_chunks(tmp_path, make_documents, monkeypatch):
    """An hour of a slow model, ten seconds a batch: chunks grow with the time the build has taken."""
    now = [0.0]
    written = []

    def slowly(documents):
        for document in documents:
            now[0] += 10
            yield document

    save = builder.Builder._save
    monkeypatch.setattr(
        builder.Builder, "_save", lambda self, **changes: (written.append(changes), save(self, **changes))
    )
    for module in (batch, segment_writer):
        monkeypatch.setattr(module, "monotonic", lambda: now[0])
    create(tmp_path / "i", slowly(make_documents(360)))
    chunks = sum("chunks" in changes and "segments" not in changes for changes in written)
    assert 50 < chunks < 200


def test_an_unfinished_build_says_so_when_it_is_opened(tmp_path, make_documents, small_pieces):
    documents = make_documents(60)
    with pytest.raises(StreamError):
        create(tmp_path / "i", interrupted(documents, 40))
    with pytest.raises(IndexFormatError, match=r"not finished, \d+ documents are done.*--resume"):
        Index.open(tmp_path / "i")
    with pytest.raises(StorageError, match="--resume"):
        create(tmp_path / "i", documents)


def test_an_id_given_twice_in_a_list_is_found_before_anything_is_encoded(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(type(encoder), "encode_documents", lambda *given, **options: pytest.fail("it encodes"))
    with pytest.raises(InputError, match="the document id 'a' was given twice"):
        Index.create(tmp_path / "i", [("a", "one"), ("b", "two"), ("a", "three")], encoder=encoder, progress=False)
    assert not (tmp_path / "i").exists()
