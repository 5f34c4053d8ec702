"""A run is whole or absent, continues after its last whole topic, and is never mixed with another configuration."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pytest

from colbert_prf.datasets import read_run
from colbert_prf.errors import InputError, StorageError
from colbert_prf.experiments.run import run_topics
from colbert_prf.search.retriever import Retriever
from colbert_prf.types import EncodedQuery, Hit, Ranking

TOPICS = {"q1": "one", "q2": "two", "q3": "three"}
QUERY = EncodedQuery(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))


class Counting(Retriever):
    """Answers each text with two documents; stops after so many searches, as a person does."""

    def __init__(self, *, stop_after: int | None = None, scores: tuple[float, float] = (0.75, 0.1)) -> None:
        self.asked: list[str] = []
        self.stop_after = stop_after
        self.scores = scores

    def search(self, query, k=1000):
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        self.asked.append(query)
        hits = (Hit(f"{query}-a", self.scores[0]), Hit(f"{query}-b", self.scores[1]))
        stages = {"find": 0.25} if query == "one" else {"find": 0.5, "again": 0.5}
        return Ranking(QUERY, hits[:k], stages)


def run(retriever, path, **options):
    given = {"tag": "mine", "configuration": {"system": {"beta": 1}}, "k": 2, "progress": False}
    return run_topics(retriever, TOPICS, path, **{**given, **options})


def test_the_file_has_every_topic_and_its_description_the_mean_times(tmp_path):
    path = tmp_path / "run.gz"
    retriever = Counting()
    summary = run(retriever, path)
    assert retriever.asked == ["one", "one", "two", "three"]  # the first search is not measured
    assert gzip.decompress(path.read_bytes()).decode().splitlines()[0] == "q1 Q0 one-a 1 0.75 mine"
    assert read_run(path) == {query_id: {f"{text}-a": 0.75, f"{text}-b": 0.1} for query_id, text in TOPICS.items()}
    assert summary.stages == {"find": pytest.approx(1.25 / 3), "again": pytest.approx(1 / 3)}
    assert (summary.num_topics, summary.num_resumed, summary.num_empty) == (3, 0, 0)
    known = json.loads((tmp_path / "run.gz.json").read_text())
    assert known["configuration"]["system"] == {"beta": 1}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run.gz", "run.gz.json"]


def test_an_interrupted_run_continues_after_its_last_whole_topic(tmp_path):
    path = tmp_path / "run.txt"
    with pytest.raises(KeyboardInterrupt):
        run(Counting(stop_after=3), path)
    assert not path.exists()
    (journal,) = tmp_path.iterdir()
    # Half an answer to the third topic, as a crash leaves it.
    journal.write_bytes(journal.read_bytes() + b'{"query_id": "q3", "hits": [["x"')
    retriever = Counting()
    summary = run(retriever, path)
    assert retriever.asked == ["three", "three"]
    assert (summary.num_topics, summary.num_resumed) == (3, 2)
    run(Counting(), tmp_path / "whole.txt")
    assert path.read_text() == (tmp_path / "whole.txt").read_text()


def test_a_crash_while_the_first_line_was_written_starts_again(tmp_path):
    (tmp_path / ".run.txt.journal").write_bytes(b'{"format": 1, "conf')
    assert run(Counting(), tmp_path / "run.txt").num_topics == 3


def test_a_finished_run_is_not_run_again(tmp_path):
    first = run(Counting(), tmp_path / "run.txt")
    assert run(Counting(stop_after=0), tmp_path / "run.txt") == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"configuration": {"system": {"beta": 2}}}, "system.beta is 1, not 2"),
        ({"k": 1}, "k is 2, not 1"),
        ({"tag": "other"}, "tag is mine, not other"),
    ],
)
@pytest.mark.parametrize("finished", [True, False])
def test_another_configuration_is_refused_unless_overwritten(tmp_path, options, message, finished):
    path = tmp_path / "run.txt"
    if finished:
        run(Counting(), path)
    else:
        with pytest.raises(KeyboardInterrupt):
            run(Counting(stop_after=2), path)
    with pytest.raises(StorageError, match=f"of another configuration is there .*{message}"):
        run(Counting(), path, **options)
    summary = run(Counting(), path, existing="replace", **options)
    assert (summary.num_topics, summary.num_resumed) == (3, 0)
    assert len(path.read_text().splitlines()) == 3 * options.get("k", 2)


def test_overwriting_continues_where_it_was_interrupted(tmp_path):
    path = tmp_path / "run.txt"
    run(Counting(), path)
    before = path.read_text()
    with pytest.raises(KeyboardInterrupt):
        run(Counting(stop_after=3), path, k=1, existing="replace")
    assert path.read_text() == before
    assert run(Counting(), path, k=1, existing="replace").num_resumed == 2


def test_updating_keeps_what_is_the_same_and_replaces_the_rest(tmp_path):
    path = tmp_path / "run.txt"
    first = run(Counting(), path, existing="update")
    assert run(Counting(stop_after=0), path, existing="update") == first
    assert len(path.read_text().splitlines()) == 6
    run(Counting(), path, k=1, existing="update")
    assert len(path.read_text().splitlines()) == 3


def test_other_topics_are_another_configuration(tmp_path):
    run(Counting(), tmp_path / "run.txt")
    with pytest.raises(StorageError, match="topics is"):
        run_topics(
            Counting(), {"q1": "other"}, tmp_path / "run.txt", tag="mine", configuration={"system": {"beta": 1}}, k=2
        )


def test_a_file_of_unknown_origin_is_not_replaced(tmp_path):
    (tmp_path / "run.txt").write_text("precious")
    with pytest.raises(StorageError, match="nothing says how it was made"):
        run(Counting(), tmp_path / "run.txt")
    (tmp_path / "run.txt.json").write_text("[]")
    with pytest.raises(StorageError, match=r"run.txt.json: this is no description of a run"):
        run(Counting(), tmp_path / "run.txt")
    assert (tmp_path / "run.txt").read_text() == "precious"


def test_a_score_that_is_no_number_is_refused_at_once(tmp_path):
    with pytest.raises(InputError, match="topic 'q1': document 'one-b' got the score nan"):
        run(Counting(scores=(1.0, math.nan)), tmp_path / "run.txt")
    assert not (tmp_path / "run.txt").exists()


def test_where_a_run_cannot_be_written(tmp_path):
    with pytest.raises(StorageError, match=r"its folder .* does not exist"):
        run(Counting(), tmp_path / "nowhere" / "run.txt")
    with pytest.raises(StorageError, match="this is a folder"):
        run(Counting(), tmp_path)
    with pytest.raises(InputError, match="there is no topic"):
        run_topics(Counting(), {}, tmp_path / "run.txt", tag="t", configuration={})


def test_a_run_is_written_by_one_at_a_time(tmp_path):
    class Meddling(Counting):
        def search(self, query, k=1000):
            with pytest.raises(StorageError, match="another process is writing this run"):
                run(Counting(), tmp_path / "run.txt")
            return super().search(query, k)

    assert run(Meddling(), tmp_path / "run.txt").num_topics == 3


def test_a_finished_run_is_found_where_its_folder_moved_to(tmp_path):
    (tmp_path / "old").mkdir()
    run(Counting(), tmp_path / "old" / "run.txt")
    (tmp_path / "old").rename(tmp_path / "new")
    assert run(Counting(stop_after=0), tmp_path / "new" / "run.txt").path == str(tmp_path / "new" / "run.txt")


def test_a_damaged_journal_is_named(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Counting(stop_after=3), tmp_path / "run.txt")
    (journal,) = tmp_path.iterdir()
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + b"{]\n" + lines[2])
    with pytest.raises(StorageError, match=r"\.run\.txt\.journal: a line in its middle is damaged"):
        run(Counting(), tmp_path / "run.txt")
    journal.write_bytes(b"something else\n")
    with pytest.raises(StorageError, match="this is no journal of a run"):
        run(Counting(), tmp_path / "run.txt")
