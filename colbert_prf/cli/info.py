"""``colbert-prf info``: what an index or a model is."""

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
    """Show what SOURCE is: an index folder, an index whose build is not finished, or a model; the embedded model if
    none is named.

    \b
    Examples:
      colbert-prf info
      colbert-prf info my.index
      colbert-prf info my-model --json
    """
    if source and not Path(source).is_dir() and not may_be_on_the_hub(source):
        raise InputError(f"{source}: there is no such index or model folder")
    facts = _facts(source)
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


def _facts(source: str | None) -> dict[str, Any]:
    if source is None:
        return _model_facts(source)
    layout = IndexLayout.at(source)
    if layout.manifest.is_file():
        return _index_facts(source)
    return _unfinished_facts(layout) or _model_facts(source)


def _unfinished_facts(layout: IndexLayout) -> dict[str, Any] | None:
    """What is known of an index whose build was interrupted, or is under way."""
    from colbert_prf.index.build_state import unfinished_build

    if (state := unfinished_build(layout)) is None:
        return None
    return {
        "path": str(layout.path),
        "unfinished": True,
        "num_documents": state.num_documents,
        "num_vectors": sum(part.num_vectors for part in (*state.segments, *state.chunks)),
        "bits": state.settings.bits,
        "model": asdict(state.settings.model),
        "to_continue": f"colbert-prf index CORPUS {layout.path} --resume, with the corpus and options of the build",
    }


def _model_facts(model: str | None) -> dict[str, Any]:
    encoder = Encoder.load(model)
    sizes = {"vocabulary_size": encoder.vocabulary_size, "fingerprint": encoder.fingerprint}
    return {**asdict(encoder.settings), **sizes}


def _index_facts(path: str) -> dict[str, Any]:
    from colbert_prf.index import Index

    facts = Index.open(path).info()
    return asdict(facts)
