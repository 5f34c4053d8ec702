"""``colbert-prf export``: a PyTorch checkpoint to a folder that needs no PyTorch."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from colbert_prf.cli.output import console, json_option, print_json

__all__ = ["export"]


@click.command(short_help="Turn a ColBERT checkpoint into an ONNX model.")
@click.argument("model")
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--int8", is_flag=True, help="Quantize to 8 bits: a quarter of the size and faster, slightly less exact.")
@json_option
def export(model: str, output: Path, int8: bool, as_json: bool) -> None:
    """Write MODEL, any ColBERT checkpoint, as a folder OUTPUT that opens without PyTorch.

    MODEL is a folder or a name on the hub, in Stanford's, PyLate's or sentence-transformers' format. The vectors are
    checked against PyTorch on sample texts before OUTPUT appears. Needs the extra [hub].

    \b
    Examples:
      colbert-prf export colbert-ir/colbertv2.0 colbertv2 --int8
      colbert-prf search passages.tsv "do goldfish grow" --model colbertv2
    """
    from colbert_prf.encoder.export import export_model

    agreement = export_model(model, output, int8=int8)
    if as_json:
        print_json({"output": str(output), **asdict(agreement)})
        return
    console().print(
        f"Wrote {output}. Against PyTorch on sample texts: largest difference {agreement.largest_difference:.2g}, "
        f"smallest cosine {agreement.smallest_cosine:.4f}, mean cosine {agreement.mean_cosine:.4f}."
    )
