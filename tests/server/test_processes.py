"""A server in a process of its own: signals, another process that writes, and a sudden death."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading

import httpx
import pytest
from click.testing import CliRunner

from colbert_prf import Index
from colbert_prf.cli import cli
from colbert_prf.index.passages import Passages
from tests.server.serving import PASSAGES, SEARCH, WRITE, finished, process, wait_for

pytestmark = pytest.mark.slow

WRITER = """
import sys
from colbert_prf import Index
index = Index.open(sys.argv[1])
for number in range(int(sys.argv[2])):
    index.add([(f"w{number}-{i}", f"Passage {i} of round {number} is about zebras.") for i in range(3)])
    index.delete([f"w{number}-0"])
    if number % 3 == 2:
        index.merge()
"""


def line(number: int) -> bytes:
    return json.dumps({"doc_id": f"d{number}", "text": f"Passage number {number} is about whales."}).encode()


def replacing(number: int) -> bytes:
    """A new document, and a new version of one that is there."""
    return line(number) + b"\n" + json.dumps({"doc_id": "fish", "text": f"Version {number} of the goldfish."}).encode()


def test_a_writer_in_another_process_disturbs_no_search(folder):
    rounds = 6
    failures: list[str] = []
    generations: list[int] = []
    with process(str(folder), "--quiet") as (_, client):
        done = threading.Event()

        def search() -> None:
            with httpx.Client(base_url=client.base_url, timeout=60) as own:
                while not done.is_set():
                    body = {"query": "goldfish in a pond", "k": 3, "feedback": {}, "explain": True}
                    response = own.post(SEARCH, json=body)
                    if response.status_code != 200 or len(response.json()["results"][0]["hits"]) != 3:
                        failures.append(response.text)
                    else:
                        generations.append(response.json()["generation"])

        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", WRITER, str(folder), str(rounds)], check=True, capture_output=True
        )
        newest = Index.open(folder).generation
        wait_for(lambda: client.get("/v1/indexes").json()["indexes"][0]["generation"] == newest)
        done.set()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(set(generations)) > 1, "no reader stays behind"
        assert client.get("/v1/indexes").json()["indexes"][0]["num_documents"] == len(PASSAGES) + 2 * rounds
        assert client.get("/v1/indexes/fish/documents/w0-0").status_code == 404
        assert client.get("/v1/indexes/fish/documents/w5-2").status_code == 200


def test_sigterm_finishes_what_runs_and_leaves_nothing_behind(folder, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    with process(str(folder), COLBERT_PRF_WRITE_KEY="write", TMPDIR=str(spool)) as (running, client):
        response = client.put("/v1/indexes/fish/documents", content=line(1), headers=WRITE)
        assert response.status_code == 202
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        assert "Traceback" not in running.stderr.read()
    assert Index.open(folder).num_documents == len(PASSAGES) + 1, "an accepted write is done before the end"
    assert list(spool.glob("colbert-prf-*")) == []
    assert not (folder / "writer.json").exists()


def test_interrupting_is_not_an_error_either(folder):
    with process(str(folder)) as (running, _):
        running.send_signal(signal.SIGINT)
        assert running.wait(60) in (0, 130)
        assert "Traceback" not in running.stderr.read()


@pytest.mark.filterwarnings("ignore::colbert_prf.errors.OutgrownCodecWarning")
@pytest.mark.parametrize("kill_after", [1, 4])
def test_every_write_that_was_acknowledged_outlives_a_sudden_death(folder, kill_after):
    """Each write adds a document and replaces another; whichever of them was the last, it is there with both."""
    acknowledged: list[int] = []
    with process(str(folder), "--quiet", COLBERT_PRF_WRITE_KEY="write") as (running, client):
        client.headers.update(WRITE)
        for number in range(kill_after):
            task = finished(client, client.put("/v1/indexes/fish/documents", content=replacing(number)))
            assert (task["state"], task["generation"]) == ("finished", number + 2), "one write, one generation"
            acknowledged.append(number)
        for number in range(kill_after, kill_after + 5):  # accepted, perhaps done, perhaps not
            assert client.put("/v1/indexes/fish/documents", content=replacing(number)).status_code == 202
        running.kill()
        running.wait()
    Index.open(folder).verify()
    with process(str(folder), "--quiet", COLBERT_PRF_WRITE_KEY="write") as (_, client):
        client.headers.update(WRITE)
        for number in acknowledged:
            assert client.get(f"/v1/indexes/fish/documents/d{number}").status_code == 200
        last = client.get("/v1/indexes").json()["indexes"][0]["num_documents"] - len(PASSAGES) - 1
        assert last >= acknowledged[-1]
        assert client.get(f"/v1/indexes/fish/documents/d{last}").status_code == 200
        assert client.get("/v1/indexes/fish/documents/fish").json()["text"] == f"Version {last} of the goldfish."
        for doc_id, text, _ in PASSAGES[1:3]:
            assert client.get(f"/v1/indexes/fish/documents/{doc_id}").json()["text"] == text
        task = finished(client, client.put("/v1/indexes/fish/documents", content=line(99)))
        assert task["state"] == "finished", "the dead writer's lock is free"


def test_search_asks_a_server_as_it_asks_a_folder(folder):
    with process(str(folder), COLBERT_PRF_READ_KEY="secret") as (_, client):
        address = f"{str(client.base_url).rstrip('/')}/fish"
        arguments = ["goldfish in a pond", "-k", "3", "--feedback", "prf", "--explain", "--json"]
        refused = CliRunner().invoke(cli, ["search", address, *arguments])
        assert "a key is needed to read" in str(refused.exception)
        answers = [
            CliRunner().invoke(cli, ["search", source, *arguments], env={"COLBERT_PRF_READ_KEY": "secret"})
            for source in (address, str(folder))
        ]
    there, here = (json.loads(answer.stdout)[0] for answer in answers)
    assert there["tokens"] == here["tokens"]
    assert [hit["doc_id"] for hit in there["hits"]] == [hit["doc_id"] for hit in here["hits"]]
    for one, other in zip(there["hits"], here["hits"], strict=True):
        assert one["score"] == pytest.approx(other["score"], rel=1e-5)
        # A server leaves added vectors out that weigh nothing.
        weighing = [match for match in other["matches"] if match["weight"] > 0]
        for match, expected in zip(one["matches"], weighing, strict=True):
            assert match == pytest.approx(expected)
    assert there["expansion"]["feedback"] == here["expansion"]["feedback"]
    assert there["before"] == [pytest.approx(hit) for hit in here["before"]]


def test_search_ranks_documents_of_a_server_by_their_passages(tmp_path, encoder):
    folder, text = tmp_path / "fish.index", "A goldfish lives in a pond. " * 12 + "The bank raised its rates. " * 12
    documents = [("long", text, {"year": 1999}), ("short", "Goldfish grow.", {"year": 2005})]
    Index.create(folder, documents, encoder=encoder, passages=Passages(64), progress=False)
    arguments = ["rates of a bank", "-k", "1", "--group", "document", "--where", "year<2000", "--explain", "--json"]
    with process(str(folder)) as (_, client):
        address = f"{str(client.base_url).rstrip('/')}/fish"
        answers = [CliRunner().invoke(cli, ["search", source, *arguments]) for source in (address, str(folder))]
    there, here = (json.loads(answer.stdout)[0]["hits"][0] for answer in answers)
    for name in ("doc_id", "passage_id", "text", "metadata"):
        assert there[name] == here[name]
    assert there["doc_id"] == "long"


def test_search_shows_the_answer_of_a_server(folder):
    with process(str(folder)) as (_, client):
        address = f"{str(client.base_url).rstrip('/')}/fish"
        shown = CliRunner().invoke(cli, ["search", address, "goldfish", "-k", "2", "--explain", "--feedback", "prf"])
        assert shown.exit_code == 0, shown.output
        assert "learned from: d1" in shown.output
        refused = CliRunner().invoke(cli, ["search", address, "goldfish", "--preset", "paper"])
        assert "does not apply to an index of a server" in refused.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give an index, or --demo"),
        (["nowhere.index"], "no index folder"),
        (["a b=built"], "an index is named with"),
        (["x=built", "x=built"], "different names"),
        (["built", "--host", "256.1.1.1"], "cannot listen"),
    ],
)
def test_serve_says_what_is_wrong(built, arguments, message):
    given = [argument.replace("built", str(built)) for argument in arguments]
    done = CliRunner().invoke(cli, ["serve", *given])
    assert done.exit_code != 0
    assert message in f"{done.output} {done.exception}"
