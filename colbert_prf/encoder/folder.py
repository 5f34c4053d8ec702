"""The files of a model folder: this module alone names, checks and hashes them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.settings import ModelSettings
from colbert_prf.errors import ModelError

__all__ = ["EMBEDDED", "ModelFolder"]

EMBEDDED = Path(__file__).parent / "embedded"
"""The model that comes with the package."""


@dataclass(frozen=True)
class ModelFolder:
    """A folder that the ONNX encoder opens: ``colbert_prf.json``, ``tokenizer.json`` and ``model.onnx``.

    ``query_weights.npy`` has the weights of query tokens; without it all weigh the same.
    """

    path: Path

    @property
    def settings_file(self) -> Path:
        """Markers, lengths, augmentation: see :class:`ModelSettings`."""
        return self.path / "colbert_prf.json"

    @property
    def tokenizer_file(self) -> Path:
        """The tokenizer, in the format of the ``tokenizers`` library."""
        return self.path / "tokenizer.json"

    @property
    def network_file(self) -> Path:
        """The network: ``input_ids`` and ``attention_mask`` in, unit ``vectors`` out."""
        return self.path / "model.onnx"

    @property
    def query_weights_file(self) -> Path:
        """The weight of each token's vector in a query; most models have no such file."""
        return self.path / "query_weights.npy"

    @property
    def is_complete(self) -> bool:
        """Whether all three files exist."""
        return not self.missing

    @property
    def missing(self) -> list[str]:
        """The names of the files that do not exist."""
        return [file.name for file in self.files if not file.is_file()]

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """The files that determine the vectors, in the order in which they are hashed."""
        return (self.settings_file, self.tokenizer_file, self.network_file)

    def check(self) -> ModelFolder:
        """Return the folder itself; a :class:`ModelError` names missing files."""
        if not self.path.is_dir():
            raise ModelError(f"{self.path}: no such model folder; make one with: colbert-prf export MODEL {self.path}")
        if missing := self.missing:
            raise ModelError(
                f"{self.path}: not a model folder, it lacks {', '.join(missing)}; "
                f"make one from a checkpoint with: colbert-prf export {self.path} OUTPUT"
            )
        return self

    def read_settings(self) -> ModelSettings:
        """Read ``colbert_prf.json``."""
        try:
            return ModelSettings.from_json(self.settings_file.read_text(encoding="utf-8"))
        except (ModelError, UnicodeDecodeError) as error:
            raise ModelError(f"{self.settings_file}: {error}") from error

    def read_query_weights(self, vocabulary_size: int) -> npt.NDArray[np.float32] | None:
        """Read ``query_weights.npy``, of shape (vocabulary_size,); None if there is no such file."""
        path = self.query_weights_file
        if not path.is_file():
            return None
        try:
            weights = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise ModelError(f"{path}: not an array ({error}); remove it or export the model again") from error
        if not isinstance(weights, np.ndarray):
            raise ModelError(f"{path}: an archive, not an array; remove it or export the model again")
        if weights.shape != (vocabulary_size,) or weights.dtype.kind != "f":
            raise ModelError(
                f"{path}: must hold {vocabulary_size} weights, one a token, found {weights.dtype} of shape "
                f"{weights.shape}; remove it or export the model again"
            )
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ModelError(f"{path}: weights must be positive and finite; remove it or export the model again")
        return np.asarray(weights, dtype=np.float32)

    def fingerprint(self) -> str:
        """Hash the files that determine the vectors: equal fingerprints, equal vectors."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()[:32]

    def query_fingerprint(self) -> str:
        """Hash the weights of query tokens as well: equal fingerprints, equal encoded queries."""
        if not self.query_weights_file.is_file():
            return self.fingerprint()
        weights = hashlib.sha256(self.query_weights_file.read_bytes()).hexdigest()
        return hashlib.sha256(f"{self.fingerprint()} {weights}".encode()).hexdigest()[:32]
