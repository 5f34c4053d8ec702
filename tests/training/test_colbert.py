"""Training a tiny model: what must hold however good the model gets."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from colbert_prf import Encoder, InputError, ModelError, ModelSettings, StorageError
from colbert_prf.encoder.export import Agreement
from colbert_prf.training import Example, ModelForm, TrainingSettings, train_colbert
from colbert_prf.training.colbert import fit_colbert
from colbert_prf.training.losses import colbert_loss, softmax_cross_entropy
from colbert_prf.training.run import TrainingRun
from colbert_prf.training.student import build_student, train_last_layers

pytestmark = pytest.mark.slow

EXAMPLES = [
    Example("do goldfish grow", ("a goldfish grows, in a tank.", "the bank raised its rates")),
    Example("rates of a bank", ("the bank raised its rates", "a goldfish grows, in a tank.")),
]
FORM = ModelForm(dim=8, query_length=12, document_length=20)
SETTINGS = TrainingSettings(learning_rate=1e-3, batch_size=2, steps=4, checkpoint_every=2)
PASSAGES = [document for example in EXAMPLES for document in example.documents]


def weights_of(model) -> dict[str, np.ndarray]:
    return {name: weight.detach().numpy().copy() for name, weight in model.state_dict().items()}


def equal(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def fitted(base, output, *, examples=EXAMPLES, settings=SETTINGS, form=FORM, resume=False, **options):
    """Train without the export, which takes most of the time."""
    run = TrainingRun(output)
    run.open({"settings": asdict(settings)}, resume=resume)
    return fit_colbert(run, examples, str(base), form, settings, device="cpu", progress=False, **options)


def trained(base, output, *, examples=EXAMPLES, settings=SETTINGS, form=FORM, **options):
    return train_colbert(
        examples, str(base), output, form=form, settings=settings, device="cpu", progress=False, **options
    )


@pytest.fixture(scope="session")
def student(base):
    return build_student(str(base), FORM, PASSAGES, seed=0, device="cpu")


@pytest.fixture(scope="session")
def whole(base, tmp_path_factory):
    """A run without interruption: its report."""
    return trained(base, tmp_path_factory.mktemp("whole") / "model", int8=False, validation=EXAMPLES)


def test_pairwise_softmax_by_hand():
    torch = pytest.importorskip("torch", reason="needs the extra [hub]")
    # ln(1 + e^-2) and ln(1 + e^1); with two negatives ln(1 + e^-1 + e^-3).
    two = softmax_cross_entropy(torch.tensor([[3.0, 1.0], [0.5, 1.5]]))
    assert float(two) == pytest.approx((math.log(1 + math.exp(-2)) + math.log(1 + math.exp(1))) / 2)
    three = softmax_cross_entropy(torch.tensor([[3.0, 2.0, 0.0]]))
    assert float(three) == pytest.approx(math.log(1 + math.exp(-1) + math.exp(-3)))


def columns(student, examples):
    rows = [[example.query for example in examples]]
    rows += [[example.documents[n] for example in examples] for n in range(len(examples[0].documents))]
    tasks = ["query"] + ["document"] * (len(rows) - 1)
    return [
        student.preprocess(row, task=task, prompt=student.prompts[task]) for row, task in zip(rows, tasks, strict=True)
    ]


def test_the_pairwise_loss_is_that_of_maxsim_over_encoded_texts(student):
    student.eval()
    expected = []
    for example in EXAMPLES:
        query = student.encode_query([example.query], convert_to_numpy=True)[0]
        documents = student.encode_document(list(example.documents), convert_to_numpy=True)
        positive, negative = ((query @ document.T).max(axis=1).sum() for document in documents)
        expected.append(math.log(1 + math.exp(negative - positive)))
    loss = colbert_loss(student, SETTINGS)(columns(student, EXAMPLES), None).detach()
    assert float(loss) == pytest.approx(np.mean(expected), abs=1e-4)


@pytest.mark.parametrize("loss", ["pairwise", "in-batch", "distill"])
def test_the_loss_falls_on_two_examples_repeated(base, tmp_path, loss):
    examples = [replace(example, scores=(4.0, 0.0)) for example in EXAMPLES]
    # Each question's positive is the other's negative, which in-batch negatives would call both.
    examples = (
        [replace(example, documents=example.documents[:1], scores=()) for example in examples]
        if loss == "in-batch"
        else examples
    )
    settings = replace(SETTINGS, loss=loss, steps=12, checkpoint_every=12, dropout=0.0, learning_rate=5e-3)
    _, result = fitted(base, tmp_path / "model", examples=examples, settings=settings)
    losses = [value for _, value in result.losses]
    assert losses[-1] < 0.7 * losses[0]


def test_the_model_is_complete(whole):
    assert whole.output.is_dir()
    assert not whole.output.with_name("model.training").exists()
    assert {path.name for path in whole.output.iterdir()} == {
        "README.md", "checkpoint", "colbert_prf.json", "model.onnx", "tokenizer.json", "training.json"
    }  # fmt: skip
    encoder = Encoder.load(whole.output)
    assert encoder.settings.name == "model"
    query = encoder.encode_query("do goldfish grow")
    assert query.vectors.shape == (12, 8)
    assert encoder.tokens(query.token_ids[:3]) == ["[CLS]", "[unused0]", "d"]
    document = next(encoder.encode_documents(["a goldfish grows, in a tank."]))
    tokens = encoder.tokens(document.token_ids)
    assert tokens[1] == "[unused1]"
    assert not {",", "."} & set(tokens)


def test_the_exported_model_equals_pytorch(whole):
    assert whole.agreement.largest_difference < 1e-4
    exported, original = Encoder.load(whole.output), Encoder.load(str(whole.output / "checkpoint"))
    for one, other in zip(exported.encode_queries(["gold"]), original.encode_queries(["gold"]), strict=True):
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-4)


def test_the_same_seed_gives_the_same_weights_and_another_gives_others(base, tmp_path):
    first, again, other = (
        weights_of(fitted(base, tmp_path / name, settings=replace(SETTINGS, seed=seed))[0])
        for name, seed in (("first", 42), ("again", 42), ("other", 43))
    )
    assert equal(first, again)
    assert not equal(first, other)


def test_an_interrupted_run_resumed_equals_one_without_interruption(base, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(step):
        if step == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        fitted(base, tmp_path / "model", validation=EXAMPLES, on_step=stop)
    assert not (tmp_path / "model").exists()
    # A state that was cut off is not resumed from.
    (tmp_path / "model.training" / "checkpoint-3").mkdir()
    with pytest.raises(InputError, match="--resume"):
        fitted(base, tmp_path / "model", validation=EXAMPLES)
    with pytest.raises(InputError, match="other settings"):
        fitted(base, tmp_path / "model", settings=replace(SETTINGS, seed=1), validation=EXAMPLES, resume=True)
    steps = []
    resumed, measured = fitted(base, tmp_path / "model", validation=EXAMPLES, resume=True, on_step=steps.append)
    assert steps == [3, 4]
    whole, expected = fitted(base, tmp_path / "whole", validation=EXAMPLES)
    assert measured.validation == expected.validation
    assert measured.losses == expected.losses
    assert equal(weights_of(resumed), weights_of(whole))


def test_a_run_whose_export_failed_is_finished_by_resuming(base, tmp_path, monkeypatch):
    given = []

    def export(model, output, *, int8):
        given.append({file.name: file.read_bytes() for file in Path(model).rglob("*.safetensors")})
        if len(given) == 1:
            raise ModelError("it cannot be exported")
        output.mkdir()
        (output / "colbert_prf.json").write_text(ModelSettings(name="tiny", dim=8).to_json())
        return Agreement(0.0, 1.0, 1.0)

    monkeypatch.setattr("colbert_prf.training.colbert.export_model", export)
    with pytest.raises(ModelError, match="cannot be exported"):
        trained(base, tmp_path / "model", validation=EXAMPLES)
    steps = []
    trained(base, tmp_path / "model", validation=EXAMPLES, resume=True, on_step=steps.append)
    assert steps == []
    assert given[0] == given[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("No space left on device (28)")]
)
def test_a_full_disk_is_named_whoever_notices_it(tmp_path, error):
    with pytest.raises(StorageError, match="the disk is full"), TrainingRun(tmp_path / "model").room_needed():
        raise error


def test_another_failure_stays_what_it_is(tmp_path):
    with pytest.raises(RuntimeError, match="shapes differ"), TrainingRun(tmp_path / "model").room_needed():
        raise RuntimeError("shapes differ")


def test_what_happened_is_written_down(whole):
    record = json.loads((whole.output / "training.json").read_text())
    assert record["settings"]["seed"] == 42
    assert [step for step, _ in record["fitted"]["validation"]] == [0, 2, 4]
    card = (whole.output / "README.md").read_text()
    assert "| steps | 4 |" in card
    assert "## Validation" in card


def test_a_trained_model_can_be_trained_further_and_keeps_its_form(base, whole, tmp_path):
    model, _ = fitted(whole.output / "checkpoint", tmp_path / "further", form=ModelForm(dim=4))
    assert model.get_embedding_dimension() == 8
    assert model.prompts["query"] == "[unused0] "


def test_only_the_last_layers_change(base):
    student = build_student(str(base), FORM, PASSAGES, seed=0, device="cpu")
    train_last_layers(student, 1)
    names = {name for name, weight in student.named_parameters() if weight.requires_grad}
    assert any("layer.1." in name for name in names)
    assert not any("layer.0." in name or "embeddings" in name for name in names)
    train_last_layers(student, 0)
    assert sum(weight.numel() for weight in student.parameters() if weight.requires_grad) == 8 * 16 + 8
    with pytest.raises(InputError, match="at most 2"):
        train_last_layers(student, 3)


def test_principal_components_keep_the_order_of_the_base(base):
    """With all components kept the projection is a rotation after centring, so angles between tokens stay."""
    full = build_student(str(base), replace(FORM, dim=16), PASSAGES, seed=0, device="cpu").eval()
    rows = full.encode_document(PASSAGES[:1], convert_to_numpy=True)[0]
    hidden = full[0](full.preprocess(PASSAGES[:1], task="document", prompt=full.prompts["document"]))
    tokens = full.tokenizer.convert_ids_to_tokens(hidden["input_ids"][0].tolist())
    kept = [position for position, token in enumerate(tokens) if token not in {",", "."}]
    direction = full[1].linear.weight.detach().numpy()
    np.testing.assert_allclose(direction @ direction.T, np.eye(16), atol=1e-4)
    raw = hidden["token_embeddings"][0].detach().numpy()[kept] @ direction.T + full[1].linear.bias.detach().numpy()
    np.testing.assert_allclose(rows, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "triplet"}, "loss must be one of"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"dropout": 1.0}, "dropout must be at least 0"),
        ({"layers": -1}, "layers must be at least 0"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(InputError, match=message):
        TrainingSettings(**settings)


@pytest.mark.parametrize(
    ("loss", "example", "message"),
    [
        ("pairwise", Example("q", ("p",)), "needs negatives"),
        ("distill", Example("q", ("p", "n")), "scores of a teacher"),
    ],
)
def test_examples_the_loss_cannot_use(base, tmp_path, loss, example, message):
    with pytest.raises(InputError, match=message):
        trained(base, tmp_path / "model", examples=[example], settings=TrainingSettings(loss=loss))
    assert not list(tmp_path.iterdir())


def test_an_output_that_exists_is_refused(base, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        trained(base, tmp_path)


def test_a_base_that_is_not_an_encoder_is_refused(base, tmp_path):
    import transformers

    config = transformers.GPT2Config(vocab_size=200, n_embd=16, n_layer=1, n_head=2, n_positions=64)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt")
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / "gpt")
    with pytest.raises(ModelError, match="not an encoder"):
        trained(tmp_path / "gpt", tmp_path / "model")
    with pytest.raises(ModelError, match="nothing"):
        trained(tmp_path / "nothing", tmp_path / "model2")


def test_too_large_a_dim_is_refused(base, tmp_path):
    with pytest.raises(InputError, match="16 components, which cannot give 32"):
        trained(base, tmp_path / "model", form=replace(FORM, dim=32))


def test_a_disk_too_small_is_refused_and_a_full_one_named(base, tmp_path, monkeypatch):
    import shutil

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
        with pytest.raises(StorageError, match="training needs about"):
            trained(base, tmp_path / "model")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    import torch

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(StorageError, match=r"the disk is full; .* --resume"):
        trained(base, tmp_path / "model", resume=True)
    monkeypatch.undo()
    assert fitted(base, tmp_path / "other")[1].steps == 4


def test_a_folder_that_is_no_run_is_left_alone(base, tmp_path):
    (tmp_path / "model.training").mkdir()
    (tmp_path / "model.training" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"model\.training is in the way, and no run of ours"):
        train_colbert(EXAMPLES, base, tmp_path / "model", form=FORM, settings=SETTINGS, progress=False)
    assert (tmp_path / "model.training" / "notes.txt").read_text() == "mine"


def test_a_run_that_is_refused_leaves_nothing_to_resume(base, tmp_path):
    with pytest.raises(InputError, match="layers must be at most"):
        train_colbert(
            EXAMPLES, base, tmp_path / "model", form=FORM, settings=replace(SETTINGS, layers=99), progress=False
        )
    assert not (tmp_path / "model.training").exists()


def test_validation_needs_negatives(base, tmp_path):
    pairs = [Example("do goldfish grow", ("a goldfish grows, in a tank.",))]
    with pytest.raises(InputError, match="an example to validate with needs a negative to rank"):
        train_colbert(EXAMPLES, base, tmp_path / "model", settings=SETTINGS, validation=pairs, progress=False)
