"""The last layer of a model: a linear projection of hidden states, from PCA or trained by distillation.

    python scripts/model/head.py ../shared/data --bases FOLDER --cache CACHE --base answerai --dim 96

Hidden states stay as they are; only the projection is trained, from PCA on, to rank the passages of a question as the
cross-encoder does (Kullback-Leibler divergence over the scores of ``teach.py``) and to find a passage that answers it
among those of the other questions of the batch (cross-entropy). It is kept as CACHE/BASE/head-DIM.npz.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sets import SEED, read_set

BATCH = 24
TEMPERATURE = 2.0
"""Of the teacher's scores, which lie between -11 and 11."""
VALIDATION = 150


def pca_head(states: Any, dim: int, *, rarity: float = 0.5, sample: int = 300_000) -> NDArray[np.float32]:
    """The directions of largest second moment, not centred, rare tokens weighing more; of shape (dim, size)."""
    from colbert_prf.training.projection import principal_components, rarity_weights

    step = max(1, len(states.vectors) // sample)
    vectors = np.asarray(states.vectors[::step], dtype=np.float32)
    weights = rarity_weights(np.asarray(states.token_ids[::step], dtype=np.int64), rarity)
    directions, _, _ = principal_components(vectors, dim=dim, centred=False, weights=weights)
    return directions.astype(np.float32)


def project(
    states: NDArray[Any], projection: NDArray[np.float32], bias: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Unit vectors of states, a part at a time."""
    vectors = np.empty((len(states), len(projection)), dtype=np.float32)
    for begin in range(0, len(states), 100_000):
        part = np.asarray(states[begin : begin + 100_000], dtype=np.float32) @ projection.T
        if bias is not None:
            part += bias
        vectors[begin : begin + 100_000] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def train(data: Path, cache: Path, base: Any, dim: int, *, epochs: int, rate: float, imitation: float) -> None:
    import torch

    texts = read_set(data, "train")
    queries = base.states("train", "queries", list(texts.queries.values()))
    documents = base.states("train", "documents", list(texts.documents.values()))
    query_places = {query: place for place, query in enumerate(texts.queries)}
    places = {doc_id: place for place, doc_id in enumerate(texts.documents)}
    taught = [json.loads(line) for line in (cache / "taught.jsonl").read_text().splitlines()]
    random.Random(SEED).shuffle(taught)
    validation, training = taught[:VALIDATION], taught[VALIDATION:]
    torch.manual_seed(SEED)
    start = torch.tensor(pca_head(documents, dim))
    projection = start.clone().requires_grad_()
    scale = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.Adam([{"params": [projection], "lr": rate}, {"params": [scale], "lr": 1e-2}])

    def unit(states: NDArray[Any]) -> Any:
        return torch.nn.functional.normalize(torch.tensor(np.asarray(states, np.float32)) @ projection.T, dim=-1)

    def loss_of(examples: list[dict[str, Any]]) -> tuple[Any, Any]:
        doc_ids = list(dict.fromkeys(doc_id for example in examples for doc_id in example["documents"]))
        column = {doc_id: number for number, doc_id in enumerate(doc_ids)}
        parts = [documents.of(places[doc_id]) for doc_id in doc_ids]
        lengths = torch.tensor([part.stop - part.start for part in parts])
        rows = unit(np.concatenate([documents.vectors[part] for part in parts]))
        owners = torch.repeat_interleave(torch.arange(len(parts)), lengths)
        kl, ce = [], []
        for example in examples:
            query = unit(queries.vectors[queries.of(query_places[example["query"]])])
            similar = query @ rows.T
            best = torch.full((len(query), len(parts)), -2.0).scatter_reduce(
                1, owners.expand(len(query), -1), similar, "amax"
            )
            scores = best.sum(0) * scale.exp()
            own = torch.tensor([column[doc_id] for doc_id in example["documents"]])
            given = torch.tensor(example["scores"]) / TEMPERATURE
            target, found = torch.log_softmax(given, 0), torch.log_softmax(scores[own], 0)
            kl.append((target.exp() * (target - found)).sum())
            others = torch.ones(len(parts), dtype=torch.bool)
            others[own] = False
            first = scores[own[int(given.argmax())]]
            ce.append(torch.logsumexp(torch.cat([first[None], scores[others]]), 0) - first)
        return torch.stack(kl).mean(), torch.stack(ce).mean()

    def validate() -> tuple[float, float]:
        with torch.no_grad():
            found = [loss_of(validation[i : i + BATCH]) for i in range(0, len(validation), BATCH)]
        return tuple(float(np.mean([float(part[i]) for part in found])) for i in (0, 1))  # type: ignore[return-value]

    best = (sum(validate()), start.numpy().copy())
    print(json.dumps({"epoch": 0, "validation": validate()}), flush=True)
    for epoch in range(epochs):
        random.Random(SEED + epoch).shuffle(training)
        for begin in range(0, len(training), BATCH):
            kl, ce = loss_of(training[begin : begin + BATCH])
            loss = kl + 0.5 * ce + imitation * ((projection - start) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found = validate()
        print(json.dumps({"epoch": epoch + 1, "validation": found, "scale": float(scale.exp())}), flush=True)
        if sum(found) < best[0]:
            best = (sum(found), projection.detach().numpy().copy())
    np.savez(cache / base.name / f"head-{dim}.npz", projection=best[1], pca=start.numpy())


def main() -> None:
    from bases import BASES, Base

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bases", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--base", choices=[*BASES], required=True)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--imitation", type=float, default=0.0, help="how much leaving the PCA costs")
    arguments = parser.parse_args()
    base = Base(arguments.base, arguments.bases, arguments.cache)
    train(
        arguments.data,
        arguments.cache,
        base,
        arguments.dim,
        epochs=arguments.epochs,
        rate=arguments.rate,
        imitation=arguments.imitation,
    )


if __name__ == "__main__":
    main()
