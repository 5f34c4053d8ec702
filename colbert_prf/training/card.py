"""The model card: what a trained model is, what it learnt from and how well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colbert_prf.version import __version__

__all__ = ["write_card"]

_OPENING = {
    "ColBERT": "A ColBERT model: a unit vector for each token, texts compared by MaxSim.",
    "cross-encoder": "A cross-encoder: it reads a question and a passage together and gives a score.",
}
_USE = {
    "ColBERT": "    colbert-prf index passages.tsv my.index --model {name}\n"
    '    colbert-prf search my.index "a question"',
    "cross-encoder": "    from sentence_transformers import CrossEncoder\n"
    '    CrossEncoder("{name}/checkpoint").predict([("a question", "a passage")])',
}


def write_card(folder: Path, *, name: str, kind: str, record: Mapping[str, Any], num_examples: int) -> None:
    """Write ``README.md`` into the folder of a model.

    Parameters
    ----------
    folder
        Of the model.
    name
        Of the model.
    kind
        ``"ColBERT"`` or ``"cross-encoder"``.
    record
        What ``training.json`` holds.
    num_examples
        How many the model learnt from.
    """
    fitted = record["fitted"]
    lines = [f"# {name}", "", _OPENING[kind], "", "## Use", "", _USE[kind].format(name=name), "", "## Training", ""]
    rows = {
        "base": record["base"],
        "made with": f"colbert-prf {__version__}",
        "examples": f"{num_examples:,}, digest `{record['examples']}`",
        "parameters trained": f"{record['parameters_trained']:,}",
        "steps": f"{fitted['steps']:,}",
        **record["settings"],
        **record.get("form", {}),
        "exported as": "int8 ONNX" if record["int8"] else "float32 ONNX",
    }
    lines += ["| | |", "|---|---|", *(f"| {key.replace('_', ' ')} | {_cell(value)} |" for key, value in rows.items())]
    lines += _table("Loss", "mean loss since the line before", fitted["losses"][-10:])
    if fitted["validation"]:
        lines += _table("Validation", "mean reciprocal rank of the positive", fitted["validation"])
        lines += ["", "Step 0 is the model before training; the best state was kept."]
    lines += [
        "",
        "## Limits",
        "",
        "The validation, if any, ranks the passages of each example only; it says nothing about a whole collection.",
        "Licence and origin of the base and of the examples are yours to add here.",
    ]
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(title: str, measure: str, rows: Any) -> list[str]:
    return ["", f"## {title}", "", f"| step | {measure} |", "|---|---|", *(f"| {s:,} | {v:.4f} |" for s, v in rows)]


def _cell(value: Any) -> str:
    return "–" if value is None else str(value).replace("|", "\\|")
