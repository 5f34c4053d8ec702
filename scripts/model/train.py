"""Train the last layer of a model, and with ``--layers`` the last layers of the network before it, by distillation.

    python scripts/model/train.py ../shared/data --bases FOLDER --cache CACHE --base answerai --dim 96
    python scripts/model/train.py ../shared/data --bases FOLDER --cache CACHE --base answerai --dim 96 --layers 2

The layers below stay as they are, so their states are computed once. What is trained learns to rank the passages of a
question as the cross-encoder does (Kullback-Leibler divergence over the scores of ``teach.py``) and to find the best of
them among the passages of the other questions of the batch (cross-entropy). The projection starts from PCA, or with
``--layers`` from the one trained without. The state of the lowest loss over held-out questions is kept in
CACHE/BASE/head-DIM-LAYERS.npz.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bases import BASES, Base, States
from distill import CONTRAST, Example, losses, maxsim, read_examples
from numpy.typing import NDArray
from projection import pca_head
from sets import SEED, read_set
from transformers import BertModel

Tensor = torch.Tensor


class Model(torch.nn.Module):
    """The last layers of a network and a projection, over the states of the layers below."""

    def __init__(self, base: Base, layers: int, projection: NDArray[np.float32], scale: float = 1.0) -> None:
        super().__init__()
        self.encoder = None
        if layers:
            network = BertModel.from_pretrained(base.checkpoint, add_pooling_layer=False)
            self.encoder = network.encoder
            self.encoder.layer = self.encoder.layer[-layers:]
            self.encoder.eval()
        self.projection = torch.nn.Parameter(torch.tensor(projection))
        self.scale = torch.nn.Parameter(torch.tensor(scale))

    def forward(self, states: Tensor, attended: Tensor) -> Tensor:
        """Unit vectors, of shape (num_texts, length, dim)."""
        if self.encoder is not None:
            mask = torch.where(attended, 0.0, torch.finfo(torch.float32).min)[:, None, None]
            states = self.encoder(states, attention_mask=mask)[0]
        return torch.nn.functional.normalize(states @ self.projection.T, dim=-1)

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}


class Side:
    """The states of the questions or of the passages of the training set, by id."""

    def __init__(self, base: Base, side: str, texts: dict[str, str]) -> None:
        self.states: States = base.states("train", side, list(texts.values()))
        self.places = {name: place for place, name in enumerate(texts)}
        self.filling = base.filling_id

    def padded(self, names: list[str]) -> tuple[Tensor, Tensor, Tensor]:
        """States, where there is a vector, and which of these are attended to."""
        parts = [self.states.of(self.places[name]) for name in names]
        shape = (len(parts), max(part.stop - part.start for part in parts))
        states = np.zeros((*shape, self.states.vectors.shape[1]), dtype=np.float32)
        token_ids = np.full(shape, -1, dtype=np.int32)
        for row, part in enumerate(parts):
            length = part.stop - part.start
            states[row, :length] = self.states.vectors[part]
            token_ids[row, :length] = self.states.token_ids[part]
        there = token_ids >= 0
        return torch.tensor(states), torch.tensor(there), torch.tensor(there & (token_ids != self.filling))


def batch_losses(model: Model, queries: Side, documents: Side, examples: list[Example]) -> Any:
    doc_ids = list(dict.fromkeys(doc_id for example in examples for doc_id in example.documents))
    states, there, attended = documents.padded(doc_ids)
    vectors = model(states, attended)
    states, asked, attended = queries.padded([example.query for example in examples])
    scores = maxsim(model(states, attended), asked, vectors, there) * model.scale.exp()
    return losses(scores, examples, {doc_id: column for column, doc_id in enumerate(doc_ids)})


def fit(model: Model, queries: Side, documents: Side, arguments: argparse.Namespace, output: Path) -> None:
    """Train, and write the best state whenever there is a better one."""
    training, validation = read_examples(arguments.cache / "taught.jsonl")
    validation = validation[: arguments.validation]
    groups = [{"params": [model.projection], "lr": arguments.rate}, {"params": [model.scale], "lr": 1e-2}]
    if model.encoder is not None:
        groups.append({"params": list(model.encoder.parameters()), "lr": arguments.layer_rate})
    optimizer = torch.optim.Adam(groups)
    steps_planned = arguments.epochs * (len(training) // arguments.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.02, 1 - step / steps_planned))

    def validate() -> list[float]:
        with torch.no_grad():
            parts = [
                batch_losses(model, queries, documents, validation[begin : begin + arguments.batch])
                for begin in range(0, len(validation), arguments.batch)
            ]
        return [float(np.mean([float(part[i]) for part in parts])) for i in (0, 1)]

    def note(step: int, best: float) -> float:
        found = validate()
        loss = found[0] + CONTRAST * found[1]
        print(
            json.dumps({"step": step, "validation": found, "loss": loss, "seconds": round(time.monotonic() - started)}),
            flush=True,
        )
        return min(best, loss)

    started = time.monotonic()
    best = note(0, np.inf)
    np.savez(output, **model.tensors())
    drawing, step = random.Random(SEED), 0
    for _ in range(arguments.epochs):
        drawing.shuffle(training)
        for begin in range(0, len(training) - arguments.batch + 1, arguments.batch):
            examples = [shortened(e, arguments.passages, drawing) for e in training[begin : begin + arguments.batch]]
            divergence, contrast = batch_losses(model, queries, documents, examples)
            optimizer.zero_grad()
            (divergence + CONTRAST * contrast).backward()
            optimizer.step()
            schedule.step()
            step += 1
            if step % arguments.validate_every and step != steps_planned:
                continue
            if (loss := note(step, best)) < best:
                best = loss
                np.savez(output, **model.tensors())


def shortened(example: Example, passages: int, drawing: random.Random) -> Example:
    """An example with its first passage and some of the others."""
    if passages >= len(example.documents):
        return example
    places = [0, *sorted(drawing.sample(range(1, len(example.documents)), passages - 1))]
    return Example(example.query, tuple(example.documents[i] for i in places), tuple(example.scores[i] for i in places))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bases", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--base", choices=[*BASES], required=True)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--layers", type=int, default=0, help="of the network, the last ones (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=24, help="questions a step (default: %(default)s)")
    parser.add_argument("--passages", type=int, default=8, help="of a question in a step (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=1e-3, help="of the projection (default: %(default)s)")
    parser.add_argument("--layer-rate", type=float, default=2e-5, help="of the layers (default: %(default)s)")
    parser.add_argument("--validation", type=int, default=300, help="questions to validate on (default: %(default)s)")
    parser.add_argument("--validate-every", type=int, default=100, metavar="STEPS")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    base = Base(arguments.base, arguments.bases, arguments.cache, without=arguments.layers)
    texts = read_set(arguments.data, "train")
    queries, documents = Side(base, "queries", texts.queries), Side(base, "documents", texts.documents)
    if arguments.layers:
        trained = np.load(head_file(arguments.cache, base.name, arguments.dim, 0))
        model = Model(base, arguments.layers, trained["projection"], float(trained["scale"]))
    else:
        model = Model(base, 0, pca_head(documents.states, arguments.dim))
    output = head_file(arguments.cache, base.name, arguments.dim, arguments.layers)
    fit(model, queries, documents, arguments, output)


def head_file(cache: Path, base: str, dim: int, layers: int) -> Path:
    return cache / base / f"head-{dim}-{layers}.npz"


if __name__ == "__main__":
    main()
