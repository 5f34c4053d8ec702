"""docT5query: documents with the questions they answer, before they are indexed as terms."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from colbert_prf.datasets.opening import Source, read_lines
from colbert_prf.errors import DatasetError, InputError, MissingExtraError, ModelError

__all__ = ["QueryGenerator", "expanded_documents", "read_expansions"]

_IDS, _QUERIES = ("_id", "doc_id", "docid", "id", "docno"), ("predicted_queries", "queries", "expansions", "query")


class QueryGenerator:
    """Writes questions a text may answer, with any T5-style checkpoint; needs the extra ``[hub]``.

    Parameters
    ----------
    model
        A folder, or a name on the hub such as ``castorini/doc2query-t5-base-msmarco``.
    num_queries
        Questions for each text; 40 in the paper on MS MARCO.
    max_length
        Tokens of a question.
    top_k
        The next token is drawn among so many, as in the paper.
    batch_size
        Texts at once.
    seed
        Of the draw: equal seeds give equal questions.

    References
    ----------
    Nogueira, Lin: From doc2query to docTTTTTquery, 2019.
    """

    def __init__(
        self,
        model: str,
        *,
        num_queries: int = 5,
        max_length: int = 64,
        top_k: int = 10,
        batch_size: int = 8,
        seed: int = 0,
    ) -> None:
        for name, value in (("num_queries", num_queries), ("max_length", max_length), ("top_k", top_k)):
            if value < 1:
                raise InputError(f"{name} must be at least 1, found {value}")
        try:
            from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError("Writing questions", extra="hub") from error
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(model)
            self.model: Any = AutoModelForSeq2SeqLM.from_pretrained(model).eval()
        except (OSError, ValueError) as error:
            raise ModelError(f"{model}: no sequence-to-sequence model that transformers opens ({error})") from error
        self.num_queries = num_queries
        self.max_length = max_length
        self.top_k = top_k
        self.batch_size = batch_size
        self.seed = seed

    def generate(self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None) -> Iterator[list[str]]:
        """Questions for each text, in order.

        Parameters
        ----------
        texts
            Read as needed; one of more than 512 tokens is cut.
        progress
            Called with the number of texts just finished.
        """
        import torch

        stream = iter(texts)
        while batch := list(islice(stream, self.batch_size)):
            given = self.tokenizer(batch, padding=True, truncation=True, max_length=512, return_tensors="pt")
            given.pop("token_type_ids", None)
            with torch.inference_mode(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                written = self.model.generate(
                    **given,
                    do_sample=True,
                    top_k=self.top_k,
                    max_new_tokens=self.max_length,
                    num_return_sequences=self.num_queries,
                )
            queries = self.tokenizer.batch_decode(written, skip_special_tokens=True)
            for start in range(0, len(queries), self.num_queries):
                yield [query.strip() for query in queries[start : start + self.num_queries]]
            if progress is not None:
                progress(len(batch))


def expanded_documents(
    documents: Iterable[tuple[str, str]],
    expansions: QueryGenerator | Mapping[str, Sequence[str]],
    *,
    progress: Callable[[int], object] | None = None,
) -> Iterator[tuple[str, str]]:
    """Documents with questions appended to their texts, for :meth:`LexicalIndex.create`.

    Parameters
    ----------
    documents
        Pairs of id and text. Read once.
    expansions
        What writes the questions, or those of each document by its id; a document without any stays as it is.
    progress
        Called with the number of documents just finished, where questions are written.

    Examples
    --------
    >>> list(expanded_documents([("a", "Goldfish grow."), ("b", "Rates fell.")], {"a": ["do fish grow", "how big"]}))
    [('a', 'Goldfish grow. do fish grow how big'), ('b', 'Rates fell.')]
    """
    if not isinstance(expansions, QueryGenerator):
        for doc_id, text in documents:
            yield doc_id, " ".join([text, *expansions.get(doc_id, ())])
        return
    stream = iter(documents)
    while batch := list(islice(stream, expansions.batch_size)):
        written = expansions.generate([text for _, text in batch], progress=progress)
        for (doc_id, text), queries in zip(batch, written, strict=True):
            yield doc_id, " ".join([text, *queries])


def read_expansions(source: Source) -> dict[str, list[str]]:
    r"""Read questions written elsewhere.

    Parameters
    ----------
    source
        A path, or ``-`` for standard input; plain, gzip or zstd. Either TSV, ``doc_id<TAB>question``, one question a
        line; or JSON lines with ``id`` and ``predicted_queries`` (or ``_id``, ``queries`` and the like), a list or one
        string.

    Returns
    -------
    dict
        The questions of each document by its id.

    Raises
    ------
    DatasetError
        Naming the line that cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "queries.tsv")
    ...     _ = path.write_text("d1\tdo fish grow\nd1\thow big\n")
    ...     read_expansions(path)
    {'d1': ['do fish grow', 'how big']}
    """
    found: dict[str, list[str]] = {}
    for number, line in read_lines(source):
        if not line.strip():
            continue
        try:
            doc_id, queries = _from_json(line) if line.lstrip().startswith("{") else _from_tsv(line)
        except ValueError as error:
            raise DatasetError(str(error), path=str(source), line=number) from error
        found.setdefault(doc_id, []).extend(queries)
    return found


def _from_tsv(line: str) -> tuple[str, list[str]]:
    doc_id, tab, query = line.partition("\t")
    if not tab:
        raise ValueError("expected a document id, a tab and a question, found no tab")
    return doc_id, [query]


def _from_json(line: str) -> tuple[str, list[str]]:
    try:
        content = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not a JSON object ({error})") from error
    doc_id = next((content[key] for key in _IDS if key in content), None)
    queries = next((content[key] for key in _QUERIES if key in content), None)
    if doc_id is None or queries is None:
        raise ValueError(f"expected an id ({', '.join(_IDS)}) and questions ({', '.join(_QUERIES)})")
    if not isinstance(queries, str | list):
        raise ValueError("questions must be a text or a list of texts")
    questions = [queries] if isinstance(queries, str) else queries
    if not all(isinstance(question, str) for question in questions):
        raise ValueError("questions must be texts")
    return str(doc_id), questions
