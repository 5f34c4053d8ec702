"""The client: the same names as a searcher, the same answers, and patience with a busy server."""

from __future__ import annotations

import asyncio
import inspect

import httpx
import pytest

from colbert_prf import CentroidPRF, ColbertPRF, Index, InputError, Searcher
from colbert_prf.client import AsyncClient, Client
from colbert_prf.errors import ServiceError
from colbert_prf.server.settings import ServerSettings
from tests.server.serving import PASSAGES, serving

QUERY = "do goldfish grow"
METHOD = ColbertPRF(feedback_docs=2, clusters=6, expansion_vectors=4)


@pytest.fixture
def over(writable):
    """A client over an app in this process."""

    def handle(request: httpx.Request) -> httpx.Response:
        headers = {"Authorization": request.headers.get("Authorization", "")}
        if "Content-Type" in request.headers:
            headers["Content-Type"] = request.headers["Content-Type"]
        answer = writable.request(request.method, str(request.url), content=request.read(), headers=headers)
        return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)

    with Client("http://testserver/fish", key="write", transport=httpx.MockTransport(handle)) as client:
        yield client


def test_it_answers_as_a_searcher_does(over, folder, encoder):
    searcher = Searcher(Index.open(folder, encoder=encoder))
    result = over.search(QUERY, 3, feedback=METHOD, relevant=["fish"], non_relevant=["bank"])
    ranking = searcher.search(QUERY, 3, feedback=METHOD, relevant=["fish"], non_relevant=["bank"])
    assert [(hit.doc_id, hit.text) for hit in result.hits] == [(hit.doc_id, hit.text) for hit in ranking]
    assert [hit.score for hit in result.hits] == pytest.approx([hit.score for hit in ranking], rel=1e-5)
    assert [hit.doc_id for hit in over.search(QUERY, 3, feedback=CentroidPRF()).hits] == searcher.search(
        QUERY, 3, feedback=CentroidPRF()
    ).doc_ids
    explanation = searcher.explain(QUERY, "fish")
    assert over.explain(QUERY, "fish").score == pytest.approx(explanation.score, rel=1e-5)
    assert [result.query for result in over.search_many([QUERY, "bank"], 1)] == [QUERY, "bank"]
    with pytest.raises(InputError, match="search_many takes several queries"):
        over.search_many(QUERY)
    assert len(over.expand(QUERY, feedback=METHOD).expansion.vectors) == 4
    assert over.plane(QUERY, compare="a tank").compare
    assert over.info().num_documents == len(PASSAGES)


def test_it_writes(over):
    task = over.upsert([("x/y", "A zebra has stripes.", {"year": 1}), ("z", "A whale.")])
    assert (task.state, task.generation) == ("finished", 2)
    assert over.document("x/y").metadata == {"year": 1}
    assert over.delete("z").state == "finished"
    assert over.merge().state == "finished"
    assert over.wait(over.upsert([("z", "A whale.")], wait=False)).state == "finished"


def test_errors_have_their_code(over):
    with pytest.raises(ServiceError, match="there is no document 'nobody'") as caught:
        over.document("nobody")
    assert (caught.value.status, caught.value.code) == (404, "unknown_document")
    with pytest.raises(ServiceError, match="at most 1,000"):
        over.search("a", 1001)
    with pytest.raises(InputError, match="need a feedback method"):
        over.search("a", relevant=["fish"])
    with pytest.raises(InputError, match="a document is"):
        over.upsert([("x",)])


@pytest.mark.parametrize("address", ["fish", "http://", "http://host:8000", "http://host:8000/", "ftp://host/fish"])
def test_an_address_has_a_server_and_a_name(address):
    with pytest.raises(InputError, match="http://host:port/NAME"):
        Client(address)


def test_a_server_that_is_not_there_or_not_ours():
    with Client("http://127.0.0.1:9/fish") as client, pytest.raises(ServiceError, match="cannot be reached"):
        client.search("a")
    other = httpx.MockTransport(lambda request: httpx.Response(404, text="<html>"))
    with Client("http://host/fish", transport=other) as client, pytest.raises(ServiceError, match="check the address"):
        client.search("a")


class Busy:
    """A server that refuses some requests before it answers."""

    def __init__(self, refusals: int, status: int = 503, **headers: str) -> None:
        self.refusals = refusals
        self.status = status
        self.headers = headers
        self.num_requests = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.num_requests += 1
        if self.num_requests <= self.refusals:
            body = {"code": "overloaded", "message": "busy", "hint": "wait"}
            return httpx.Response(self.status, json=body, headers=self.headers)
        return httpx.Response(200, json={"doc_id": "d", "text": None, "metadata": {}, "generation": 1})


@pytest.mark.parametrize(("status", "headers"), [(503, {"Retry-After": "0"}), (429, {"Retry-After": "0"}), (503, {})])
def test_it_tries_again_when_the_server_is_busy(status, headers):
    busy = Busy(2, status, **headers)
    with Client("http://host/fish", transport=httpx.MockTransport(busy)) as client:
        assert client.document("d").doc_id == "d"
    assert busy.num_requests == 3


def test_it_waits_as_long_as_the_server_asks(monkeypatch):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with Client("http://host/fish", transport=httpx.MockTransport(Busy(1, **{"Retry-After": "7"}))) as client:
        client.document("d")
    assert pauses == [7.0]


def test_it_gives_up_in_the_end_and_does_not_repeat_what_is_refused_for_good():
    busy = Busy(100, **{"Retry-After": "0"})
    client = Client("http://host/fish", retries=2, transport=httpx.MockTransport(busy))
    with client, pytest.raises(ServiceError, match="busy; wait") as caught:
        client.document("d")
    assert (busy.num_requests, caught.value.code) == (3, "overloaded")
    wrong = Busy(100, 409)
    with Client("http://host/fish", transport=httpx.MockTransport(wrong)) as client, pytest.raises(ServiceError):
        client.document("d")
    assert wrong.num_requests == 1


def test_the_asynchronous_client_is_the_same(built):
    async def ask(app):
        async with AsyncClient("http://host/fish", transport=httpx.ASGITransport(app)) as client:
            found = await asyncio.gather(*(client.search(QUERY, 2) for _ in range(3)))
            many = await client.search_many([QUERY], 2)
            parts = (
                await client.info(),
                await client.explain(QUERY, "fish"),
                await client.expand(QUERY),
                await client.plane(QUERY),
                await client.document("fish"),
            )
            with pytest.raises(ServiceError, match="takes no writes"):
                await client.upsert([("x", "y")])
            return [[hit.doc_id for hit in result.hits] for result in [*found, *many]], parts

    with serving(built) as running:
        expected = [
            hit["doc_id"]
            for hit in running.post("/v1/indexes/fish/search", json={"query": QUERY, "k": 2}).json()["results"][0][
                "hits"
            ]
        ]
        found, parts = running.portal.call(ask, running.app)
    assert found == [expected] * 4
    assert parts[4].text == PASSAGES[0][1]

    async def ask_busy():
        busy = Busy(2, **{"Retry-After": "0"})
        async with AsyncClient("http://host/fish", transport=httpx.MockTransport(busy)) as client:
            return (await client.document("d")).doc_id, busy.num_requests

    assert asyncio.run(ask_busy()) == ("d", 3)


def test_both_clients_have_the_same_methods():
    def names(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(value).parameters)
            for name, value in vars(kind).items()
            if callable(value) and not name.startswith("_")
        }

    assert names(Client) == names(AsyncClient)
    assert set(names(Client)) >= {"search", "search_many", "explain"}


def test_settings_are_checked():
    with pytest.raises(InputError, match="workers must be at least 1"):
        ServerSettings(workers=0)
