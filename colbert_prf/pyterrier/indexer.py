"""Documents as dictionaries to an index."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyterrier as pt

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index import Index, Passages
from colbert_prf.index.codec import DEFAULT_BITS
from colbert_prf.pyterrier.component import Component
from colbert_prf.search.searcher import Preset

if TYPE_CHECKING:
    from colbert_prf.pyterrier.artifact import ColbertIndex

__all__ = ["ColbertIndexer"]

Mode = Literal["create", "append"]


class ColbertIndexer(Component, pt.Indexer):
    """Encode documents into an index folder; it may stand at the end of an indexing pipeline.

    Parameters
    ----------
    path
        The folder: a new one, or with ``mode="append"`` that of an index.
    model
        What :meth:`Encoder.load` takes; the embedded model, or that of the index, if left out.
    bits
        Per component of a vector: 2, 4, or 16 for the vectors themselves.
    text_field
        The field that is indexed, or several, which are joined by a line break.
    metadata
        Fields kept with each document, for filters and for ``text_loader``.
    texts
        Whether to keep the texts, compressed; BM25, BERT-QE and ``text_loader`` need them.
    passages
        Split texts into passages, as in :meth:`Index.create`; ``end_to_end(group="document")`` then ranks documents.
    mode
        ``"create"``, or ``"append"`` to add to an index.
    progress
        Whether bars may be shown.
    seed
        Of the codec's training.
    preset, threads
        Of the :class:`ColbertIndex` it gives.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: str | None = None,
        bits: int = DEFAULT_BITS,
        text_field: str | Sequence[str] = "text",
        metadata: Sequence[str] = (),
        texts: bool = True,
        passages: Passages | None = None,
        mode: Mode = "create",
        progress: bool = True,
        seed: int = 0,
        preset: Preset | None = None,
        threads: int | None = None,
    ) -> None:
        if mode not in get_args(Mode):
            raise InputError(f"mode must be one of {get_args(Mode)}, found {mode!r}")
        self.path = Path(path)
        self.model = model
        self.bits = bits
        self.text_field = text_field
        self.metadata = tuple(metadata)
        self.texts = texts
        self.passages = passages
        self.mode = mode
        self.progress = progress
        self.seed = seed
        self.preset = preset
        self.threads = threads

    def index_inputs(self) -> list[list[str]]:
        """The fields every document must have."""
        return [["docno", *self._fields]]

    def index(self, iter: Iterable[Mapping[str, Any]], **_: Any) -> ColbertIndex:
        """Index documents.

        Parameters
        ----------
        iter
            Dictionaries with ``docno``, a string, and the fields of text. Read once, in bounded memory.

        Returns
        -------
        ColbertIndex
            Over the folder.

        Raises
        ------
        pt.validate.InputValidationError
            If there is no document, or the first has not the fields.
        InputError
            If a later one has not, or a value cannot be used; it is named.
        """
        from colbert_prf.pyterrier.artifact import ColbertIndex

        total = len(iter) if isinstance(iter, Sized) else None
        peekable = pt.utils.peekable(iter)
        pt.validate.columns_iter(peekable, includes=self.index_inputs()[0])
        documents = self._documents(peekable)
        encoder = Encoder.load(self.model) if self.model is not None else None
        if self.mode == "append":
            Index.open(self.path, encoder=encoder).add(documents)
        else:
            Index.create(
                self.path,
                documents,
                encoder=encoder,
                bits=self.bits,
                texts=self.texts,
                passages=self.passages,
                progress=self.progress,
                total=total,
                seed=self.seed,
            )
        return ColbertIndex(self.path, model=self.model, preset=self.preset, threads=self.threads)

    @property
    def _fields(self) -> list[str]:
        return [self.text_field] if isinstance(self.text_field, str) else list(self.text_field)

    def _documents(self, records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for number, record in enumerate(records, start=1):
            missing = [name for name in self.index_inputs()[0] if name not in record]
            if missing:
                raise InputError(f"document {number} has no {missing[0]!r}; found {', '.join(map(repr, record))}")
            for name in self._fields:
                if not isinstance(record[name], str):
                    found = type(record[name]).__name__
                    raise InputError(f"document {record['docno']!r}: its {name!r} must be a string, found {found}")
            text = "\n".join(record[name] for name in self._fields)
            kept = {name: record[name] for name in self.metadata if name in record}
            yield record["docno"], text, kept
