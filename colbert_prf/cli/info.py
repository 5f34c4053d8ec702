"""``colbert-prf info``: what an index or a model is."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.encoder import Encoder
from colbert_prf.encoder.base import may_be_on_the_hub
from colbert_prf.errors import InputError
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import Manifest, kind_of

__all__ = ["info"]

LARGEST_FILES = 4


@click.command(short_help="Show what an index or a model is.")
@click.argument("source", required=False)
@json_option
def info(source: str | None, as_json: bool) -> None:
    """Show what SOURCE is: an index folder of any kind, an index whose build is not finished, or a model; the embedded
    model if none is named.

    \b
    Examples:
      colbert-prf info
      colbert-prf info my.index
      colbert-prf info my-model --json
    """
    if source and Path(source).is_file():
        raise InputError(f"{source}: a file, not a folder; `colbert-prf index {source} OUTPUT` makes an index of it")
    if source and not Path(source).is_dir() and not may_be_on_the_hub(source):
        raise InputError(f"{source}: there is no such index or model folder")
    facts = _facts(source)
    if as_json:
        print_json(facts)
        return
    output = console()
    for name, value in facts.items():
        output.print(f"{name:<24}{_shown_bytes(value) if name == 'num_bytes' else _shown(value)}", markup=False)


def _shown_bytes(sizes: dict[str, int]) -> str:
    """The size of all files, and which are the largest."""
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:LARGEST_FILES]
    parts = [f"{name} {sizes[name]:,}" for name in largest]
    return f"{sum(sizes.values()):,}, of which {', '.join(parts)}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(inner)}" for name, inner in value.items() if inner is not None)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
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
    from colbert_prf.baselines.lexical.manifest import LexicalManifest
    from colbert_prf.baselines.single_vector.snapshot import VectorManifest
    from colbert_prf.index import Index

    layout = IndexLayout.at(path)
    for manifest_type in (LexicalManifest, VectorManifest):
        if kind_of(layout) == manifest_type.KIND:
            return _other_facts(layout, manifest_type.read(layout.manifest))
    return asdict(Index.open(path).info())


def _other_facts(layout: IndexLayout, manifest: Manifest) -> dict[str, Any]:
    """What the manifest of a lexical index, or of one of single vectors, says."""
    sizes: Counter[str] = Counter()
    for segment in manifest.segments:
        sizes.update({name: file.num_bytes for name, file in segment.files.items()})
    own = {name: value for name, value in asdict(manifest).items() if name not in ("generation", "segments")}
    return {
        "path": str(layout.path),
        "kind": manifest.KIND,
        "generation": manifest.generation,
        "num_documents": manifest.num_documents,
        "num_segments": len(manifest.segments),
        **own,
        "num_bytes": dict(sizes),
    }
