"""``colbert-prf info``: what a model is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.encoder import Encoder
from colbert_prf.encoder.base import may_be_on_the_hub
from colbert_prf.errors import InputError
from colbert_prf.storage.layout import IndexLayout

__all__ = ["info"]


@click.command()
@click.argument("source", required=False)
@json_option
def info(source: str | None, as_json: bool) -> None:
    """Show what SOURCE is, an index folder or a model; the embedded model if none is named.

    \b
    Examples:
      colbert-prf info
      colbert-prf info my.index
      colbert-prf info my-model --json
    """
    is_index = source is not None and IndexLayout.at(source).manifest.is_file()
    if source and not Path(source).is_dir() and not may_be_on_the_hub(source):
        raise InputError(f"{source}: there is no such index or model folder")
    facts = _index_facts(source) if source and is_index else _model_facts(source)
    if as_json:
        print_json(facts)
        return
    output = console()
    for name, value in facts.items():
        output.print(f"{name:<24}{_shown(value)}", markup=False)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(_shown, value))
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _model_facts(model: str | None) -> dict[str, Any]:
    encoder = Encoder.load(model)
    sizes = {"vocabulary_size": encoder.vocabulary_size, "fingerprint": encoder.fingerprint}
    return {**asdict(encoder.settings), **sizes}


def _index_facts(path: str) -> dict[str, Any]:
    from colbert_prf.index import Index

    facts = Index.open(path).info()
    return asdict(facts)
