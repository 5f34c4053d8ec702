"""What a server refuses: always a 4xx or 503 with code, message and hint, never a traceback or a path."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from colbert_prf import Index
from colbert_prf.server.app import create_app
from colbert_prf.server.indexes import Indexes, ServedIndex
from colbert_prf.server.schemas import ErrorAnswer
from colbert_prf.server.settings import ServerSettings
from colbert_prf.server.work_queue import WorkQueue
from tests.server.serving import PASSAGES, READ, SEARCH, WRITE, serving, wait_for

JSON = {"Content-Type": "application/json"}


def refused(response, status: int, code: str) -> str:
    answer = ErrorAnswer.model_validate(response.json())
    assert (response.status_code, answer.code) == (status, code), response.text
    assert set(response.json()) == {"code", "message", "hint"}
    assert answer.message
    assert answer.hint
    assert "Traceback" not in response.text
    assert ".index" not in response.text, "a path"
    assert response.headers["X-Request-ID"]
    return f"{answer.message}; {answer.hint}"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_json"),
        (b"", 422, "invalid_request"),
        (b"null", 422, "invalid_request"),
        (b"[]", 422, "invalid_request"),
        (b"7", 422, "invalid_request"),
        (b'{"query": "gold\xfffish"}', 400, "malformed_json"),
        (b'{"query": "gold\\ud800fish"}', 422, "invalid_request"),
        (b"[" * 100_000, 400, "malformed_json"),
        (b'{"query": NaN}', 422, "invalid_request"),
        (b'{"query": "a", "feedback": {"weight": NaN}}', 422, "invalid_request"),
        (b'{"query": "a", "feedback": {"beta": Infinity}}', 422, "invalid_request"),
        (b'{"query": "a", "feedback": {"beta": 1e400}}', 422, "invalid_request"),
        (b'{"query": "a", "where": {"year": NaN}}', 422, "invalid_request"),
        (b'{"query": "a", "where": {"year": "\\ud800"}}', 422, "invalid_request"),
    ],
)
def test_malformed_bodies(client, body, status, code):
    refused(client.post(SEARCH, content=body, headers=JSON), status, code)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "either a query or queries"),
        ({"query": "a", "queries": ["b"]}, "either a query or queries"),
        ({"query": 7}, "query: input should be a valid string, found 7"),
        ({"query": ""}, "at least 1 character"),
        ({"query": " \t"}, "the query is empty"),
        ({"query": "a", "k": "3"}, "k: input should be a valid integer"),
        ({"query": "a", "k": True}, "k: input should be a valid integer"),
        ({"query": "a", "k": 0}, "greater than or equal to 1"),
        ({"query": "a", "k": 1001}, "k may be at most 1,000, found 1,001"),
        ({"query": "a", "k": 10**30}, "k"),
        ({"query": "a" * 10_001}, "characters of a query may be at most 10,000"),
        ({"queries": ["a"] * 65}, "number of queries may be at most 64"),
        ({"queries": []}, "at least 1 item"),
        ({"queries": ["a", 7]}, "queries.1"),
        ({"query": "a", "k": 201, "explain": True}, "explanations"),
        ({"query": "a", "method": "magic"}, "'colbert', 'bm25' or 'hybrid'"),
        ({"query": "a", "colour": 1}, "colour: extra inputs are not permitted"),
        ({"query": "a", "where": "year > 3"}, "where"),
        ({"query": "a", "where": {"colour": "red"}}, "colour"),
        ({"query": "a", "where": {"year": {"near": 3}}}, "near"),
        ({"query": "a", "where": {"yeer": 1999}, "method": "bm25"}, "no field 'yeer'"),
        ({"query": "a", "group": "document"}, "passages"),
        ({"query": "a", "feedback": {"method": "rm3"}}, "does not go with the method 'colbert'; choose prf"),
        ({"query": "a", "method": "bm25", "feedback": {}}, "does not go with the method 'bm25'; choose rm3"),
        ({"query": "a", "method": "hybrid", "explain": True}, "hybrid"),
        ({"query": "a", "feedback": {"relevance": 0.5}}, "'prf' has no parameter 'relevance'"),
        ({"query": "a", "feedback": {"weight": 1, "beta": 1}}, "exclude each other"),
        ({"query": "a", "feedback": {"clusters": 0}}, "feedback.clusters"),
        ({"query": "a", "feedback": {"clusters": 2.5}}, "feedback.clusters"),
        ({"query": "a", "feedback": {"without": [-1]}}, "feedback.without.0"),
        ({"query": "a", "feedback": {"relevant": ["nobody"]}}, "nobody"),
        ({"query": "a", "feedback": {"texts": [""]}}, "feedback.texts.0"),
        ({"query": "a", "feedback": {"with_passages": True}}, "feedback_texts"),
        ({"query": "a", "exact": True, "rescore": 5}, "leave probes and rescore out"),
        ({"query": "a", "feedback": {"relevant": ["fish"], "non_relevant": ["fish"]}}, "decide"),
        ({"query": "a", "method": "bm25", "feedback": {"method": "kl", "original": 0.5}}, "no parameter 'original'"),
        ({"query": "a", "method": "bm25", "feedback": {"method": "kl", "relevant": ["fish"]}}, "does not take"),
    ],
)
def test_requests_that_cannot_be_used(client, body, words):
    response = client.post(SEARCH, json=body)
    assert words.lower() in refused(response, 422, response.json()["code"]).lower()


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("explain", {"query": "a", "doc_ids": ["nobody"]}),
        ("explain", {"query": "a", "doc_ids": []}),
        ("explain", {"query": "a"}),
        ("expand", {"query": ["a"]}),
        ("plane", {"query": "a", "feedback": {"method": "centroid"}}),
        ("plane", {"query": "a", "compare": 3}),
        ("plane", {"query": "a", "feedback": {"texts": ["A pond."]}}),
    ],
)
def test_other_actions_refuse_too(client, action, body):
    response = client.post(f"/v1/indexes/fish/{action}", json=body)
    refused(response, 422, response.json()["code"])


@pytest.mark.parametrize("name", ["nowhere", "..", "fish.index", "%00", "a%2Fb", "%FF"])
def test_unknown_indexes(client, name):
    for response in (
        client.post(f"/v1/indexes/{name}/search", json={"query": "a"}),
        client.get(f"/v1/indexes/{name}/documents/fish"),
    ):
        assert response.status_code == 404
        assert ErrorAnswer.model_validate(response.json()).code in ("unknown_index", "not_found")


@pytest.mark.parametrize("doc_id", ["nobody", "a/b", "a/b c", "../../../etc/passwd", "a//b", " ", "%00", "\ud7ff"])
def test_unknown_documents(client, doc_id):
    refused(client.get(f"/v1/indexes/fish/documents/{quote(doc_id, safe='')}"), 404, "unknown_document")
    refused(client.get("/v1/indexes/fish/documents", params={"id": doc_id}), 404, "unknown_document")


def test_unknown_addresses_methods_and_types(client):
    refused(client.get("/nowhere"), 404, "not_found")
    refused(client.get("/v1/nowhere"), 404, "not_found")
    refused(client.get(SEARCH), 405, "method_not_allowed")
    refused(client.get("/v1/tasks/nobody"), 404, "unknown_task")
    form = client.post(SEARCH, content=b"query=a", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert "Content-Type: application/json" in refused(form, 415, "not_json")


def test_huge_bodies_are_refused(client):
    refused(client.post(SEARCH, content=b"x" * (1 << 20) + b"x"), 413, "too_large")
    without_length = iter([b"x" * 65536] * 17)
    refused(client.post(SEARCH, content=without_length, headers=JSON), 413, "too_large")
    refused(client.post(SEARCH, content=b"{}", headers={**JSON, "Content-Length": "x"}), 413, "too_large")


def test_huge_uploads_are_refused_and_change_nothing(folder):
    small = ServerSettings().limits.model_copy(update={"upload_bytes": 100})
    document = json.dumps({"doc_id": "x", "text": "A zebra. " * 20}).encode()
    with serving(folder, write_key="write", limits=small) as client:
        for body in (document, iter([document[:90], document[90:]])):  # with and without Content-Length
            response = client.put("/v1/indexes/fish/documents", content=body, headers=WRITE)
            assert "100 bytes" in refused(response, 413, "too_large")
        assert client.get("/v1/indexes").json()["indexes"][0]["generation"] == 1


def test_a_server_with_a_read_key(built):
    with serving(built, read_key="read", write_key="write") as client:
        assert client.get("/health").status_code == 200
        for path in ("/v1/indexes", "/v1/indexes/fish", "/metrics", "/v1/indexes/nowhere"):
            refused(client.get(path), 401, "key_needed")
            refused(client.get(path, headers={"X-API-Key": "rea"}), 401, "wrong_key")
            refused(client.get(path, headers={"Authorization": "Bearer é".encode()}), 401, "wrong_key")
        for key in (READ, WRITE, {"X-API-Key": "write"}, {"Authorization": "Bearer read"}):
            assert client.get("/v1/indexes", headers=key).status_code == 200
        refused(client.post("/v1/indexes/fish/merge"), 401, "key_needed")
        refused(client.post("/v1/indexes/fish/merge", headers=READ), 403, "write_key_needed")
        refused(client.post("/v1/indexes/fish/merge", headers={"X-API-Key": "x"}), 401, "wrong_key")


def test_without_a_write_key_nobody_writes(client):
    for method, path in (
        ("PUT", "documents"),
        ("DELETE", "documents"),
        ("DELETE", "documents/fish"),
        ("POST", "merge"),
    ):
        response = client.request(method, f"/v1/indexes/fish/{path}", headers=WRITE)
        assert "COLBERT_PRF_WRITE_KEY" in refused(response, 403, "writes_disabled")


def test_other_origins_are_told_nothing(client):
    response = client.options(
        SEARCH, headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert "access-control-allow-origin" not in response.headers
    assert response.status_code == 405


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(built):
    with serving(built, workers=1, waiting=0) as client:
        queue: WorkQueue = client.app.state.service.queue
        entered, leave = threading.Event(), threading.Event()

        async def block():
            def wait(_: float) -> None:
                entered.set()
                leave.wait()

            await queue.run(wait)

        blocked = client.portal.start_task_soon(block)
        assert entered.wait(60)
        response = client.post(SEARCH, json={"query": "a"})
        refused(response, 503, "overloaded")
        assert int(response.headers["Retry-After"]) >= 1
        assert client.get("/health").status_code == 200, "what needs no search is answered"
        refused(client.post(SEARCH, content=b"{", headers=JSON), 503, "overloaded")  # before anything is read
        refused(client.get("/v1/indexes/fish/documents/fish"), 503, "overloaded")
        assert "colbert_prf_searches_refused_total 3.0" in client.get("/metrics").text
        leave.set()
        blocked.result(60)
        assert client.post(SEARCH, json={"query": "a"}).status_code == 200


def test_before_the_index_is_open_searches_are_refused(tmp_path, built):
    later = tmp_path / "later.index"
    app = create_app(Indexes([ServedIndex("fish", later)]), ServerSettings(write_key="write", reload_seconds=0.05))
    with TestClient(app, raise_server_exceptions=False) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/ready").status_code == 503
        refused(client.post(SEARCH, json={"query": "a"}), 503, "not_ready")
        refused(client.post("/v1/indexes/fish/merge", headers=WRITE), 503, "not_ready")
        assert client.get("/v1/indexes").json()["indexes"] == []
        shutil.copytree(built, later)
        wait_for(lambda: client.get("/ready").status_code == 200)
        assert client.post(SEARCH, json={"query": "a"}).status_code == 200


def test_an_index_of_vectors_cannot_be_searched_in_words(tmp_path, encoder):
    encoded = zip((doc_id for doc_id, _, _ in PASSAGES), encoder.encode_documents(p[1] for p in PASSAGES), strict=True)
    path = tmp_path / "vectors.index"
    Index.create_from_vectors(path, encoded, bits=4, progress=False)
    with serving(path) as client:
        assert "encoder" in refused(client.post(SEARCH, json={"query": "a"}), 422, "invalid_input")
        response = client.post(SEARCH, json={"query": "a", "method": "bm25"})
        assert "text" in refused(response, 422, "invalid_input")
        assert client.get("/v1/indexes/fish").json()["methods"] == ["colbert"]


@pytest.mark.parametrize("log_queries", [False, True])
def test_the_access_log_has_queries_only_if_asked(built, caplog, log_queries):
    logger = logging.getLogger("colbert_prf.server.access")
    with caplog.at_level(logging.INFO, logger.name), serving(built, log_queries=log_queries) as client:
        client.post(SEARCH, json={"query": "a secret"}, headers={"X-Request-ID": "mine"})
    lines = [json.loads(record.message) for record in caplog.records if record.name == logger.name]
    (line,) = [line for line in lines if line["request_id"] == "mine"]
    assert (line["method"], line["path"], line["status"]) == ("POST", SEARCH, 200)
    assert line.get("queries") == (["a secret"] if log_queries else None)
    assert ("secret" in caplog.text) == log_queries
