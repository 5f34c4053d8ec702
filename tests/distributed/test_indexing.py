"""Segments of a cluster: their bytes, what a resumed build does again, and what is refused."""

from __future__ import annotations

import dataclasses
import errno
from functools import partial

import pytest

from colbert_prf import Index, Passages
from colbert_prf.distributed import create_index, indexing
from colbert_prf.distributed.indexing import ClusterBuilder, _write_added
from colbert_prf.encoder.onnx import OnnxEncoder
from colbert_prf.errors import ClusterError, IndexFormatError, IndexMismatchError, InputError, StorageError
from colbert_prf.index import batch, segment_writer
from colbert_prf.storage.arrays import ArrayWriter


def segments(index: Index) -> list[dict]:
    """What the manifest says of the files of each segment: dtypes, shapes and checksums."""
    return [segment.files for segment in index.snapshot.manifest.segments]


def test_three_workers_write_what_one_writes_and_what_one_machine_writes(ray_cluster, tmp_path, documents, single):
    codec = single.snapshot.codec
    one = create_index(tmp_path / "1", documents, workers=1, passages_per_segment=20, codec=codec, progress=False)
    three = create_index(tmp_path / "3", documents, workers=3, passages_per_segment=20, progress=False)
    assert one.snapshot.manifest == three.snapshot.manifest
    assert len(segments(three)) == 3
    assert three.snapshot.manifest.codec == single.snapshot.manifest.codec
    assert three.verify().num_documents == 60
    three.merge()
    assert segments(three) == segments(single)


def test_the_error_of_a_worker_is_raised_as_it_is(ray_cluster, tmp_path, documents, single, monkeypatch):
    def lose_the_slice(self, documents):
        slices = slices_of(self, documents)
        self.layout.slice(slices[1].digest).unlink()
        return slices

    slices_of = ClusterBuilder._slices
    monkeypatch.setattr(ClusterBuilder, "_slices", lose_the_slice)
    with pytest.raises(IndexFormatError, match=r"slice-\w+\.zst: no such file") as raised:
        create_index(tmp_path / "x", documents, passages_per_segment=20, codec=single.snapshot.codec, progress=False)
    assert type(raised.value) is IndexFormatError


def test_documents_are_added_and_replaced_by_workers(tmp_path, crew, documents, single):
    index = Index.create(tmp_path / "x", documents[:20], codec=single.snapshot.codec, progress=False)
    write = partial(_write_added, crew, 25, False)
    index.add_with(write, documents[10:], replacing=True)
    assert index.generation == 2
    assert [len(segment) for segment in index.snapshot.segments] == [20, 25, 25]
    index.verify()
    with pytest.raises(InputError, match="'d0' is in the index already"):
        index.add_with(write, documents[:1])
    assert not (tmp_path / "x" / "building").exists()
    index.merge()
    assert segments(index) == segments(single)


def test_no_document_is_encoded_twice_not_even_one_of_the_sample(tmp_path, build, crew, documents, single, monkeypatch):
    def noted(self, text):
        texts.append(text)
        return encode(self, text)

    texts: list[str] = []
    encode = OnnxEncoder._document
    monkeypatch.setattr(OnnxEncoder, "_document", noted)
    monkeypatch.setattr(indexing, "num_sampled_documents", lambda *given: 25)
    index = build(tmp_path / "x", crew, passages=Passages(12))
    assert [name.startswith("sample-") for name in crew.done] == [True] * 3 + [False] * 3
    assert len(texts) == len(set(texts)) == index.num_documents > 60
    assert index.snapshot.manifest.codec.trained_for == pytest.approx(index.num_vectors, rel=0.2)
    index.verify()
    codec = index.snapshot.codec
    alone = Index.create(tmp_path / "y", documents, codec=codec, passages=Passages(12), progress=False)
    index.merge()
    assert segments(index) == segments(alone)


def test_each_segment_is_what_one_machine_makes_of_its_documents(tmp_path, build, crew, documents, single):
    codec = single.snapshot.codec
    index = build(tmp_path / "x", crew, codec=codec)
    for number, files in enumerate(segments(index)):
        part = Index.create(tmp_path / str(number), documents[20 * number :][:20], codec=codec, progress=False)
        assert [files] == segments(part)


def test_long_documents_are_split_by_the_workers(tmp_path, build, crew, documents, encoder):
    long = [(doc_id, f"{text} " * 5, {}) for doc_id, text, _ in documents[:9]]
    index = build(tmp_path / "x", crew, long, passages=Passages(32), size=4)
    alone = Index.create(tmp_path / "y", long, passages=Passages(32), progress=False)
    index.merge()
    assert index.num_documents > 18
    assert segments(index) == segments(alone)
    index.delete(["d3"])
    assert index.num_documents == alone.num_documents * 8 // 9


def test_a_resumed_build_encodes_only_what_is_missing(tmp_path, build, crew, single, documents):
    class Interrupted(type(crew)):
        def run(self, job, tasks, advance):
            for number, done in enumerate(super().run(job, tasks, advance)):
                if number == 2:
                    raise KeyboardInterrupt
                yield done

    codec = single.snapshot.codec
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "x", Interrupted(), codec=codec)
    with pytest.raises(IndexFormatError, match=r"the build of this index is not finished, 40 documents are done"):
        Index.open(tmp_path / "x")
    with pytest.raises(StorageError, match="there is an interrupted build; continue it with resume=True"):
        build(tmp_path / "x", crew, codec=codec)
    resumed = build(tmp_path / "x", crew, codec=codec, resume=True)
    assert len(crew.done) == 1  # the third, which the driver had not heard of
    fresh = build(tmp_path / "y", type(crew)(), codec=codec)
    assert resumed.snapshot.manifest == fresh.snapshot.manifest
    assert sorted(entry.name for entry in (tmp_path / "x").iterdir()) == sorted(
        entry.name for entry in (tmp_path / "y").iterdir()
    )


def test_one_machine_goes_on_where_a_cluster_stopped(tmp_path, build, crew, single, documents):
    class Stopped(type(crew)):
        def run(self, job, tasks, advance):
            yield from super().run(job, list(tasks)[:1], advance)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "x", Stopped(), codec=single.snapshot.codec)
    resumed = Index.create(tmp_path / "x", documents, codec=single.snapshot.codec, resume=True, progress=False)
    assert [len(segment) for segment in resumed.snapshot.segments] == [20, 40]
    resumed.merge()
    assert segments(resumed) == segments(single)


def test_a_cluster_does_not_go_on_where_one_machine_stopped(tmp_path, build, crew, documents, monkeypatch):
    def stopping():
        yield from documents[:50]
        raise KeyboardInterrupt

    monkeypatch.setattr(segment_writer, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(batch, "BATCH_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        Index.create(tmp_path / "x", stopping(), progress=False)
    with pytest.raises(IndexMismatchError, match="one machine has begun this build; continue it without a cluster"):
        build(tmp_path / "x", crew, resume=True)
    assert Index.create(tmp_path / "x", documents, resume=True, progress=False).num_documents == 60


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_a_segment_that_is_not_as_it_was_written_is_named_and_written_again(tmp_path, build, crew, single, damage):
    class OnBadStorage(type(crew)):
        def run(self, job, tasks, advance):
            for number, info in super().run(job, tasks, advance):
                if number == 1:
                    damage(job.layout.array(job.layout.folder(info.name), "residuals"))
                yield number, info

    with pytest.raises(IndexFormatError, match=r"residuals\.npy: a worker wrote this segment, and the driver reads"):
        build(tmp_path / "x", OnBadStorage(), codec=single.snapshot.codec)
    with pytest.raises(IndexFormatError, match="20 documents are done"):
        Index.open(tmp_path / "x")
    index = build(tmp_path / "x", crew, codec=single.snapshot.codec, resume=True)
    assert len(crew.done) == 2
    index.verify()


def test_a_full_disk_on_a_worker_is_one_error_and_leaves_nothing(tmp_path, build, crew, monkeypatch):
    def full(self, rows):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ArrayWriter, "append", full)
        with pytest.raises(StorageError, match=r"encode on .*: No space left on device"):
            build(tmp_path / "x", crew)
    assert not (tmp_path / "x").exists()
    assert build(tmp_path / "x", crew).num_documents == 60


def test_a_slice_that_kills_every_worker_ends_the_build(tmp_path, build, crew, single):
    class Deadly(type(crew)):
        def run(self, job, tasks, advance):
            first, *_ = tasks = list(tasks)
            for worker in range(4):
                job.layout.attempt(first.name, f"host-{worker}").mkdir()
            yield from super().run(job, tasks, advance)

    with pytest.raises(ClusterError, match="4 workers died while they encoded slice 0; give each more memory"):
        build(tmp_path / "x", Deadly(), codec=single.snapshot.codec)
    assert build(tmp_path / "x", crew, codec=single.snapshot.codec).num_documents == 60


def test_a_worker_with_another_model_is_refused_before_the_corpus_is_read(tmp_path, build, crew):
    def unread():
        raise AssertionError("read")
        yield

    class Elsewhere(type(crew)):
        def check(self, job):
            model = dataclasses.replace(job.settings.model, fingerprint="0" * 32)
            super().check(dataclasses.replace(job, settings=dataclasses.replace(job.settings, model=model)))

    with pytest.raises(ClusterError, match=r"cannot use the model of the driver: .*fingerprint 0000.*same model under"):
        build(tmp_path / "x", Elsewhere(), unread())
    assert not (tmp_path / "x").exists()


def test_documents_are_checked_as_on_one_machine(tmp_path, build, crew):
    with pytest.raises(InputError, match="the document id 'a' was given twice"):
        build(tmp_path / "x", crew, [("a", "one"), ("b", "two"), ("a", "three")])
    with pytest.raises(InputError, match="the text of document 'a' must be a string"):
        build(tmp_path / "x", crew, [("a", None)])
    with pytest.raises(InputError, match="at least one document, found none"):
        build(tmp_path / "x", crew, [])
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["workers", "passages_per_segment"])
def test_numbers_are_checked(tmp_path, name):
    with pytest.raises(InputError, match=f"{name} must be at least 1, found 0"):
        create_index(tmp_path / "x", [("a", "one")], **{name: 0})


def test_more_workers_than_processors_are_refused(ray_cluster, tmp_path):
    with pytest.raises(InputError, match="workers must be at most 4, the CPUs of the cluster, found 5"):
        create_index(tmp_path / "x", [("a", "one")], workers=5)
    assert not (tmp_path / "x").exists()
