"""What a model folder says about its own use: markers, lengths, augmentation and skipped tokens."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from colbert_prf.errors import ModelError

__all__ = ["ModelSettings"]

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """How a ColBERT model wants its texts, as written in the ``colbert_prf.json`` of its folder.

    Parameters
    ----------
    name
        For people: shown by ``colbert-prf info``.
    dim
        Components of a vector.
    query_prefix, document_prefix
        Put before each text as it stands, a trailing space included: ColBERTv2 has ``"[unused0] "``.
    query_length, document_length
        Tokens kept of a text, markers included; the rest is cut.
    augment_to
        Queries with fewer tokens are filled up to this number with ``augment_token``; 0 never fills.
    augment_token
        The filling token, ``[MASK]`` in ColBERT.
    attend_to_augmentation
        Whether the other tokens see the filling ones; ColBERT says no.
    skip_tokens
        Document tokens that get no vector, such as punctuation.
    special_tokens
        Tokens that carry no word, such as ``[CLS]``: feedback never expands a query with them.

    Examples
    --------
    >>> settings = ModelSettings(name="tiny", dim=4)
    >>> ModelSettings.from_json(settings.to_json()) == settings
    True
    """

    name: str
    dim: int
    query_prefix: str = ""
    document_prefix: str = ""
    query_length: int = 32
    document_length: int = 180
    augment_to: int = 0
    augment_token: str = "[MASK]"
    attend_to_augmentation: bool = False
    skip_tokens: tuple[str, ...] = ()
    special_tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("dim", "query_length", "document_length"):
            if getattr(self, key) < 1:
                raise ModelError(f"model setting {key} must be at least 1, found {getattr(self, key)}")
        if not 0 <= self.augment_to <= self.query_length:
            raise ModelError(
                f"model setting augment_to must be between 0 and query_length = {self.query_length}, "
                f"found {self.augment_to}"
            )

    def to_json(self) -> str:
        """Write the settings as JSON, keys sorted, so that equal settings are equal text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ModelSettings:
        """Read settings, refusing unknown keys, wrong types and formats of the future."""
        try:
            values: Any = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ModelError(f"model settings are not JSON: {error}") from error
        if not isinstance(values, dict):
            raise ModelError(f"model settings must be a JSON object, found {type(values).__name__}")
        if (found := values.pop("format", None)) != FORMAT:
            raise ModelError(
                f"model settings have format {found!r}, this version reads {FORMAT}; upgrade colbert-prf or export the "
                "model again"
            )
        _check_types(cls, values)
        checked: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**checked)


def _check_types(settings: type[ModelSettings], values: dict[str, Any]) -> None:
    expected = {"str": (str, "a string"), "int": (int, "a whole number"), "bool": (bool, "true or false")}
    known = {item.name: expected.get(str(item.type), (list, "a list of strings")) for item in fields(settings)}
    if unknown := sorted(values.keys() - known):
        raise ModelError(f"model settings have unknown keys {unknown}; known are {sorted(known)}")
    if missing := sorted({"name", "dim"} - values.keys()):
        raise ModelError(f"model settings lack {missing}")
    for key, value in values.items():
        wanted, words = known[key]
        strings = wanted is not list or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        if not isinstance(value, wanted) or isinstance(value, bool) is not (wanted is bool) or not strings:
            raise ModelError(f"model setting {key} must be {words}, found {value!r}")
