"""The service over shards answers as over one machine, and tells how many shards answered."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from colbert_prf import Index
from colbert_prf.cli import cli
from colbert_prf.distributed.serving import ShardedGenerations
from colbert_prf.distributed.transport import LocalTransport, Lost
from colbert_prf.server.app import create_app
from colbert_prf.server.indexes import Indexes, ServedIndex
from colbert_prf.server.settings import ServerSettings
from tests.server.serving import PASSAGES, SEARCH, WRITE, finished, process, wait_for

FEEDBACK = {"feedback_docs": 2, "clusters": 6, "expansion_vectors": 4}
MORE = [("carp", "Carp and goldfish eat what falls into the pond.", {"topic": "animals", "year": 2001})]


class SilentTransport(LocalTransport):
    silent = False

    def send(self, shard, method, *arguments):
        return Lost("it is silent") if self.silent and shard == 1 else super().send(shard, method, *arguments)


@pytest.fixture
def folder(tmp_path, encoder) -> Path:
    """An index of two segments."""
    index = Index.create(tmp_path / "fish.index", PASSAGES, encoder=encoder, bits=4, progress=False)
    index.add(MORE)
    return index.path


@contextmanager
def serving(folder: Path, transport: LocalTransport | None, **options):
    opener = None if transport is None else ShardedGenerations(transport=transport, **options)
    served = ServedIndex("fish", folder, open_searcher=opener)
    app = create_app(Indexes([served]), ServerSettings(workers=2, reload_seconds=0.05, write_key="write"))
    with TestClient(app, raise_server_exceptions=False, headers=WRITE) as client:
        wait_for(lambda: client.get("/ready").status_code == 200)
        yield client


def told(client, action: str, body: dict) -> dict:
    """An answer without what differs between two runs."""
    response = client.post(f"/v1/indexes/fish/{action}", json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    del answer["took"]
    for result in answer.get("results", []):
        del result["timings"], result["shards"]
    return answer


def test_answers_are_those_of_one_machine(folder):
    query = "do goldfish grow"
    with serving(folder, None) as alone, serving(folder, LocalTransport(folder, 2)) as sharded:
        for action, body in (
            ("search", {"query": query, "k": 3}),
            ("search", {"queries": [query, "rates"], "feedback": FEEDBACK, "explain": True, "fields": ["*"]}),
            ("search", {"query": query, "where": {"topic": "animals"}, "feedback": {"method": "centroid"}}),
            ("search", {"query": query, "method": "bm25", "feedback": {"method": "rm3"}}),
            ("search", {"query": query, "method": "hybrid"}),
            ("explain", {"query": query, "doc_ids": ["pond", "carp"], "feedback": FEEDBACK}),
            ("expand", {"query": query, "feedback": FEEDBACK}),
            ("plane", {"query": query, "feedback": FEEDBACK}),
        ):
            assert told(sharded, action, body) == told(alone, action, body)
        for address in ("/documents/carp", "", "/documents/nowhere"):
            one, other = (client.get(f"/v1/indexes/fish{address}").json() for client in (alone, sharded))
            assert other == one
        assert sharded.get("/metrics").status_code == 200
        answer = sharded.post(SEARCH, json={"query": query}).json()
        assert answer["results"][0]["shards"] == {"total": 2, "answered": 2}
        assert alone.post(SEARCH, json={"query": query}).json()["results"][0]["shards"] is None


def test_a_write_is_searched_in_all_shards(folder):
    with serving(folder, LocalTransport(folder, 2)) as client:
        body = json.dumps({"id": "koi", "text": "Koi are carp that grow old."}).encode()
        finished(client, client.put("/v1/indexes/fish/documents", content=body))

        def found() -> bool:
            hits = client.post(SEARCH, json={"query": "koi grow old", "k": 1}).json()["results"][0]["hits"]
            return hits[0]["doc_id"] == "koi"

        wait_for(found)


def test_a_silent_shard_is_an_error_that_says_what_to_do(folder):
    transport = SilentTransport(folder, 2)
    with serving(folder, transport) as client:
        transport.silent = True
        response = client.post(SEARCH, json={"query": "do goldfish grow"})
        assert (response.status_code, response.json()["code"]) == (503, "shard_unavailable")
        assert "shard 2 of 2" in response.json()["message"]


def test_a_partial_answer_says_so(folder):
    transport = SilentTransport(folder, 2)
    with serving(folder, transport, partial=True) as client:
        transport.silent = True
        (result,) = client.post(SEARCH, json={"query": "carp and goldfish", "k": 20}).json()["results"]
        assert result["shards"] == {"total": 2, "answered": 1}
        assert "carp" not in {hit["doc_id"] for hit in result["hits"]}


def test_options_of_a_cluster_need_one(folder):
    for options, message in ((["--shards", "2"], "--shards needs --ray"), (["--partial"], "--partial needs --ray")):
        result = CliRunner().invoke(cli, ["serve", str(folder), *options])
        assert (result.exit_code, message in result.output) == (2, True)


@pytest.mark.slow
def test_a_server_starts_shards_and_ends_them(folder):
    pytest.importorskip("ray")
    with serving(folder, None) as alone:
        expected = told(alone, "search", {"query": "do goldfish grow", "feedback": FEEDBACK})
    with process(str(folder), "--quiet", "--shards", "2", "--ray") as (running, client):
        assert told(client, "search", {"query": "do goldfish grow", "feedback": FEEDBACK}) == expected
        answer = client.post(SEARCH, json={"query": "do goldfish grow"}).json()
        assert answer["results"][0]["shards"] == {"total": 2, "answered": 2}
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
