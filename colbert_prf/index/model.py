"""The model that an index belongs to: described in the manifest, compared, and opened again."""

from __future__ import annotations

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.folder import EMBEDDED, ModelFolder
from colbert_prf.errors import IndexMismatchError, InputError, whole_number
from colbert_prf.index.manifest import ModelInfo, Settings
from colbert_prf.index.passages import Passages
from colbert_prf.storage.layout import IndexLayout

__all__ = ["check_model", "load_model", "model_info", "settings_for"]


def model_info(encoder: Encoder) -> ModelInfo:
    """Describe an encoder for the manifest."""
    folder: ModelFolder | None = getattr(encoder, "folder", None)
    if folder is None:
        source: str | None = encoder.settings.name  # a checkpoint: a folder or a name on the hub
    else:
        source = None if folder.path == EMBEDDED else str(folder.path.resolve())
    return ModelInfo(encoder.fingerprint, encoder.settings.name, source)


def settings_for(encoder: Encoder, bits: int, texts: bool, passages: Passages | None) -> Settings:
    """Make the settings of an index of texts."""
    if not isinstance(passages, Passages | None):
        raise InputError(f"passages must be Passages(...), such as Passages(180), found {passages!r:.80}")
    bits = whole_number("bits", bits, least=1)
    fitted = passages.fitted(encoder.tokenization) if passages else None
    special_ids = tuple(sorted(encoder.special_ids))
    return Settings(encoder.dim, bits, encoder.vocabulary_size, special_ids, texts, model_info(encoder), fitted)


def check_model(layout: IndexLayout, settings: Settings, encoder: Encoder, *, force: bool = False) -> None:
    """Refuse an encoder that did not make the vectors of the index.

    Raises
    ------
    IndexMismatchError
        If the encoder has another dim, or another fingerprint and is not forced.
    """
    if encoder.dim != settings.dim:
        raise IndexMismatchError(
            f"made with vectors of dim {settings.dim}, the model {encoder.settings.name} has dim {encoder.dim}",
            path=layout.path,
        )
    expected = settings.model.fingerprint
    if expected is not None and expected != encoder.fingerprint and not force:
        raise IndexMismatchError(
            f"made with the model {settings.model.name} (fingerprint {expected}), not with {encoder.settings.name} "
            f"(fingerprint {encoder.fingerprint}); give the model it was made with, build it again, or open it with "
            "force=True to compare vectors of different models",
            path=layout.path,
        )


def load_model(
    layout: IndexLayout, settings: Settings, *, force: bool = False, threads: int | None = None
) -> Encoder | None:
    """Open the model of an index; None if the vectors were made elsewhere."""
    if settings.model.fingerprint is None:
        return None
    encoder = Encoder.load(settings.model.source, threads=threads)
    check_model(layout, settings, encoder, force=force)
    return encoder
