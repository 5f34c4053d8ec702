"""What tests of folders share: the classes of the three kinds of index, an encoder, and manifests changed with a
checksum that fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from colbert_prf import Index
from colbert_prf.baselines import LexicalIndex
from colbert_prf.baselines.single_vector import VectorEncoder, VectorIndex
from colbert_prf.storage.json_form import _text

CLASSES = {"index": Index, "lexical": LexicalIndex, "single": VectorIndex}
SEGMENT = "segment-000001-0000"


class Lengths(VectorEncoder):
    """A text becomes one and its length."""

    name = "lengths"

    def encode_query(self, text):
        return np.array([1, len(text)], np.float32)

    def encode_documents(self, texts, *, progress=None):
        for text in texts:
            yield self.encode_query(text)[None]


def change_manifest(path: Path, change: Callable[[dict], None]) -> None:
    """Change a manifest as an attacker would: with a checksum that fits."""
    file = path / "manifest.json"
    document = json.loads(file.read_text())
    del document["checksum"]
    change(document["content"])
    file.write_text(_text(document))
