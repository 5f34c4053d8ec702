"""``colbert-prf info``: what a model is."""

from __future__ import annotations

from dataclasses import asdict

import click

from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.encoder import Encoder

__all__ = ["info"]


@click.command()
@click.argument("model", required=False)
@json_option
def info(model: str | None, as_json: bool) -> None:
    """Show the settings and the fingerprint of MODEL; of the embedded model if none is named.

    \b
    Examples:
      colbert-prf info
      colbert-prf info my-model --json
    """
    encoder = Encoder.load(model)
    facts = {**asdict(encoder.settings), "vocabulary_size": encoder.vocabulary_size, "fingerprint": encoder.fingerprint}
    if as_json:
        print_json(facts)
        return
    output = console()
    for name, value in facts.items():
        shown = " ".join(value) if isinstance(value, tuple) else value
        output.print(f"{name:<24}{shown!s}", markup=False)
