"""A tiny text encoder to train."""

from __future__ import annotations

import string
from pathlib import Path

import pytest

WORDS = [*string.ascii_lowercase, *string.punctuation, *(f"##{c}" for c in string.ascii_lowercase)]
VOCABULARY = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "gold", "##fish", "grow"]


@pytest.fixture(scope="session")
def one_thread():
    """Threads that wait for each other cost far more than such small matrices do."""
    torch = pytest.importorskip("torch", reason="needs the extra [hub]")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def base(tmp_path_factory, one_thread) -> Path:
    """A BERT of two layers with random weights and dropout."""
    for package in ("torch", "sentence_transformers", "datasets", "accelerate"):
        pytest.importorskip(package, reason="needs the extra [hub]")
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    folder = tmp_path_factory.mktemp("base")
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab={word: i for i, word in enumerate(VOCABULARY)}).save_pretrained(folder)
    return folder
