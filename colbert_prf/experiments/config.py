"""The configuration of an experiment: collections, systems and measures, read from TOML."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from colbert_prf.errors import InputError
from colbert_prf.evaluation import DEFAULT_MEASURES, Family, parse_measures
from colbert_prf.experiments.context import slug
from colbert_prf.experiments.registry import Entry, check_entries, describe_type, fits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Collection", "Experiment", "Row", "TomlTable", "read_experiment", "read_toml"]


_REQUIRED: Any = object()


class TomlTable:
    """A table of which each key is taken once.

    Parameters
    ----------
    values
        The table.
    place
        Where it stands: the file, and within it the table.
    """

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = dict(values)
        self._known: list[str] = []
        self.place = place

    def take(self, key: str, hint: Any, default: Any = _REQUIRED) -> Any:
        """The value of a key, of the annotated type."""
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise InputError(f"{self.place}: the key {key!r} is missing; add {key} = {describe_type(hint)}")
            return default
        value = self._values.pop(key)
        if not fits(value, hint):
            raise InputError(f"{self.place}: {key} must be {describe_type(hint)}, found {value!r}")
        return value

    def tables(self, key: str) -> list[TomlTable]:
        """The tables of an array of tables, ``[[key]]``, at least one."""
        found = self.take(key, Any, [])
        if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
            raise InputError(f"{self.place}: there is no [[{key}]]; write one or more")
        return [TomlTable(one, f"{self.place}: [[{key}]] {one.get('name', number)!r}") for number, one in _count(found)]

    def rest(self) -> dict[str, Any]:
        """What was not taken."""
        return self._values

    def finish(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._values:
            raise InputError(f"{self.place}: unknown key {key!r}; known are {', '.join(self._known)}")


def read_toml(path: Path) -> TomlTable:
    """Read a TOML file.

    Raises
    ------
    InputError
        The file is missing, unreadable or no TOML.
    """
    try:
        return TomlTable(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this is no TOML: {error}") from error


def _count(items: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(items, start=1))


@dataclass(frozen=True)
class Collection:
    """Topics with judgements over a corpus: a group of columns.

    Parameters
    ----------
    name
        Over the columns.
    corpus, topics, qrels
        As written: names under the data directory, or ``irds:NAME``.
    corpus_name
        By which the index of the corpus is kept; collections of one corpus share it.
    relevance
        The lowest relevant grade of binary measures.
    """

    name: str
    corpus: str
    corpus_name: str
    topics: str
    qrels: str
    relevance: int = 1


@dataclass(frozen=True)
class Row:
    """A system, or runs that others have published: a row of the table.

    Parameters
    ----------
    name, group
        Of the row, and the heading it stands under.
    entry
        The system; None for published runs.
    runs
        The published run file for each collection, by its name.
    baseline
        Whether the other rows are compared with it.
    hidden
        Whether it is there for other rows to build on only.
    optional
        Whether it is left out where a model it names is not there.
    """

    name: str
    group: str = ""
    entry: Entry | None = None
    runs: Mapping[str, str] = field(default_factory=dict)
    baseline: bool = False
    hidden: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Experiment:
    """What to run and how to compare it.

    Parameters
    ----------
    path
        The file it was read from.
    title, note
        Over and under the table.
    measures, family, alpha
        As :func:`~colbert_prf.evaluation.evaluate` takes them.
    depth
        Documents per topic.
    bits, model
        Of the index, for systems that do not say.
    reference
        The row that differences are drawn against; None where there is none to compare.
    collections, rows
        Columns and rows.
    """

    path: Path
    title: str
    note: str
    measures: tuple[str, ...]
    family: Family
    alpha: float
    depth: int
    bits: int
    model: str | None
    reference: str | None
    collections: tuple[Collection, ...]
    rows: tuple[Row, ...]

    @property
    def entries(self) -> dict[str, Entry]:
        """The systems by their names."""
        return {row.name: row.entry for row in self.rows if row.entry is not None}


def read_experiment(path: str | Path) -> Experiment:
    """Read and check a configuration, before anything runs.

    Raises
    ------
    InputError
        With file and key: an unknown or missing key, a value of another type, an unknown kind or parameter of a system,
        a measure that does not exist, two rows of one name.
    """
    path = Path(path)
    table = read_toml(path)
    collections = tuple(_collection(one) for one in table.tables("collections"))
    _refuse_twins([one.name for one in collections], f"{path}: two [[collections]]")
    _refuse_shared_names(collections, path)
    rows = tuple(_row(one, [collection.name for collection in collections]) for one in table.tables("systems"))
    _refuse_twins([row.name for row in rows], f"{path}: two [[systems]]")
    measures = tuple(table.take("measures", list[str], list(DEFAULT_MEASURES)))
    found = Experiment(
        path=path,
        title=table.take("title", str, path.stem),
        note=table.take("note", str, ""),
        measures=measures,
        family=table.take("family", Family, get_args(Family)[0]),
        alpha=table.take("alpha", float, 0.05),
        depth=table.take("depth", int, 1000),
        bits=table.take("bits", int, 4),
        model=table.take("model", str, None),
        reference=_reference(table, rows),
        collections=collections,
        rows=rows,
    )
    table.finish()
    try:
        parse_measures(measures)
        check_entries(found.entries)
        if found.depth < 1 or found.bits not in (1, 2, 4, 8, 16) or not 0 < found.alpha < 1:
            raise InputError(
                f"depth must be at least 1, bits one of 1, 2, 4, 8, 16, and alpha between 0 and 1; found "
                f"{found.depth}, {found.bits} and {found.alpha}"
            )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return found


def _collection(table: TomlTable) -> Collection:
    name, corpus = table.take("name", str), table.take("corpus", str)
    found = Collection(
        name=name,
        corpus=corpus,
        corpus_name=table.take("corpus_name", str, corpus.removeprefix("irds:")),
        topics=table.take("topics", str),
        qrels=table.take("qrels", str),
        relevance=table.take("relevance", int, 1),
    )
    table.finish()
    return found


def _row(table: TomlTable, collections: list[str]) -> Row:
    name, group = table.take("name", str), table.take("group", str, "")
    baseline, hidden = table.take("baseline", bool, False), table.take("hidden", bool, False)
    optional = table.take("optional", bool, False)
    kind, runs = table.take("kind", str, None), table.take("runs", dict, None)
    if (kind is None) == (runs is None):
        raise InputError(f"{table.place}: write either a kind, of a system to run, or runs, of files to read")
    if baseline and hidden:
        raise InputError(f"{table.place}: a hidden row cannot be a baseline")
    if optional and runs is not None:
        raise InputError(f"{table.place}: optional is of systems to run; published runs are left out without a folder")
    if kind is not None:
        return Row(name, group, Entry(name, kind, table.rest()), {}, baseline, hidden, optional)
    table.finish()
    for collection, file in runs.items():
        if collection not in collections or not isinstance(file, str):
            raise InputError(
                f"{table.place}: runs must give the name of a file for each of {', '.join(collections)}; found "
                f"{collection!r} = {file!r}"
            )
    if missing := [collection for collection in collections if collection not in runs]:
        raise InputError(f"{table.place}: runs has no file for the collection {missing[0]!r}; add one")
    return Row(name, group, None, runs, baseline, hidden)


def _reference(table: TomlTable, rows: tuple[Row, ...]) -> str | None:
    """The row differences are drawn against: the one named, or else the first baseline that is run."""
    shown = [row for row in rows if not row.hidden]
    chosen: str | None = table.take("reference", str, None)
    if chosen is None:
        run_first = sorted((row for row in shown if row.baseline), key=lambda row: row.entry is None)
        return run_first[0].name if run_first else None
    if chosen not in [row.name for row in shown]:
        raise InputError(f"{table.place}: reference is {chosen!r}, which is no row; there are {_names(shown)}")
    return chosen


def _names(rows: list[Row]) -> str:
    return ", ".join(row.name for row in rows)


def _refuse_twins(names: list[str], what: str) -> None:
    """Names become names of files, so that what differs in punctuation only is a twin as well."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(slug(name).lower(), name)
        if first is not name:
            raise InputError(
                f"{what} are called {first!r} and {name!r}, too much alike to name their files; rename one"
            )


def _refuse_shared_names(collections: tuple[Collection, ...], path: Path) -> None:
    corpora: dict[str, str] = {}
    for one in collections:
        if (first := corpora.setdefault(slug(one.corpus_name), one.corpus)) != one.corpus:
            raise InputError(
                f"{path}: {first!r} and {one.corpus!r} are both kept as corpus_name {one.corpus_name!r}; rename one"
            )
