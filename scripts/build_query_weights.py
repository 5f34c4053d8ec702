"""Write what the tokens of a query weigh into a model folder: their inverse document frequency to some power.

    python scripts/build_query_weights.py PASSAGES.tsv.gz colbert_prf/encoder/embedded \
        --triples TRIPLES.tsv.gz --without nfcorpus-train

Counts the passages of all sources but those left out, as the model cuts them. Special tokens, such as [CLS] and the
[MASK] that fills a query up, weigh 1. Deterministic.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from colbert_prf.datasets import read_corpus
from colbert_prf.encoder.folder import ModelFolder
from colbert_prf.encoder.rarity import query_weights
from colbert_prf.encoder.tokenization import Tokenization


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", help="in any corpus format")
    parser.add_argument("model", type=Path, help="a model folder")
    parser.add_argument("--triples", type=Path, help="lines of source, question, positive, negative")
    parser.add_argument("--without", nargs="+", default=[], metavar="SOURCE", help="sources to count nothing of")
    parser.add_argument("--power", type=float, default=0.25, help="default: %(default)s")
    arguments = parser.parse_args()
    folder = ModelFolder(arguments.model).check()
    tokenization = Tokenization.from_file(folder.tokenizer_file, folder.read_settings())
    counted = passages_of(arguments.triples, arguments.without) if arguments.triples else None
    frequencies, total = np.zeros(tokenization.vocabulary_size, np.int64), 0
    for document in read_corpus(arguments.passages, empty="skip"):
        if counted is None or document.doc_id in counted:
            frequencies[np.unique(tokenization.document(document.text)[0])] += 1
            total += 1
    weights = query_weights(frequencies, total, power=arguments.power)
    weights[sorted(tokenization.special_ids)] = 1
    np.save(folder.query_weights_file, weights.astype(np.float16))
    print(f"{total:,} passages, {np.count_nonzero(frequencies):,} different tokens; wrote {folder.query_weights_file}")


def passages_of(triples: Path, without: Collection[str]) -> set[str]:
    """The passages of all sources but some."""

    def named() -> Iterator[str]:
        with gzip.open(triples, "rt", encoding="utf-8") as lines:
            for line in lines:
                source, _, positive, negative = line.rstrip("\n").split("\t")
                if source not in without:
                    yield from (positive, negative)

    return set(named())


if __name__ == "__main__":
    main()
