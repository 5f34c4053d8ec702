"""Read what a model learns from: a question, a passage that answers it, passages that do not."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from colbert_prf.datasets.opening import Source, read_lines
from colbert_prf.datasets.writing import open_replacement
from colbert_prf.encoder.text import valid_document
from colbert_prf.errors import DatasetError

__all__ = ["Example", "read_examples", "write_examples"]

_KEYS = {"query", "documents", "scores"}


@dataclass(frozen=True)
class Example:
    """A question with its passages, the positive one first.

    Parameters
    ----------
    query
        The question.
    documents
        A passage that answers it, then passages that do not.
    scores
        What a teacher gives each passage; empty without a teacher.
    """

    query: str
    documents: tuple[str, ...]
    scores: tuple[float, ...] = ()


def read_examples(
    sources: Iterable[Source],
    *,
    queries: Mapping[str, str] | None = None,
    collection: Mapping[str, str] | None = None,
    negatives: int | None = None,
) -> Iterator[Example]:
    r"""Read triples, one file after another, each line checked as it is read.

    A line of TSV is ``query<TAB>positive<TAB>negative``, with as many negatives as there are; a line of JSON is
    ``{"query": …, "documents": [positive, negative, …], "scores": […]}``, where the scores may be left out. What a line
    begins with, ``{`` or not, tells which it is.

    Parameters
    ----------
    sources
        Paths, or ``-`` for standard input; plain, gzip or zstd.
    queries, collection
        Texts by id; with them the lines hold ids.
    negatives
        How many negatives an example must have; by default as many as the first one has.

    Raises
    ------
    DatasetError
        With file and line: a wrong number of columns, an empty text, an unknown id, a passage that stands twice in an
        example, scores that are missing, not finite or of another number than the passages.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "triples.tsv")
    ...     _ = path.write_text("do fish grow\tGoldfish do.\tBank rates fell.\n")
    ...     list(read_examples([path]))
    [Example(query='do fish grow', documents=('Goldfish do.', 'Bank rates fell.'), scores=())]
    """
    first: Example | None = None
    for name, line, example in chain.from_iterable(_examples(source) for source in sources):
        example = Example(
            _text(example.query, queries, "query", name, line),
            tuple(_text(document, collection, "document", name, line) for document in example.documents),
            example.scores,
        )
        _check_documents(example, name, line)
        if first is None:
            first, negatives = example, len(example.documents) - 1 if negatives is None else negatives
        if len(example.documents) - 1 != negatives:
            message = f"expected {negatives} negatives, found {len(example.documents) - 1}; give every example as many"
            raise DatasetError(message, path=name, line=line)
        if bool(example.scores) != bool(first.scores):
            raise DatasetError("some examples have scores and others none; give all of them some", path=name, line=line)
        yield example
    if first is None:
        raise DatasetError("no example found; there is nothing to learn from")


def write_examples(path: Source, examples: Iterable[Example]) -> int:
    """Write examples as JSON lines, compressed as the name says; the file appears when it is complete.

    Returns
    -------
    int
        How many.
    """
    count = 0
    with open_replacement(os.fspath(path)) as write:
        for example in examples:
            fields: dict[str, object] = {"query": example.query, "documents": example.documents}
            if example.scores:
                fields["scores"] = example.scores
            write(json.dumps(fields, ensure_ascii=False) + "\n")
            count += 1
    return count


def _examples(source: Source) -> Iterator[tuple[str, int, Example]]:
    """Split lines; ids and texts are looked at later."""
    name = os.fspath(source)
    for number, line in read_lines(source):
        if line.strip():
            yield name, number, _from_json(line, name, number) if line.startswith("{") else _from_tsv(line)


def _from_tsv(line: str) -> Example:
    query, *documents = line.split("\t")
    return Example(query, tuple(documents))


def _from_json(line: str, name: str, number: int) -> Example:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise DatasetError(f"not valid JSON: {error}; write one object a line", path=name, line=number) from None
    if unknown := sorted(fields.keys() - _KEYS):
        raise DatasetError(f"unknown field {unknown[0]!r}; known are {sorted(_KEYS)}", path=name, line=number)
    query, documents, scores = fields.get("query"), fields.get("documents"), fields.get("scores", [])
    if not isinstance(query, str) or not _all_are(documents, str):
        message = "expected 'query', a string, and 'documents', a list of strings, the positive first"
        raise DatasetError(message, path=name, line=number)
    if not _all_are(scores, (int, float)) or any(isinstance(score, bool) for score in scores):
        raise DatasetError(f"'scores' must be a list of numbers, found {scores!r}", path=name, line=number)
    if scores and len(scores) != len(documents):
        message = f"{len(documents)} documents have {len(scores)} scores; give one for each"
        raise DatasetError(message, path=name, line=number)
    if any(not math.isfinite(score) for score in scores):
        raise DatasetError(f"'scores' must be finite, found {scores!r}", path=name, line=number)
    return Example(query, tuple(documents), tuple(float(score) for score in scores))


def _all_are(values: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str) and all(isinstance(v, kind) for v in values)


def _text(value: str, texts: Mapping[str, str] | None, noun: str, name: str, line: int) -> str:
    """The text itself, or the text of an id."""
    if texts is not None and value not in texts:
        raise DatasetError(f"no {noun} has the id {value[:60]!r}; check the ids", path=name, line=line)
    text = value if texts is None else texts[value]
    if text != valid_document(text):
        message = f"a {noun} holds half of a surrogate pair, which is not text; repair it"
        raise DatasetError(message, path=name, line=line)
    if not text.strip():
        which = f"the {noun} {value!r}" if texts is not None else f"a {noun}"
        raise DatasetError(f"{which} has no text; write one, or remove the line", path=name, line=line)
    return text


def _check_documents(example: Example, name: str, line: int) -> None:
    if not example.documents:
        message = "expected query and positive separated by tabs, then negatives, found one column"
        raise DatasetError(message, path=name, line=line)
    if len(set(example.documents)) < len(example.documents):
        message = "the same passage stands twice in one example; a passage cannot be positive and negative"
        raise DatasetError(message, path=name, line=line)
