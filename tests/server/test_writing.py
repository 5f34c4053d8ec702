"""Writes: tasks that are done one after the other, all or nothing."""

from __future__ import annotations

import json
import threading

import pytest

from colbert_prf import Index
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writer_lock
from tests.server.serving import PASSAGES, SEARCH, finished, serving, wait_for

DOCUMENTS = "/v1/indexes/fish/documents"


def lines(*documents: dict) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def found(client, query: str) -> str:
    return client.post(SEARCH, json={"query": query, "k": 1}).json()["results"][0]["hits"][0]["doc_id"]


def test_upsert_adds_and_replaces(writable):
    body = lines(
        {"doc_id": "new/1", "text": "A zebra has stripes.", "year": 2001},
        {"_id": "fish", "title": "Whales", "text": "The blue whale is the largest animal."},
    )
    response = writable.put(DOCUMENTS, content=body)
    task = finished(writable, response)
    assert (task["state"], task["action"], task["done"], task["total"]) == ("finished", "upsert", 2, 2)
    assert task["error"] is None
    assert task["generation"] == 2, "one write, one generation"
    assert task["created"] <= task["started"] <= task["ended"]
    new = writable.get(f"{DOCUMENTS}/new/1").json()
    assert (new["metadata"], new["generation"]) == ({"year": 2001}, task["generation"])
    assert writable.get(f"{DOCUMENTS}/fish").json()["text"] == "Whales The blue whale is the largest animal."
    assert found(writable, "stripes of a zebra") == "new/1"
    assert found(writable, "how large is a whale") == "fish"
    assert writable.get("/v1/indexes").json()["indexes"][0]["num_documents"] == len(PASSAGES) + 1


def test_the_same_upsert_twice_leaves_the_same_documents(writable):
    for _ in range(2):
        finished(writable, writable.put(DOCUMENTS, content=lines({"id": "x", "text": "A zebra has stripes."})))
    assert writable.get("/v1/indexes").json()["indexes"][0]["num_documents"] == len(PASSAGES) + 1


@pytest.mark.filterwarnings("ignore::colbert_prf.errors.OutgrownCodecWarning")
def test_a_body_is_streamed(writable):
    def body():
        for number in range(50):
            yield lines({"doc_id": f"d{number}", "text": f"Passage number {number} of a stream."})

    task = finished(writable, writable.put(DOCUMENTS, content=body()))
    assert (task["state"], task["total"]) == ("finished", 50)
    assert writable.get(f"{DOCUMENTS}/d49").json()["text"] == "Passage number 49 of a stream."


def test_delete_and_merge(writable):
    task = finished(writable, writable.request("DELETE", DOCUMENTS, json={"doc_ids": ["fish", "pond", "fish"]}))
    assert (task["state"], task["total"], task["generation"]) == ("finished", 2, 2)
    finished(writable, writable.delete(f"{DOCUMENTS}/a/b%20c%3Fd%23e"))
    assert writable.get(f"{DOCUMENTS}/fish").status_code == 404
    assert writable.get("/v1/indexes/fish").json()["num_deleted"] == 3
    task = finished(writable, writable.post("/v1/indexes/fish/merge"))
    shown = writable.get("/v1/indexes/fish").json()
    assert (shown["num_deleted"], shown["num_documents"], shown["generation"]) == (0, 5, task["generation"])
    assert finished(writable, writable.post("/v1/indexes/fish/merge", json={"retrain": True}))["state"] == "finished"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "does not begin with a JSON object"),
        (b"\n\n", "does not begin with a JSON object"),
        (b"[1]", "does not begin with a JSON object"),
        (b"\x1f\x8b\x08", "does not begin with a JSON object"),
        (b"{", "line 1: not valid JSON"),
        (b'{"doc_id": "a", "text": "b"}\n{"doc_id": "c"}', "line 2: expected a field text"),
        (b'{"doc_id": "a", "text": 7}', "line 1: 'text' must be a string"),
        (b'{"doc_id": "a", "text": ""}', "has no text"),
        (b'{"doc_id": "", "text": "b"}', "id is empty"),
        (b'{"doc_id": "a", "text": "b"}\n{"doc_id": "a", "text": "b"}', "line 2: the document id 'a' was used before"),
        (b'{"doc_id": "a", "text": "b\xff"}', "utf-8"),
        (b'{"doc_id": "a", "text": "\\ud800"}', "surrogate"),
        (b'{"doc_id": "a", "text": "b", "year": NaN}', "cannot be written as JSON"),
        (b'{"doc_id": "a", "text": "b", "year": "\\ud800"}', "cannot be written as JSON"),
    ],
)
def test_lines_that_cannot_be_read_change_nothing(writable, body, words):
    response = writable.put(DOCUMENTS, content=body)
    assert response.status_code in (400, 422)
    assert words.lower() in response.json()["message"].lower()
    assert "tmp" not in response.text
    assert writable.get("/v1/indexes").json()["indexes"][0]["generation"] == 1


@pytest.mark.parametrize(
    ("body", "status"), [({}, 422), ({"doc_ids": []}, 422), ({"doc_ids": "fish"}, 422), ({"doc_ids": ["nobody"]}, 404)]
)
def test_deletions_that_are_refused(writable, body, status):
    assert writable.request("DELETE", DOCUMENTS, json=body).status_code == status
    assert writable.delete(f"{DOCUMENTS}/no/body").status_code == 404


def test_a_deletion_of_what_an_earlier_write_brings_is_done_in_order(writable):
    release = hold_writes(writable)
    first = writable.put(DOCUMENTS, content=lines({"doc_id": "x", "text": "A zebra."}))
    second = writable.request("DELETE", DOCUMENTS, json={"doc_ids": ["x"]})
    third = writable.request("DELETE", DOCUMENTS, json={"doc_ids": ["x"]})
    assert [r.json()["state"] for r in (first, second, third)] == ["waiting"] * 3
    release.set()
    assert [finished(writable, r)["state"] for r in (first, second, third)] == ["finished", "finished", "failed"]
    error = writable.get(third.headers["Location"]).json()["error"]
    assert (error["code"], "'x'" in error["message"]) == ("invalid_input", True)


def test_a_locked_index_is_409(writable, folder):
    with writer_lock(IndexLayout.at(folder), "test"):
        for response in (
            writable.put(DOCUMENTS, content=lines({"doc_id": "x", "text": "A zebra."})),
            writable.delete(f"{DOCUMENTS}/fish"),
            writable.post("/v1/indexes/fish/merge"),
        ):
            assert (response.status_code, response.json()["code"]) == (409, "index_locked")
            assert response.headers["Retry-After"] == "1"
        assert writable.post(SEARCH, json={"query": "goldfish"}).status_code == 200
    assert finished(writable, writable.delete(f"{DOCUMENTS}/fish"))["state"] == "finished"


def test_a_write_that_waits_too_long_for_another_process_fails(writable, folder):
    release = hold_writes(writable)
    response = writable.delete(f"{DOCUMENTS}/fish")
    with writer_lock(IndexLayout.at(folder), "test"):
        release.set()
        task = finished(writable, response)
    assert (task["state"], task["error"]["code"]) == ("failed", "index_locked")
    assert writable.get(f"{DOCUMENTS}/fish").status_code == 200


def test_too_many_writes_are_429(folder):
    with serving(folder, write_key="write", waiting_writes=1) as client:
        client.headers["X-API-Key"] = "write"
        release = hold_writes(client)
        accepted = client.delete(f"{DOCUMENTS}/fish")
        refused = client.delete(f"{DOCUMENTS}/pond")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_writes")
        assert int(refused.headers["Retry-After"]) > 0
        release.set()
        assert finished(client, accepted)["state"] == "finished"


def test_changes_of_others_are_seen(client, built, folder, encoder):
    with serving(folder) as other:
        Index.open(folder, encoder=encoder).add([("x", "A zebra has stripes.")])
        wait_for(lambda: other.get("/v1/indexes").json()["indexes"][0]["generation"] == 2)
        assert found(other, "stripes of a zebra") == "x"


def test_a_generation_that_cannot_be_opened_leaves_the_last_one(folder):
    with serving(folder) as client:
        manifest = folder / "manifest.json"
        kept = manifest.read_bytes()
        manifest.write_bytes(b"{}")
        wait_for(lambda: client.get("/ready").json()["indexes"]["fish"] == "stale")
        assert client.get("/ready").status_code == 200
        assert client.post(SEARCH, json={"query": "goldfish"}).status_code == 200
        manifest.write_bytes(kept)
        wait_for(lambda: client.get("/ready").json()["indexes"]["fish"] == "ready")


def test_no_temporary_file_is_left(folder, tmp_path, monkeypatch):
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    with serving(folder, write_key="write") as client:
        client.headers["X-API-Key"] = "write"
        finished(client, client.put(DOCUMENTS, content=lines({"doc_id": "x", "text": "A zebra."})))
        client.put(DOCUMENTS, content=b"{")
    assert list(spool.iterdir()) == []


def hold_writes(client) -> threading.Event:
    """Keep the thread that writes busy, until the event is set."""
    release = threading.Event()
    service = client.app.state.service
    service.tasks.submit(service.indexes["fish"], "merge", 0, lambda *_: release.wait(60))
    wait_for(lambda: service.tasks.num_pending == 1)
    return release
