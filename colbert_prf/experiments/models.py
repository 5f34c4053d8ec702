"""The models that systems of an experiment open beside the package: whether they are there, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from colbert_prf.experiments.config import Row
from colbert_prf.experiments.digests import digest_of_model
from colbert_prf.experiments.entries import Entry

__all__ = ["absent_models", "digests_of"]


def absent_models(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The optional rows that cannot run, and those that build on them, with the models that are not there.

    Parameters
    ----------
    rows
        Of an experiment, all of them.

    Returns
    -------
    dict
        By the name of the row.
    """
    entries = {row.name: row.entry for row in rows if row.entry is not None}
    absent = {
        row.name: [name for name in row.entry.models if not Path(name).exists()]
        for row in rows
        if row.optional and row.entry is not None
    }

    def missing(name: str) -> list[str]:
        """Of a row and of all it builds on; there are no circles in a configuration that was read."""
        below = [one for first in entries[name].references for one in missing(first)]
        return list(dict.fromkeys([*absent.get(name, []), *below]))

    return {name: found for name in entries if (found := missing(name))}


def digests_of(entry: Entry, entries: Mapping[str, Entry]) -> dict[str, str]:
    """What the models hold that a system opens, and those it builds on; a name on the hub is not looked up."""
    found = {name: digest_of_model(name) for name in entry.models if Path(name).exists()}
    for first in entry.references:
        found |= digests_of(entries[first], entries)
    return dict(sorted(found.items()))
