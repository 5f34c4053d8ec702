"""What no checksum finds: manifests and arrays that were written with checksums that fit, and contradict each other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from forged import CLASSES, SEGMENT, Lengths, change_manifest

from colbert_prf import EncodedDocument, Index
from colbert_prf.baselines import LexicalIndex
from colbert_prf.baselines.single_vector import VectorIndex
from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import write_array

DIM, VOCABULARY = 8, 50


def documents(first: int, count: int) -> list[tuple]:
    random = np.random.default_rng(first)
    vectors = random.standard_normal((count, 5, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    token_ids = random.integers(0, VOCABULARY, (count, 5)).astype(np.int32)
    return [(f"d{first + n}", EncodedDocument(token_ids[n], vectors[n]), f"text {n}", {"n": n}) for n in range(count)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """An index of each kind, of two segments and with a deletion."""
    folder = tmp_path_factory.mktemp("sound")
    options = {"bits": 2, "vocabulary_size": VOCABULARY, "texts": True, "progress": False}
    index = Index.create_from_vectors(folder / "index", documents(0, 20), **options)
    index.add_vectors(documents(20, 5))
    index.delete(["d3"])
    texts = [("a", "fish swim"), ("b", "banks fish"), ("c", "tanks"), ("d", "a pond")]
    lexical = LexicalIndex.create(folder / "lexical", texts[:3], progress=False)
    lexical.add(texts[3:])
    lexical.delete(["c"])
    single = VectorIndex.create(folder / "single", texts[:3], encoder=Lengths(), progress=False)
    single.add(texts[3:])
    single.delete(["c"])
    return folder


def files_of(content: dict, folder: str) -> dict:
    if folder == SEGMENT:
        return content["segments"][0]["files"]
    return content["codec"]["files"] if folder.startswith("codec") else content["segments"][0]["deletions"]["files"]


def refused(kind: str, path: Path, match: str) -> None:
    with pytest.raises(IndexFormatError, match=match):
        CLASSES[kind].open(path).verify()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"dim": 7}, r"centroids\.npy: has numbers beyond dim 7"),
        ({"dim": 17}, r"cell_centers\.npy: .* must be .* of shape \(any, 32\), found .* \(16, 16\)"),
        ({"dim": 10**9}, r"cell_centers\.npy: .* must be"),
        ({"dim": 0}, r"manifest\.json: dim must be at least 1, found 0"),
        ({"bits": 4}, r"residuals\.npy: .* must be .u1 of shape \(100, 8\), found .u1 of shape \(100, 4\)"),
        ({"bits": 16}, r"residuals\.npy: the manifest names a file that no index has"),
        ({"bits": 3}, r"manifest\.json: bits must be one of"),
        ({"bits": 8}, r"manifest\.json: .* found 8; an index of 1 or 8 bits has to be built again, with 2, 4 or 16"),
        ({"vocabulary_size": 20}, r"frequencies\.npy: it counts .* tokens of a vocabulary of 20"),
        ({"vocabulary_size": 0}, r"manifest\.json: vocabulary_size must be from 1 to"),
        ({"vocabulary_size": 1 << 17}, r"token_ids\.npy: for a vocabulary of 131072 it must be uint32, found uint16"),
        ({"vocabulary_size": 10**15}, r"manifest\.json: vocabulary_size must be from 1 to"),
        ({"texts": False}, r"texts_blocks\.npy: the settings say texts=False, the segment has texts: True"),
    ],
    ids=str,
)
def test_settings_must_fit_the_arrays(sound, tmp_path, change, match):
    shutil.copytree(sound / "index", tmp_path / "my.index")
    change_manifest(tmp_path / "my.index", lambda content: content["settings"].update(change))
    refused("index", tmp_path / "my.index", match)


@pytest.mark.parametrize(
    ("kind", "change", "match"),
    [
        ("index", lambda content: content["codec"].update(num_centroids=3), r"centroids\.npy: .* must be"),
        ("index", lambda content: content["segments"][0].update(num_documents=-1), r"id_hashes\.npy: .* must be"),
        ("index", lambda content: content["segments"][0].update(num_vectors=3), r"codes\.npy: .* must be"),
        ("index", lambda content: content["segments"].append(content["segments"][1]), "the id 'd20' is in a segment"),
        ("index", lambda content: content["codec"]["files"].pop("radii"), r"radii\.npy: the manifest does not know"),
        (
            "index",
            lambda content: content["segments"][0]["files"].pop("token_lists"),
            r"token_lists\.npy: the manifest does not know",
        ),
        ("lexical", lambda content: content["segments"][0].update(num_documents=2), r"checksums\.npy: .* must be"),
        ("lexical", lambda content: content["segments"].append(content["segments"][1]), "the id 'd' is in a segment"),
        ("lexical", lambda content: content.update(texts=False), r"texts_blocks\.npy: the settings say texts=False"),
        ("single", lambda content: content["segments"][0].update(num_documents=2), r"\.npy: .* must be"),
        ("single", lambda content: content.update(dim=3), r"vectors\.npy: .* must be <f4 of shape \(3, 3\)"),
        ("single", lambda content: content.update(texts=False), r"texts_blocks\.npy: the settings say texts=False"),
        ("single", lambda content: content["segments"].append(content["segments"][1]), "the id 'd' is in a segment"),
        *(
            (
                "single",
                lambda content, name=name: files_of(content, SEGMENT).pop(name),
                rf"{name}\.npy: the manifest does",
            )
            for name in ("vectors", "id_order", "texts_offsets")
        ),
    ],
)
def test_counts_and_names_must_fit_the_arrays(sound, tmp_path, kind, change, match):
    shutil.copytree(sound / kind, tmp_path / "my.index")
    change_manifest(tmp_path / "my.index", change)
    refused(kind, tmp_path / "my.index", match)


def at(place: object, value: object) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        changed = array.copy()
        changed[place] = value
        return changed

    return change


def to(dtype: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: array.astype(dtype)


CODEC, DELETIONS = "codec-000001", f"deletions-000003/{SEGMENT}"
FORMS = "by the settings and counts in the manifest it must be"
ARRAYS = [
    ("index", SEGMENT, "token_ids", to("u4"), "for a vocabulary of 50 it must be uint16, found uint32"),
    ("index", SEGMENT, "token_ids", to("f4"), FORMS),
    ("index", SEGMENT, "token_ids", at(0, VOCABULARY), "a token is not in the vocabulary"),
    ("index", SEGMENT, "codes", to("u1"), FORMS),
    ("index", SEGMENT, "residuals", to("u2"), FORMS),
    ("index", SEGMENT, "residuals", lambda array: array[:, :1], FORMS),
    ("index", SEGMENT, "residuals", lambda array: array[:, 0], FORMS),
    ("index", SEGMENT, "scales", to("f4"), FORMS),
    ("index", SEGMENT, "offsets", to("i4"), FORMS),
    ("index", SEGMENT, "offsets", lambda array: array[:, None], FORMS),
    ("index", SEGMENT, "frequencies", to("f4"), FORMS),
    ("index", SEGMENT, "frequencies", lambda array: np.resize(array, 99), "it counts 99 tokens of a vocabulary of 50"),
    ("index", SEGMENT, "lists", to("u2"), FORMS),
    ("index", SEGMENT, "list_offsets", to("f8"), FORMS),
    ("index", SEGMENT, "token_lists", to("u2"), FORMS),
    (
        "index",
        SEGMENT,
        "token_lists",
        lambda array: at(0, array[0] ^ 1)(array),
        "the lists are not those of the tokens",
    ),
    ("index", SEGMENT, "token_list_offsets", to("f8"), FORMS),
    ("index", SEGMENT, "id_offsets", lambda array: array[[0, 1, -1]], FORMS),
    ("index", SEGMENT, "id_hashes", to("u8"), FORMS),
    ("index", SEGMENT, "id_order", at(slice(None), 0), "an id is not found by its hash"),
    ("index", SEGMENT, "id_bytes", lambda array: at(3, array[1])(array), "an id is there twice"),
    ("index", SEGMENT, "texts_offsets", lambda array: array[:0], FORMS),
    ("index", SEGMENT, "metadata_offsets", to("f8"), FORMS),
    ("index", DELETIONS, "deleted", lambda array: array[:1], FORMS),
    ("index", CODEC, "centroids", to("f4"), FORMS),
    ("index", CODEC, "centroids", lambda array: np.concatenate([array, array], axis=1), FORMS),
    ("index", CODEC, "centroid_steps", lambda array: array[:1], FORMS),
    ("index", CODEC, "centroid_steps", at(0, np.nan), "holds a NaN or an infinity"),
    ("index", CODEC, "radii", lambda array: array[:-1], FORMS),
    ("index", CODEC, "spread", lambda array: array[:-1], FORMS),
    ("index", CODEC, "ranges", lambda array: array[0], FORMS),
    ("index", CODEC, "cell_lists", at(0, 60_000), "names a centroid that is not there, of 32"),
    ("index", CODEC, "cell_lists", lambda array: array[:-1], "has 15 lists for 16 cells"),
    ("index", CODEC, "cell_centers", lambda array: array[:, :4], FORMS),
    ("lexical", SEGMENT, "terms", at(0, 999), "a term is not among the"),
    ("lexical", SEGMENT, "terms", at(0, -1), "a term is not among the"),
    ("lexical", SEGMENT, "offsets", at(1, 99), "offsets must rise from 0 to"),
    ("lexical", SEGMENT, "offsets", to("f8"), FORMS),
    ("lexical", SEGMENT, "lengths", at(0, 7), "the lengths are not those of the documents"),
    ("lexical", SEGMENT, "frequencies", at(0, 0), "a frequency is less than 1"),
    ("lexical", SEGMENT, "posting_documents", at(0, 2), "the postings are not those of the terms"),
    ("lexical", SEGMENT, "posting_offsets", at(1, 99), "the postings are not those of the terms"),
    ("lexical", SEGMENT, "checksums", lambda array: array[:1], FORMS),
    ("lexical", SEGMENT, "id_bytes", lambda array: at(1, array[0])(array), "an id is there twice"),
    ("lexical", SEGMENT, "term_id_order", at(slice(None), 0), "an id is not found by its hash"),
    ("lexical", SEGMENT, "term_id_offsets", at(1, 999), "offsets must rise from 0 to"),
    ("single", SEGMENT, "vectors", to("f8"), FORMS),
    ("single", SEGMENT, "vectors", lambda array: array[:1], FORMS),
    ("single", SEGMENT, "vectors", at(0, np.nan), "a vector holds a NaN or an infinity"),
    ("single", SEGMENT, "id_order", lambda array: array[:1], FORMS),
    ("single", SEGMENT, "id_bytes", lambda array: at(1, array[0])(array), "an id is there twice"),
    ("single", SEGMENT, "texts_offsets", lambda array: array[:0], FORMS),
]


@pytest.mark.parametrize(("kind", "folder", "name", "change", "match"), ARRAYS)
def test_arrays_must_fit_the_settings_and_each_other(sound, tmp_path, kind, folder, name, change, match):
    path = tmp_path / "my.index"
    shutil.copytree(sound / kind, path)
    file = path / (f"{folder}.{name}.npy" if folder == DELETIONS else f"{folder}/{name}.npy")
    array = np.load(file)
    file.unlink()
    info = asdict(write_array(file, change(array)))
    change_manifest(path, lambda content: files_of(content, folder).update({name: info}))
    refused(kind, path, match)


def test_an_array_the_settings_know_nothing_of_is_refused(sound, tmp_path):
    shutil.copytree(sound / "index", tmp_path / "my.index")
    extra = {"dtype": "no dtype", "shape": [1], "num_bytes": 1, "checksum": 1}
    change_manifest(tmp_path / "my.index", lambda content: files_of(content, SEGMENT).update(extra=extra))
    refused("index", tmp_path / "my.index", r"extra\.npy: the manifest names a file that no index has")


def test_the_same_id_may_be_deleted_in_one_segment_and_live_in_another(sound, tmp_path):
    shutil.copytree(sound / "index", tmp_path / "my.index")
    index = Index.open(tmp_path / "my.index")
    index.add_vectors(documents(3, 1))
    assert index.verify().num_documents == 25


SEEN_BY_OPEN = {
    "index": {
        "manifest.json",
        *(f"codec-000001/{name}.npy" for name in ("cell_centers", "cell_lists", "centroid_steps", "centroids")),
        *(f"codec-000001/{name}.npy" for name in ("radii", "ranges", "spread")),
        *(
            f"segment-00000{number}-0000/{name}offsets.npy"
            for number in (1, 2)
            for name in ("", "id_", "list_", "token_list_", "texts_", "metadata_")
        ),
        "deletions-000003/segment-000001-0000.deleted.npy",
    },
    "lexical": {"manifest.json", "deletions-000003/segment-000001-0000.deleted.npy"},
    "single": {"manifest.json", "deletions-000003/segment-000001-0000.deleted.npy"},
}


@pytest.mark.parametrize("kind", CLASSES)
def test_a_byte_changed_on_disk_is_seen_by_open_or_else_by_verify(sound, tmp_path, kind):
    path = tmp_path / "my.index"
    shutil.copytree(sound / kind, path)
    opened, seen = CLASSES[kind].open(path), set()
    for file in sorted(file for file in path.rglob("*.*") if file.suffix in (".npy", ".json")):
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # of offsets, the last
        try:
            CLASSES[kind].open(path)
        except IndexFormatError:
            seen.add(file.relative_to(path).as_posix())
        with pytest.raises(IndexFormatError) as caught:
            opened.verify()
        assert caught.value.path == str(file)
        file.write_bytes(content)
    assert seen == SEEN_BY_OPEN[kind]
    opened.verify()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:],
        None,
    ],
    ids=["shorter", "longer", "header", "missing"],
)
@pytest.mark.parametrize("kind", CLASSES)
def test_a_file_that_is_missing_or_of_another_form_is_seen_by_open(sound, tmp_path, kind, damage):
    path = tmp_path / "my.index"
    shutil.copytree(sound / kind, path)
    for file in sorted(file for file in path.rglob("*.*") if file.suffix in (".npy", ".json")):
        content = file.read_bytes()
        file.unlink()
        if damage is not None:
            file.write_bytes(damage(content))
        with pytest.raises(IndexFormatError) as caught:
            CLASSES[kind].open(path)
        assert caught.value.path == str(file)
        file.write_bytes(content)


def test_a_forged_dim_within_the_padding_contradicts_nothing(sound, tmp_path):
    """What the documentation says is not seen, so that it is changed when this is."""
    shutil.copytree(sound / "index", tmp_path / "my.index")
    change_manifest(tmp_path / "my.index", lambda content: content["settings"].update(dim=16))
    assert Index.open(tmp_path / "my.index").verify().num_documents == 24
