"""A tiny cross-encoder: it learns, resumes, exports and teaches."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from colbert_prf import InputError
from colbert_prf.training import Example, TrainingSettings, open_teacher, score_examples, train_cross_encoder
from colbert_prf.training.cross_encoder import fit_cross_encoder
from colbert_prf.training.cross_encoder_export import SAMPLE_PAIRS, export_cross_encoder
from colbert_prf.training.run import TrainingRun
from colbert_prf.training.student import train_last_layers

pytestmark = pytest.mark.slow

EXAMPLES = [
    Example("do goldfish grow", ("a goldfish grows, in a tank.", "the bank raised its rates")),
    Example("rates of a bank", ("the bank raised its rates", "a goldfish grows, in a tank.")),
]
SETTINGS = TrainingSettings(learning_rate=1e-3, batch_size=2, steps=4, checkpoint_every=2, dropout=0.0)


def fitted(base, output, settings, examples=EXAMPLES):
    run = TrainingRun(output)
    run.open(asdict(settings), resume=False)
    return fit_cross_encoder(run, examples, str(base), settings, max_length=48, device="cpu", progress=False)


@pytest.fixture(scope="session")
def trained(base, tmp_path_factory):
    return train_cross_encoder(
        EXAMPLES,
        str(base),
        tmp_path_factory.mktemp("cross") / "model",
        settings=SETTINGS,
        max_length=48,
        validation=EXAMPLES,
        int8=False,
        device="cpu",
        progress=False,
    )


@pytest.mark.parametrize("loss", ["pairwise", "distill"])
def test_the_loss_falls_on_two_examples_repeated(base, tmp_path, loss):
    settings = replace(SETTINGS, loss=loss, learning_rate=5e-3, steps=30, checkpoint_every=30)
    scored = [replace(example, scores=(4.0, 0.0)) for example in EXAMPLES]
    _, result = fitted(base, tmp_path / "model", settings, scored)
    assert result.losses[-1][1] < 0.5 * result.losses[0][1]


def test_a_teacher_of_equal_scores_leaves_nothing_to_gain(base, tmp_path):
    """Towards a uniform distribution over two passages the loss is at least its entropy, ln 2."""
    settings = replace(SETTINGS, loss="distill")
    level = [replace(example, scores=(1.0, 1.0)) for example in EXAMPLES]
    _, result = fitted(base, tmp_path / "model", settings, level)
    assert all(value >= np.log(2) - 1e-6 for _, value in result.losses)


def test_the_folder_is_complete_and_its_network_equals_pytorch(trained):
    assert {path.name for path in trained.output.iterdir()} == {
        "README.md", "checkpoint", "cross_encoder.json", "model.onnx", "tokenizer.json", "training.json"
    }  # fmt: skip
    assert trained.agreement.largest_difference < 1e-4


def test_bytes_in_place_of_floats_give_nearly_the_same_scores(trained, tmp_path):
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(trained.output / "checkpoint"), device="cpu")
    agreement = export_cross_encoder(model, tmp_path / "int8", name="tiny", int8=True)
    assert agreement.largest_difference < 0.1
    assert (tmp_path / "int8" / "model.onnx").stat().st_size < (trained.output / "model.onnx").stat().st_size


def test_the_network_scores_what_its_own_tokenizer_makes(trained):
    import onnxruntime
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(trained.output / "tokenizer.json"))
    session = onnxruntime.InferenceSession(trained.output / "model.onnx")
    encoded = tokenizer.encode(*SAMPLE_PAIRS[1])
    columns = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
    (scores,) = session.run(["scores"], {name: np.array([ids]) for name, ids in columns.items()})
    (expected,) = score_examples(
        [Example(*SAMPLE_PAIRS[1][:1], SAMPLE_PAIRS[1][1:])], open_teacher(str(trained.output))
    )
    assert float(scores[0]) == pytest.approx(expected.scores[0], abs=1e-4)


def test_it_teaches_raw_scores(trained):
    from sentence_transformers import CrossEncoder

    scored = list(score_examples(EXAMPLES, open_teacher(str(trained.output), device="cpu")))
    squashed = CrossEncoder(str(trained.output / "checkpoint"), device="cpu").predict(
        [(example.query, document) for example in EXAMPLES for document in example.documents], show_progress_bar=False
    )
    raw = np.array([score for example in scored for score in example.scores])
    np.testing.assert_allclose(1 / (1 + np.exp(-raw)), squashed, atol=1e-5)


def test_the_head_is_always_trained(base):
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(base), num_labels=1, device="cpu")
    train_last_layers(model, 0)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert {name.rpartition(".")[0].rsplit(".", 1)[-1] for name in trained} == {"classifier", "dense"}
    assert any("pooler" in name for name in trained)
    train_last_layers(model, 1)
    assert any("layer.1." in name for name, weight in model.named_parameters() if weight.requires_grad)
    assert not any("layer.0." in name for name, weight in model.named_parameters() if weight.requires_grad)


def test_in_batch_negatives_are_refused(base, tmp_path):
    with pytest.raises(InputError, match="no loss 'in-batch'"):
        train_cross_encoder(EXAMPLES, str(base), tmp_path / "model", settings=TrainingSettings(loss="in-batch"))
