"""A system over topics, into a run file: interrupted it can be continued, and it appears only when it is whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeAlias

from filelock import FileLock, Timeout

from colbert_prf.datasets import write_run
from colbert_prf.datasets.runs import refuse_unwritable
from colbert_prf.errors import InputError, StorageError
from colbert_prf.experiments.journal import Answer, Journal, differences
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import METHODS
from colbert_prf.progress import progress_bar
from colbert_prf.search.retriever import RUN_DEPTH, Retriever
from colbert_prf.storage.durable import write_atomically

__all__ = ["Existing", "RunSummary", "digest_of_topics", "feedback_facts", "finished_run", "run_topics", "tag_of"]


_ALWAYS = {"feedback_docs": "fb", "clusters": "K", "expansion_vectors": "fe", "weight": "weight", "beta": "beta"}
"""What a tag always says, in this order; of the last two the one in force."""


def tag_of(feedback: Feedback | None, *, preset: str | None = None) -> str:
    """Say how a run was made.

    Examples
    --------
    >>> from colbert_prf.feedback import CentroidPRF, ColbertPRF
    >>> tag_of(None), tag_of(ColbertPRF()), tag_of(ColbertPRF(beta=1, rerank=True))
    ('colbert-prf.e2e', 'colbert-prf.prf.fb1.K24.fe20.weight0.15', 'colbert-prf.prf.fb1.K24.fe20.beta1.rerank')
    >>> tag_of(CentroidPRF(relevance=0.5), preset="paper")
    'colbert-prf.paper.centroid.fb3.fe14.weight0.1.relevance0.5'
    """
    parts = ["colbert-prf", *([preset] if preset and preset != "default" else [])]
    facts = feedback_facts(feedback)
    if feedback is None or facts is None:
        return ".".join([*parts, "e2e"])
    parts.append(facts["method"])
    parts += [f"{short}{facts[name]:g}" for name, short in _ALWAYS.items() if facts.get(name) is not None]
    for one in fields(feedback):
        value = facts[one.name]
        if one.name not in _ALWAYS and value != one.default and value is not None:
            parts.append(_spelled(one.name, value))
    return ".".join(parts)


def feedback_facts(feedback: Feedback | None) -> dict[str, Any] | None:
    """All parameters of a feedback method, the default of ``weight`` or ``beta`` written out, and its name.

    A function among them is told by its name.
    """
    if feedback is None:
        return None
    names = {kind: name for name, kind in METHODS.items()}
    method, strength = names.get(type(feedback), type(feedback).__name__), feedback.strength
    given = {field.name: getattr(feedback, field.name) for field in fields(feedback)}
    told = {name: getattr(value, "__name__", type(value).__name__) for name, value in given.items() if callable(value)}
    return {"method": method, **given, **told, strength.name: strength.value}


def _spelled(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name
    if name in ("clustering", "weighting"):
        return str(value)
    return f"{name}{value}".replace(" ", "")


Existing: TypeAlias = Literal["refuse", "update", "replace"]


@dataclass(frozen=True)
class RunSummary:
    """What is known of a finished run; kept beside it as JSON.

    Parameters
    ----------
    path
        The run file.
    tag
        The name of the run in its last column.
    num_topics, num_resumed
        Topics answered, and how many of them an earlier, interrupted run had answered.
    num_empty
        Topics without a single document; they have no line in the file.
    seconds
        Mean response time.
    stages
        Mean seconds per stage, in the order the stages ran.
    """

    path: str
    tag: str
    num_topics: int
    num_resumed: int
    num_empty: int
    seconds: float
    stages: dict[str, float]


def run_topics(
    retriever: Retriever,
    topics: Mapping[str, str],
    path: str | Path,
    *,
    tag: str,
    configuration: Mapping[str, Any],
    k: int = RUN_DEPTH,
    existing: Existing = "refuse",
    progress: bool = True,
) -> RunSummary:
    """Answer topics one after another and write a run file.

    Answers are kept in a journal beside the file as they come. Called again after an interruption it continues after
    the last whole topic; called again after the end it does nothing. The first search of a process also loads kernels
    and models, so one search is made beforehand and not measured.

    Parameters
    ----------
    retriever
        What answers.
    topics
        Texts by query id.
    path
        The run file, compressed if it ends in ``.gz`` or ``.zst``; it appears when it is complete, and beside it
        ``PATH.json`` with the configuration and response times.
    tag
        The name of the run, one word.
    configuration
        All that decides the answers, apart from ``k`` and ``topics``; whatever JSON can hold.
    k
        Documents per topic.
    existing
        What to do with a run that is there: ``"refuse"`` one of another configuration; ``"update"``: replace one of
        another configuration; ``"replace"`` any. A finished run of the same configuration is otherwise kept, an
        interrupted one always continued.
    progress
        Whether a bar may be shown.

    Raises
    ------
    StorageError
        Where a run, finished or not, is of another configuration; it says what differs; or another process writes it.
    InputError
        No topics, or a score that is no finite number.
    """
    if not topics:
        raise InputError("there is no topic to answer; give some")
    path = Path(path)
    for what, word in [("the tag", tag), *(("the query id", query_id) for query_id in topics)]:
        refuse_unwritable(word, what, str(path))
    whole = _plain({"tag": tag, "k": k, "topics": digest_of_topics(topics), **configuration})
    journal = Journal(path.with_name(f".{path.name}.journal"), whole)
    with _alone(path):
        if (finished := _settled(journal, path, existing)) is not None:
            return finished
        answered = {answer.query_id for answer in journal.answers()}
        waiting = {query_id: text for query_id, text in topics.items() if query_id not in answered}
        _answer(retriever, waiting, k, journal, progress=progress, label=tag, before=len(answered))
        return _finish(journal, path, tag, len(answered))


def finished_run(path: Path, configuration: Mapping[str, Any]) -> RunSummary:
    """What is known of a run that is there already.

    Raises
    ------
    StorageError
        Where it is of another configuration, or nothing is known of it.
    """
    described = _description(path)
    if not described.is_file():
        message = "the file exists, and nothing says how it was made; remove it, or overwrite it (--overwrite)"
        raise StorageError(message, path=path)
    try:
        found = json.loads(described.read_text(encoding="utf-8"))
        known, summary = found["configuration"], RunSummary(**found["summary"])
    except (ValueError, KeyError, TypeError) as error:
        message = "this is no description of a run; remove it, or overwrite the run (--overwrite)"
        raise StorageError(message, path=described) from error
    _refuse_other(configuration, known, path, "a run")
    return replace(summary, path=str(path))  # the folder may have moved since


def digest_of_topics(topics: Mapping[str, str]) -> str:
    """A short name for topics that changes with every id and text."""
    return hashlib.sha256(json.dumps(sorted(topics.items())).encode()).hexdigest()[:16]


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Be the only one who writes a run, or fail at once."""
    if not path.parent.is_dir() or path.is_dir():
        found = "is a file" if path.parent.exists() else "does not exist"
        problem = "this is a folder" if path.is_dir() else f"its folder {path.parent} {found}"
        raise StorageError(f"{problem}; name a file in a folder that is there", path=path)
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise StorageError("another process is writing this run; wait until it has finished", path=path) from None
    except OSError as error:
        raise StorageError(f"cannot be written ({error.strerror})", path=path) from error
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _settled(journal: Journal, path: Path, existing: Existing) -> RunSummary | None:
    """Settle what is there already: give a finished run, keep or remove a journal, or refuse."""
    if journal.exists:
        found = journal.found_configuration()
        if existing == "refuse":
            _refuse_other(journal.configuration, found, path, "an interrupted run")
        elif found != journal.configuration:
            journal.path.unlink()
    elif path.exists() and existing != "replace":
        try:
            return finished_run(path, journal.configuration)
        except StorageError:
            if existing == "refuse":
                raise
    return None


def _answer(
    retriever: Retriever,
    topics: Mapping[str, str],
    k: int,
    journal: Journal,
    *,
    progress: bool,
    label: str,
    before: int,
) -> None:
    """Answer what is missing, and write each answer down at once."""
    with (
        journal.open() as stream,
        progress_bar(label, total=before + len(topics), unit="topics", shown=progress) as advance,
    ):
        advance(before)
        if topics:
            retriever.search(next(iter(topics.values())), k)
        for query_id, text in topics.items():
            started = perf_counter()
            ranking = retriever.search(text, k)
            seconds = perf_counter() - started
            scores = {hit.doc_id: float(hit.score) for hit in ranking}
            for doc_id in scores:
                refuse_unwritable(doc_id, f"for query {query_id!r}, the document id", str(journal.path))
            journal.add(stream, Answer(query_id, scores, seconds, ranking.timings))
            advance(1)


def _finish(journal: Journal, path: Path, tag: str, num_resumed: int) -> RunSummary:
    """Write the run file, then what is known of it; the journal goes last, so that this too can be interrupted."""
    described = _description(path)
    described.unlink(missing_ok=True)
    write_run(path, ((answer.query_id, answer.scores) for answer in journal.answers()), tag)
    summary = _summary(journal.answers(), path, tag, num_resumed)
    facts = {"configuration": journal.configuration, "summary": asdict(summary)}
    write_atomically(described, (json.dumps(facts, ensure_ascii=False, indent=2) + "\n").encode())
    journal.path.unlink()
    return summary


def _summary(answers: Iterable[Answer], path: Path, tag: str, num_resumed: int) -> RunSummary:
    seconds, num_empty, stages, count = 0.0, 0, dict[str, float](), 0
    for answer in answers:
        count += 1
        seconds += answer.seconds
        num_empty += not answer.scores
        for stage, spent in answer.stages.items():
            stages[stage] = stages.get(stage, 0.0) + spent
    means = {stage: spent / count for stage, spent in stages.items()}
    return RunSummary(str(path), tag, count, num_resumed, num_empty, seconds / count, means)


def _refuse_other(mine: Mapping[str, Any], found: Mapping[str, Any] | None, path: Path, what: str) -> None:
    if found is not None and (differing := differences(found, mine)):
        raise StorageError(
            f"{what} of another configuration is there ({'; '.join(differing[:3])}); choose another name, or overwrite "
            "it (--overwrite)",
            path=path,
        )


def _plain(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as JSON gives it back, so that it can be compared with one that was read."""
    plain = json.loads(json.dumps(configuration))
    assert isinstance(plain, dict)
    return plain


def _description(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
