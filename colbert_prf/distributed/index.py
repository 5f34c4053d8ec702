"""An index that is searched by shards: what a searcher and a server ask of it."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

from colbert_prf.distributed.asking import OutdatedError
from colbert_prf.distributed.collection import ShardedCollection
from colbert_prf.distributed.transport import Transport
from colbert_prf.encoder import Encoder
from colbert_prf.errors import ShardError
from colbert_prf.index.build_state import refuse_unfinished
from colbert_prf.index.model import check_model, load_model
from colbert_prf.index.reader import CatalogueReader
from colbert_prf.storage.layout import IndexLayout

__all__ = ["ShardedIndex"]

MOST_GENERATIONS = 5
"""How often the newest generation is opened once more because a writer has published another meanwhile."""


class ShardedIndex(CatalogueReader[ShardedCollection]):
    """One generation of an index folder, open in all shards; :meth:`reload` takes all of them to the newest.

    Only reading is possible; a writer opens the folder with :class:`colbert_prf.Index`.

    Parameters
    ----------
    path
        The folder.
    transport
        Reaches the shards.
    timeout
        Seconds a shard may take to open a generation, or to answer.
    encoder
        The model of the index; opened on first use if left out.
    """

    def __init__(
        self, path: str | os.PathLike[str], transport: Transport, *, timeout: float, encoder: Encoder | None = None
    ) -> None:
        self._layout = IndexLayout.at(Path(path).resolve())
        refuse_unfinished(self._layout)
        self._transport, self._timeout, self._encoder = transport, timeout, encoder
        self._lock = Lock()
        self._snapshot = self._opened()
        if encoder is not None:
            check_model(self._layout, self._settings, encoder)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._layout.path

    @property
    def encoder(self) -> Encoder | None:
        """The model of the index, opened on first use; None if the vectors were made elsewhere."""
        if self._encoder is None:
            self._encoder = load_model(self._layout, self._settings)
        return self._encoder

    def reload(self) -> None:
        """Show the newest generation, once every shard has it open; until then the old one is searched.

        Raises
        ------
        ShardError
            If a shard does not answer; the old generation stays.
        """
        with self._lock:
            manifest = ShardedCollection.MANIFEST.read(self._layout.manifest)
            if manifest.digest != self._snapshot.asking.key.digest:
                self._snapshot = self._opened()

    def _opened(self) -> ShardedCollection:
        for _ in range(MOST_GENERATIONS):
            collection = ShardedCollection.open(self._layout)
            try:
                collection.connect(self._transport, self._timeout)
            except OutdatedError:
                continue
            return collection
        raise ShardError(
            f"{self._layout.path} changed {MOST_GENERATIONS} times while its shards opened it; search again when its "
            "writers rest"
        )
