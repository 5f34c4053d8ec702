"""Effectiveness of feedback: first pass, Ranker, ReRanker and the variants.

    python benchmarks/effectiveness.py gives DATA --cache DIR
    python benchmarks/effectiveness.py choose DATA --cache DIR
    python benchmarks/effectiveness.py pool DATA --cache DIR --bits 16 --bits 4 --bits 2
    python benchmarks/effectiveness.py given DATA --cache DIR --texts answers.tsv

``gives`` prints the README's table: first pass and Ranker with the defaults at 4 bits on five collections, of which two
chose the defaults; a star marks p < 0.05 of a paired t-test. ``choose`` compares values of ``weight`` and of β on
vaswani, nfcorpus (dev) and scifact, by the best 100 documents at 4 bits: the sets that chose the default. ``pool``
reports on TREC DL 2019 and 2020 over the closed pool of 41,867 passages, with the defaults: nothing was chosen there.
``given`` compares where feedback learns on the same pool: from the best passages of the first pass, from the choice of
a BERT re-ranker (the authors' run of BM25+BERT in DATA/paper-runs), from that choice weighed by its scores, and from
texts: lines of query id, tab, text, such as answers of a language model. DATA has a folder for each collection. Indexes
are made once and kept in the cache.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colbert_prf import CentroidPRF, ColbertPRF, EncodedQuery, Encoder, Feedback, Hit, Index, Ranking, Searcher
from colbert_prf.datasets import read_corpus, read_qrels, read_run, read_topics
from colbert_prf.evaluation import Evaluation, evaluate
from colbert_prf.feedback.weighting import Statistics, inverse_frequency
from colbert_prf.progress import progress_bar
from colbert_prf.types import TokenIds, Vectors

DEPTH, CHOOSING_DEPTH, CHOOSING_BITS = 1000, 100, 4
MEASURES = ("AP", "nDCG@10", "RR", "R@1000")
WEIGHTS = (0.05, 0.1, 0.2, 0.5)
BETAS = (0.02, 0.1)
PAPER: dict[str, Any] = {"feedback_docs": 3, "expansion_vectors": 10, "clustering": "kmeans"}


def near_and_rare(vectors: Vectors, token_ids: TokenIds, statistics: Statistics) -> np.ndarray:
    """A weighting of one's own: IDF times the largest cosine with a vector of the query."""
    rarity = inverse_frequency(statistics.document_frequencies, token_ids, statistics.num_documents)
    return rarity * np.maximum((vectors @ statistics.query.vectors.T).max(axis=1), 0)


SYSTEMS: dict[str, Feedback | None] = {
    "first pass": None,
    "Ranker": ColbertPRF(),
    "ReRanker": ColbertPRF(rerank=True),
    "Ranker, KMeans": ColbertPRF(clustering="kmeans"),
    "Ranker, KMedoids": ColbertPRF(clustering="kmedoids"),
    "Ranker, ICTF": ColbertPRF(weighting="ictf"),
    "Ranker, mean cosine": ColbertPRF(weighting="cosine"),
    "Ranker, IDF × cosine, a function": ColbertPRF(weighting=near_and_rare),
    "CentroidPRF": CentroidPRF(),
    "Ranker, β=0.1 absolute": ColbertPRF(beta=0.1, **PAPER),
    "Ranker, β=1 absolute": ColbertPRF(beta=1.0, **PAPER),
    "compat paper, β=1": ColbertPRF(compat="paper", beta=1.0, **PAPER),
    "compat paper, β=0.1": ColbertPRF(compat="paper", beta=0.1, **PAPER),
}


@dataclass(frozen=True)
class Topics:
    """Questions with judgements over a collection; grades from ``relevance`` on are relevant."""

    collection: str
    queries: str
    judgements: str
    relevance: int = 1

    def read(self, data: Path) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
        """The judged questions and their judgements."""
        folder = data / self.collection
        qrels = {query: dict(grades) for query, grades in read_qrels(folder / self.judgements).items()}
        topics = {query: text for query, text in read_topics(folder / self.queries).items() if query in qrels}
        return topics, {query: qrels[query] for query in topics}


CHOOSING = {
    "dl21": Topics("msmarco-v2-dl21", "queries.tsv", "qrels.txt", relevance=2),
    "vaswani": Topics("vaswani", "queries.tsv", "qrels.txt"),
    "nfcorpus dev": Topics("nfcorpus", "dev.queries.tsv", "dev.qrels.txt"),
    "scifact": Topics("scifact", "queries.tsv", "qrels.txt"),
}
POOL = {
    "DL19": Topics("msmarco-dl1920", "queries.dl19.tsv", "qrels.dl19.txt", relevance=2),
    "DL20": Topics("msmarco-dl1920", "queries.dl20.tsv", "qrels.dl20.txt", relevance=2),
}
GIVES = {
    "TREC DL 2019, pool of 41,867 passages": POOL["DL19"],
    "TREC DL 2020, the same pool": POOL["DL20"],
    "NFCorpus, test": Topics("nfcorpus", "queries.tsv", "qrels.txt"),
    "TREC DL 2021, pool of MS MARCO v2 (chose the defaults)": CHOOSING["dl21"],
    "Vaswani (chose the defaults)": CHOOSING["vaswani"],
}
GIVES_BITS = 4
JUDGES = {"DL19": "paper-runs/bm25_VBERT.2019.res.gz", "DL20": "paper-runs/bm25_VBERT.2020.res.gz"}
JUDGED_DOCS = 3
"""Passages a judge teaches from: with one there is nothing to weigh."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gives", "choose", "pool", "given"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--bits", type=int, action="append", help="default: 16; may be given several times")
    parser.add_argument("--report", type=Path, help="pool: write wins and losses of each query to this Markdown file")
    parser.add_argument("--texts", type=Path, help="given: texts to learn from, query id and text by a tab")
    arguments = parser.parse_args()
    if arguments.what == "gives":
        report_gains(arguments.data, arguments.cache)
    elif arguments.what == "choose":
        choose(arguments.data, arguments.cache)
    elif arguments.what == "given":
        for bits in arguments.bits or [16]:
            report_given(arguments.data, arguments.cache, bits, arguments.texts)
    else:
        for bits in arguments.bits or [16]:
            report_pool(arguments.data, arguments.cache, bits, arguments.report if bits == 16 else None)


def open_searcher(data: Path, cache: Path, collection: str, bits: int, encoder: Encoder | None = None) -> Searcher:
    """Search a collection, indexed once; with the embedded model if no other is given."""
    path, encoder = cache / f"{collection}.{bits}.index", encoder or Encoder.load()
    if path.exists():
        return Searcher(Index.open(path, encoder=encoder))
    documents = read_corpus(data / collection / "collection.tsv.gz", empty="keep")
    return Searcher(Index.create(path, documents, encoder=encoder, bits=bits))


def encode(searcher: Searcher, topics: Mapping[str, str]) -> dict[str, EncodedQuery]:
    return dict(zip(topics, searcher.encoder.encode_queries(topics.values()), strict=True))


def answers(
    searcher: Searcher, queries: Mapping[str, EncodedQuery], feedback: Feedback | None, label: str, depth: int = DEPTH
) -> Iterator[tuple[str, Ranking]]:
    with progress_bar(label, total=len(queries)) as advance:
        for query_id, query in queries.items():
            yield query_id, searcher.search(query, k=depth, feedback=feedback)
            advance(1)


def as_run(rankings: Iterable[tuple[str, Ranking]]) -> dict[str, dict[str, float]]:
    return {query_id: {hit.doc_id: hit.score for hit in ranking} for query_id, ranking in rankings}


def report_gains(data: Path, cache: Path) -> None:
    """What feedback gives on each collection, with its gain; a star where a paired t-test finds p < 0.05."""
    print("| collection | AP: first pass | with feedback | nDCG@10: first pass | with feedback |")
    print("|---|---|---|---|---|")
    for name, topics in GIVES.items():
        searcher = open_searcher(data, cache, topics.collection, GIVES_BITS)
        texts, qrels = topics.read(data)
        queries = encode(searcher, texts)
        runs = {
            label: as_run(answers(searcher, queries, SYSTEMS[label], f"{name}, {label}"))
            for label in ("first pass", "Ranker")
        }
        result = evaluate(qrels, runs, MEASURES[:2], relevance=topics.relevance, baselines=["first pass"])
        cells = [cell for measure in MEASURES[:2] for cell in gain_cells(result, measure)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def gain_cells(result: Evaluation, measure: str) -> tuple[str, str]:
    before, after = (result.mean(system, measure) for system in ("first pass", "Ranker"))
    (compared,) = result.compared("Ranker", measure)
    gain = f" ({after / before - 1:+.1%})" if before else ""
    return f"{before:.4f}", f"{after:.4f}{gain}{'*' if compared.p_value < result.alpha else ''}"


def choose(data: Path, cache: Path) -> None:
    """A table of weights and of β for each choosing set."""
    rows: dict[str, list[str]] = {}
    for name, topics in CHOOSING.items():
        searcher = open_searcher(data, cache, topics.collection, CHOOSING_BITS)
        texts, qrels = topics.read(data)
        queries = encode(searcher, texts)
        methods: dict[str, Feedback | None] = {"first pass": None}
        methods |= {f"weight={weight}": ColbertPRF(weight=weight) for weight in WEIGHTS}
        methods |= {f"β={beta}": ColbertPRF(beta=beta) for beta in BETAS}
        methods |= {f"CentroidPRF weight={weight}": CentroidPRF(weight=weight) for weight in WEIGHTS[1:3]}
        runs = {
            label: as_run(answers(searcher, queries, method, f"{name}, {label}", CHOOSING_DEPTH))
            for label, method in methods.items()
        }
        result = evaluate(qrels, runs, MEASURES[:2], relevance=topics.relevance)
        for label in methods:
            rows.setdefault(label, []).extend(f"{result.mean(label, measure):.4f}" for measure in MEASURES[:2])
    print("| | " + " | ".join(f"{name} {measure}" for name in CHOOSING for measure in MEASURES[:2]) + " |")
    print("|---" * (1 + 2 * len(CHOOSING)) + "|")
    for label, cells in rows.items():
        print(f"| {label} | {' | '.join(cells)} |")


def report_pool(data: Path, cache: Path, bits: int, report: Path | None) -> None:
    """A table of every system on both years, and if wanted a report of each query."""
    searcher = open_searcher(data, cache, "msmarco-dl1920", bits)
    results: dict[str, Evaluation] = {}
    for year, topics in POOL.items():
        texts, qrels = topics.read(data)
        queries = encode(searcher, texts)
        rankings = {
            label: dict(answers(searcher, queries, method, f"{year}, {label}")) for label, method in SYSTEMS.items()
        }
        runs = {label: as_run(found.items()) for label, found in rankings.items()}
        results[year] = evaluate(qrels, runs, MEASURES, relevance=topics.relevance)
        if report:
            write_report(
                report.with_stem(f"{report.stem}-{year}"), year, texts, rankings["Ranker"], results[year], searcher
            )
    print_pool(searcher, bits, results)


def print_pool(searcher: Searcher, bits: int, results: Mapping[str, Evaluation]) -> None:
    """A row for each system, on both years."""
    print(f"\nbits={bits}, closed pool of {searcher.index.num_documents:,} passages\n")
    print("| | " + " | ".join(f"{year} {measure}" for year in POOL for measure in ("MAP", *MEASURES[1:])) + " |")
    print("|---" * (1 + len(POOL) * len(MEASURES)) + "|")
    for label in results["DL19"].systems:
        cells = [f"{results[year].mean(label, measure):.4f}" for year in POOL for measure in MEASURES]
        print(f"| {label} | {' | '.join(cells)} |")


def report_given(data: Path, cache: Path, bits: int, texts_path: Path | None) -> None:
    """A table of where feedback learns: the same method, from what the first pass, a judge or a text file gives."""
    searcher = open_searcher(data, cache, "msmarco-dl1920", bits)
    results: dict[str, Evaluation] = {}
    for year, topics in POOL.items():
        texts, qrels = topics.read(data)
        queries, judge = encode(searcher, texts), read_run(data / JUDGES[year])
        runs = {
            label: as_run((query_id, search(query_id, query)) for query_id, query in queries.items())
            for label, search in given_systems(searcher, judge, given_texts(texts_path)).items()
        }
        results[year] = evaluate(qrels, runs, MEASURES, relevance=topics.relevance)
    print_pool(searcher, bits, results)


def given_systems(
    searcher: Searcher, judge: Mapping[str, Mapping[str, float]], texts: Mapping[str, list[str]]
) -> dict[str, Callable[[str, EncodedQuery], Ranking]]:
    """Searches for a query by its id and vectors."""
    index, several = searcher.index, ColbertPRF(feedback_docs=JUDGED_DOCS)

    def judged(query_id: str, query: EncodedQuery, *, weighed: bool) -> Ranking:
        # The run has probabilities, of which a softmax would make nothing; it is meant for the logits.
        found = [(doc_id, logit(score)) for doc_id, score in judge.get(query_id, {}).items()]
        ranking = Ranking(query, tuple(Hit(*pair) for pair in found if index.snapshot.find(pair[0]) is not None))
        return searcher.search(several.expand(query, ranking, index, weighed=weighed).query, DEPTH)

    systems: dict[str, Callable[[str, EncodedQuery], Ranking]] = {
        "first pass": lambda query_id, query: searcher.search(query, DEPTH),
        "1 passage of the first pass (default)": lambda query_id, query: searcher.search(query, DEPTH, feedback="prf"),
        f"{JUDGED_DOCS} of the first pass": lambda query_id, query: searcher.search(query, DEPTH, feedback=several),
        f"{JUDGED_DOCS} chosen by BERT": lambda query_id, query: judged(query_id, query, weighed=False),
        f"{JUDGED_DOCS} chosen and weighed by BERT": lambda query_id, query: judged(query_id, query, weighed=True),
    }
    if texts:
        for label, both in (("the texts", False), ("the texts and the best passage", True)):
            systems[label] = lambda query_id, query, both=both: searcher.search(  # type: ignore[misc]
                query, DEPTH, feedback="prf", feedback_texts=texts[query_id], with_passages=both
            )
    return systems


def logit(probability: float) -> float:
    kept = min(max(probability, 1e-9), 1 - 1e-9)
    return math.log(kept / (1 - kept))


def given_texts(path: Path | None) -> dict[str, list[str]]:
    """The texts of each query id."""
    texts: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path else ():
        query_id, text = line.split("\t", 1)
        texts.setdefault(query_id, []).append(text)
    return texts


def write_report(
    path: Path,
    year: str,
    texts: Mapping[str, str],
    rankings: Mapping[str, Ranking],
    result: Evaluation,
    searcher: Searcher,
) -> None:
    """Wins and losses of the Ranker, with the expansions of the ten largest of each."""
    before, after = (result.per_query(system, "AP") for system in ("first pass", "Ranker"))
    change = {query: after[query] - before[query] for query in after}
    order = sorted(change, key=lambda query: -change[query])
    wins, losses = [q for q in order if change[q] > 0], [q for q in reversed(order) if change[q] < 0]
    lines = [
        f"# {year}: what feedback changed",
        "",
        f"{len(wins)} queries gained average precision, {len(losses)} lost.",
    ]
    for title, chosen in (("Largest gains", wins[:10]), ("Largest losses", losses[:10])):
        lines += ["", f"## {title}", "", "| query | AP before | after | expansion |", "|---|---|---|---|"]
        for query in chosen:
            expansion = rankings[query].expansion
            added = expansion.vectors if expansion else ()
            words = ", ".join(
                "(" + "|".join(searcher.encoder.tokens([t for t, _ in vector.likely[:2]])).replace("|", "\\|") + ")"
                for vector in added
            )
            lines.append(f"| {texts[query]} | {before[query]:.3f} | {after[query]:.3f} | {words} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
