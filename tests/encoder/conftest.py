"""Tiny random checkpoints on disk, one in each format people have: Stanford's, PyLate's, sentence-transformers'."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest

WORDS = [*string.ascii_lowercase, *string.punctuation, *(f"##{c}" for c in string.ascii_lowercase)]
WORDS += ["gold", "##fish", "grow", "tank", "do", "the"]
VOCABULARY = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
HIDDEN, DIM = 16, 8


def tiny_bert(seed: int = 0):
    """A BERT of two layers with random weights, and its tokenizer."""
    torch = pytest.importorskip("torch", reason="needs the extra [hub]")
    transformers = pytest.importorskip("transformers", reason="needs the extra [hub]")
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY) + 2,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    tokenizer = transformers.BertTokenizerFast(vocab={word: i for i, word in enumerate(VOCABULARY)})
    return transformers.BertModel(config).eval(), tokenizer


def write_stanford(folder: Path) -> Path:
    """As ``colbert-ir/colbertv2.0``: encoder and projection in one file, settings in ``artifact.metadata``."""
    import torch
    from safetensors.torch import save_file

    bert, tokenizer = tiny_bert()
    folder.mkdir(parents=True)
    bert.config.architectures = ["HF_ColBERT"]
    bert.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    weights = {f"bert.{name}": weight.contiguous() for name, weight in bert.state_dict().items()}
    save_file({**weights, "linear.weight": torch.randn(DIM, HIDDEN)}, folder / "model.safetensors", {"format": "pt"})
    metadata = {
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_maxlen": 12,
        "doc_maxlen": 20,
        "mask_punctuation": True,
        "attend_to_mask_tokens": False,
    }
    (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return folder


def write_pylate(folder: Path) -> Path:
    """As PyLate writes it: a transformer, a ``pylate`` Dense, and settings in the sentence-transformers config."""
    import torch
    from safetensors.torch import save_file

    bert, tokenizer = tiny_bert()
    tokenizer.add_tokens(["[Q] ", "[D] "])
    folder.mkdir(parents=True)
    bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": False}))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    settings = {
        "model_type": "ColBERT",
        "query_prefix": "[Q] ",
        "document_prefix": "[D] ",
        "query_length": 12,
        "document_length": 20,
        "attend_to_expansion_tokens": True,
        "do_query_expansion": True,
        "skiplist_words": [".", ","],
        "prompts": {},
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    dense = {
        "in_features": HIDDEN,
        "out_features": DIM,
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    (folder / "1_Dense").mkdir()
    (folder / "1_Dense" / "config.json").write_text(json.dumps(dense))
    save_file({"linear.weight": torch.randn(DIM, HIDDEN)}, folder / "1_Dense" / "model.safetensors")
    return folder


def write_native(folder: Path) -> Path:
    """As ``MultiVectorEncoder.save_pretrained`` writes it; no augmentation, no skip list."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    bert, tokenizer = tiny_bert()
    base = folder.parent / "base"
    bert.save_pretrained(base)
    tokenizer.save_pretrained(base)
    transformer = Transformer(str(base), query_length=10, document_length=20)
    dense = Dense(HIDDEN, DIM, bias=True, module_input_name="token_embeddings")
    modules = [transformer, dense, MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
    MultiVectorEncoder(modules=modules).save_pretrained(str(folder), create_model_card=False)
    return folder


WRITERS = {"stanford": write_stanford, "pylate": write_pylate, "native": write_native}


@pytest.fixture(scope="session", params=WRITERS)
def checkpoint(request, tmp_path_factory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs the extra [hub]")
    return WRITERS[request.param](tmp_path_factory.mktemp(request.param) / "checkpoint")


@pytest.fixture(scope="session")
def stanford_checkpoint(tmp_path_factory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs the extra [hub]")
    return write_stanford(tmp_path_factory.mktemp("stanford-alone") / "checkpoint")


@pytest.fixture
def plain_encoder(tmp_path) -> Path:
    """A text encoder that is no ColBERT model."""
    bert, tokenizer = tiny_bert()
    bert.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path
