"""Checkpoints in the three formats people have: opened with PyTorch, exported, and opened without."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import Encoder, InputError, ModelError
from colbert_prf.encoder.export import compare_encoders, export_model
from colbert_prf.encoder.onnx import OnnxEncoder
from colbert_prf.encoder.torch import TorchEncoder

pytestmark = pytest.mark.slow

TEXTS = ["do goldfish grow", "the tank, the gold.", "", "grow " * 50, "fish"]


@pytest.fixture(scope="module")
def torch_encoder(checkpoint) -> TorchEncoder:
    encoder = Encoder.load(checkpoint)
    assert isinstance(encoder, TorchEncoder)
    return encoder


@pytest.fixture(scope="module")
def exported(checkpoint, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "model"
    return folder, export_model(checkpoint, folder)


def test_settings_are_read_from_the_checkpoint(checkpoint, torch_encoder):
    settings = torch_encoder.settings
    expected = {
        "stanford": ("[unused0] ", "[unused1] ", 12, 12, False),
        "pylate": ("[Q] ", "[D] ", 12, 12, True),
        "native": ("", "", 10, 0, False),
    }[checkpoint.parent.name.rstrip("0123456789")]
    found = (
        settings.query_prefix,
        settings.document_prefix,
        settings.query_length,
        settings.augment_to,
        settings.attend_to_augmentation,
    )
    assert found == expected
    assert (settings.dim, settings.document_length) == (8, 20)


def test_stanford_queries_are_marked_and_filled_up_with_masks(stanford_checkpoint):
    query = Encoder.load(stanford_checkpoint).encode_query("do goldfish grow")
    tokens = Encoder.load(stanford_checkpoint).tokens(query.token_ids)
    assert tokens == ["[CLS]", "[unused0]", "do", "gold", "##fish", "grow", "[SEP]"] + ["[MASK]"] * 5


def test_stanford_documents_are_marked_and_lose_their_punctuation(stanford_checkpoint):
    encoder = Encoder.load(stanford_checkpoint)
    (document,) = encoder.encode_documents(["the tank, the gold."])
    assert encoder.tokens(document.token_ids) == ["[CLS]", "[unused1]", "the", "tank", "the", "gold", "[SEP]"]


def test_vectors_do_not_depend_on_the_batch(checkpoint, torch_encoder):
    alone = TorchEncoder.from_checkpoint(str(checkpoint), batch_size=1)
    for one, other in zip(alone.encode_documents(TEXTS), torch_encoder.encode_documents(TEXTS), strict=True):
        assert np.array_equal(one.token_ids, other.token_ids)
        assert one.vectors == pytest.approx(other.vectors, abs=1e-5)


def test_the_export_gives_the_same_tokens_and_vectors_without_pytorch(exported, torch_encoder):
    folder, agreement = exported
    encoder = Encoder.load(folder)
    assert isinstance(encoder, OnnxEncoder)
    assert agreement.largest_difference < 1e-4
    assert compare_encoders(torch_encoder, encoder, TEXTS).largest_difference < 1e-4
    network = (folder / "model.onnx").read_bytes()
    assert b"site-packages" not in network
    assert str(folder.parent).encode() not in network
    assert {file.name for file in folder.iterdir()} == {"colbert_prf.json", "tokenizer.json", "model.onnx"}


def test_int8_stays_close(checkpoint, tmp_path):
    agreement = export_model(checkpoint, tmp_path / "int8", int8=True)
    assert 0.9 < agreement.smallest_cosine <= agreement.mean_cosine
    assert agreement.largest_difference > 0
    assert [file.name for file in tmp_path.iterdir()] == ["int8"]


def test_fingerprints_tell_models_apart(checkpoint, torch_encoder, exported):
    assert torch_encoder.fingerprint == TorchEncoder.from_checkpoint(str(checkpoint)).fingerprint
    assert torch_encoder.fingerprint != Encoder.load(exported[0]).fingerprint


def test_an_existing_output_is_left_alone(stanford_checkpoint, tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InputError, match="exists already; name another folder"):
        export_model(stanford_checkpoint, tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "precious"


def test_a_failed_export_leaves_nothing(stanford_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr("colbert_prf.encoder.export.FLOAT32_TOLERANCE", -1)
    with pytest.raises(ModelError, match="other vectors than PyTorch"):
        export_model(stanford_checkpoint, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_encoder_without_colbert_projection_is_refused(plain_encoder):
    with pytest.raises(ModelError, match="without ColBERT's projection"):
        Encoder.load(plain_encoder)


def test_a_folder_without_a_model_is_refused(tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the extra [hub]")
    with pytest.raises(ModelError, match="not a ColBERT checkpoint"):
        Encoder.load(tmp_path)


def test_a_truncated_checkpoint_is_refused(stanford_checkpoint, tmp_path):
    for file in stanford_checkpoint.iterdir():
        data = file.read_bytes()
        (tmp_path / file.name).write_bytes(data[: len(data) // 2] if file.suffix == ".safetensors" else data)
    with pytest.raises(ModelError, match="not a ColBERT checkpoint"):
        Encoder.load(tmp_path)
