"""Model settings: the markers, lengths, augmentation and skipped tokens that a model was trained with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from colbert_prf.errors import ModelError

__all__ = ["ModelSettings"]

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """How to prepare texts for a ColBERT model, as the ``colbert_prf.json`` of its folder says.

    Parameters
    ----------
    name
        A name for people, which ``colbert-prf info`` shows.
    dim
        Components of a vector.
    query_prefix, document_prefix
        The text before each query or document, with its trailing space: ColBERTv2 has ``"[unused0] "``.
    query_length, document_length
        The most tokens of a text, markers included; the rest is cut.
    augment_to
        The number of tokens to which shorter queries are padded with ``augment_token``; 0 for no padding.
    augment_token
        The padding token, ``[MASK]`` in ColBERT.
    attend_to_augmentation
        Whether the other tokens attend to the padding; in ColBERT they do not.
    skip_tokens
        Document tokens that get no vector, such as punctuation.
    special_tokens
        Tokens that carry no word, such as ``[CLS]``; feedback never adds them to a query.

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
        """Write the settings as JSON with sorted keys, so that equal settings are equal texts."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ModelSettings:
        """Read settings; unknown keys, wrong types and newer formats are a :class:`ModelError`."""
        try:
            values: Any = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ModelError(f"model settings are not JSON: {error}") from error
        if not isinstance(values, dict):
            raise ModelError(f"model settings must be a JSON object, found {type(values).__name__}")
        if (file_format := values.pop("format", None)) != FORMAT:
            raise ModelError(
                f"model settings have format {file_format!r}, this version reads {FORMAT}; upgrade colbert-prf or "
                "export the model again"
            )
        _check_types(cls, values)
        arguments: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**arguments)


def _check_types(settings: type[ModelSettings], values: dict[str, Any]) -> None:
    json_types = {"str": (str, "a string"), "int": (int, "a whole number"), "bool": (bool, "true or false")}
    expected = {item.name: json_types.get(str(item.type), (list, "a list of strings")) for item in fields(settings)}
    if unknown := sorted(values.keys() - expected):
        raise ModelError(f"model settings have unknown keys {unknown}; known are {sorted(expected)}")
    if missing := sorted({"name", "dim"} - values.keys()):
        raise ModelError(f"model settings lack {missing}")
    for key, value in values.items():
        type_, description = expected[key]
        has_strings = type_ is not list or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        if not isinstance(value, type_) or isinstance(value, bool) is not (type_ is bool) or not has_strings:
            raise ModelError(f"model setting {key} must be {description}, found {value!r}")
