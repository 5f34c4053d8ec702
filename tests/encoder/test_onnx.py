"""The laws of the default encoder, on the embedded model."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colbert_prf import Encoder, InputError
from colbert_prf.encoder.folder import EMBEDDED, ModelFolder
from colbert_prf.encoder.onnx import OnnxEncoder
from colbert_prf.errors import MissingExtraError, ModelError, TextError

TEXTS = ["Goldfish grow in a tank.", "", "the", "word " * 300, "Crème brûlée 東京 🐟", "one two three"]


@pytest.fixture
def copied_model(tmp_path):
    shutil.copytree(EMBEDDED, tmp_path / "model")
    return ModelFolder(tmp_path / "model")


def vectors_of(encoder, texts):
    return [document.vectors for document in encoder.encode_documents(texts)]


def test_vectors_have_unit_length_and_the_models_dim(encoder):
    for document in encoder.encode_documents(TEXTS):
        assert document.dim == encoder.dim == 96
        assert np.linalg.norm(document.vectors, axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(encoder, threads):
    other = OnnxEncoder(ModelFolder(EMBEDDED), threads=threads)
    for one, another in zip(vectors_of(encoder, TEXTS * 3), vectors_of(other, TEXTS * 3), strict=True):
        assert np.array_equal(one, another)


@settings(max_examples=15)
@given(order=st.permutations(range(len(TEXTS))))
def test_order_and_neighbours_change_no_bit(encoder, order):
    alone = [vectors_of(encoder, [text])[0] for text in TEXTS]
    shuffled = vectors_of(encoder, [TEXTS[i] for i in order])
    for position, i in enumerate(order):
        assert np.array_equal(shuffled[position], alone[i])


def test_documents_are_encoded_as_they_are_asked_for(encoder):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield "goldfish"

    stream = encoder.encode_documents(endless())
    for _ in range(3):
        next(stream)
    stream.close()
    assert len(taken) < 200


def test_progress_counts_every_text(encoder):
    counts: list[int] = []
    list(encoder.encode_documents(TEXTS, progress=counts.append))
    assert sum(counts) == len(TEXTS)


def test_the_same_word_differs_with_its_context(encoder):
    fish, war = encoder.encode_documents(["the goldfish swims in its tank", "the tank bombarded the troops"])
    tank = encoder.tokenization.document("tank").input_ids[-2]  # before [SEP]
    first, second = (d.vectors[list(d.token_ids).index(tank)] for d in (fish, war))
    assert first @ second < 0.95


def test_a_long_text_is_cut_at_document_length(encoder):
    (document,) = encoder.encode_documents(["word " * 100_000])
    assert len(document) == encoder.settings.document_length


@pytest.mark.parametrize("text", ["", " \n\t ", "\0", "\ud800", "🐟", "a\0b", "￿"])
def test_odd_documents_are_encoded(encoder, text):
    (document,) = encoder.encode_documents([text])
    tokens = encoder.tokens(document.token_ids)
    assert tokens[0] == "[CLS]"
    assert tokens[-1] == "[SEP]"


def test_null_bytes_and_lone_surrogates_do_not_disturb_the_rest(encoder):
    plain, null, surrogate = encoder.encode_documents(["gold fish", "gold\0 fish", "gold \udfff fish"])
    words = [token_id for token_id in plain.token_ids if token_id not in encoder.special_ids]
    assert encoder.tokens(words) == ["gold", "fish"]
    assert np.array_equal(null.token_ids, plain.token_ids)
    assert np.array_equal(surrogate.token_ids, plain.token_ids)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_query_is_refused(encoder, text):
    with pytest.raises(TextError, match="the query is empty"):
        encoder.encode_query(text)


@pytest.mark.parametrize("text", [None, 3, b"bytes"])
def test_what_is_not_a_string_is_refused(encoder, text):
    with pytest.raises(TextError, match="must be a string, found"):
        encoder.encode_query(text)
    with pytest.raises(TextError, match="must be a string, found"):
        list(encoder.encode_documents(["fine", text]))


def test_an_unknown_token_id_can_still_be_shown(encoder):
    assert encoder.tokens([101, 999_999]) == ["[CLS]", "[id 999999]"]


def test_special_tokens_are_known(encoder):
    assert {"[CLS]", "[SEP]", "[MASK]"} <= set(encoder.tokens(encoder.special_ids))


def test_the_fingerprint_follows_every_file(copied_model):
    before = copied_model.fingerprint()
    assert before == ModelFolder(EMBEDDED).fingerprint()
    for file in copied_model.files:
        original = file.read_bytes()
        file.write_bytes(original + b"\n")
        assert copied_model.fingerprint() != before
        file.write_bytes(original)
    assert copied_model.fingerprint() == before


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(copied_model, name):
    (copied_model.path / name).unlink()
    with pytest.raises(ModelError, match=f"lacks {name}; make one"):
        Encoder.load(copied_model.path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "colbert_prf.json"])
@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"\0" * 100, lambda data: b""])
def test_a_damaged_file_is_named(copied_model, name, damage):
    file = copied_model.path / name
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ModelError, match=name):
        Encoder.load(copied_model.path)


def changed_settings(folder, **changes):
    settings = json.loads(folder.settings_file.read_text(encoding="utf-8"))
    folder.settings_file.write_text(json.dumps(settings | changes), encoding="utf-8")


def test_a_network_without_the_projection_is_refused(copied_model):
    changed_settings(copied_model, dim=64)
    with pytest.raises(ModelError, match=r"must have 64 dimensions and unit length, found \d+ and 1"):
        Encoder.load(copied_model.path)


def test_a_tokenizer_of_another_model_is_refused(copied_model):
    copied_model.query_weights_file.unlink(missing_ok=True)
    tokenizer = json.loads(copied_model.tokenizer_file.read_text(encoding="utf-8"))
    words = tokenizer["model"]["vocab"]
    words["a-word-of-its-own"] = len(words)
    copied_model.tokenizer_file.write_text(json.dumps(tokenizer), encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json: its largest token id is 30522, which model\.onnx does not"):
        Encoder.load(copied_model.path)


def test_a_model_whose_mask_token_is_not_in_its_vocabulary_is_refused(copied_model):
    changed_settings(copied_model, augment_to=32, augment_token="[FILLING]")
    with pytest.raises(ModelError, match=r"name tokens its tokenizer does not have: \['\[FILLING\]'\]"):
        Encoder.load(copied_model.path)


def test_a_network_of_another_form_is_refused(copied_model):
    onnx = pytest.importorskip("onnx", reason="needs the extra [hub]")
    network = onnx.load(copied_model.network_file)
    network.graph.output[0].name = "last_hidden_state"
    network.graph.node.append(onnx.helper.make_node("Identity", ["vectors"], ["last_hidden_state"]))
    onnx.save(network, copied_model.network_file)
    with pytest.raises(ModelError, match=r"is attention_mask, input_ids -> vectors, found .* -> last_hidden_state"):
        Encoder.load(copied_model.path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelError, match="no such model folder"):
        Encoder.load(tmp_path / "nowhere")


def test_a_checkpoint_without_the_extra_names_the_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r'pip install "colbert-prf\[hub\]"'):
        Encoder.load(tmp_path)


def test_threads_must_be_positive():
    with pytest.raises(InputError, match="threads must be at least 1, found 0"):
        Encoder.load(threads=0)
