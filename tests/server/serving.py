"""Servers for tests: in this process, or one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
from starlette.testclient import TestClient

from colbert_prf.server.app import create_app
from colbert_prf.server.indexes import Indexes, ServedIndex
from colbert_prf.server.settings import ServerSettings

PASSAGES = [
    ("fish", "Goldfish grow all their life if the tank is large.", {"topic": "animals", "year": 1999}),
    ("pond", "A goldfish in a pond becomes larger than one in a bowl.", {"topic": "animals", "year": 2005}),
    ("bowl", "A bowl without a filter is too small for a goldfish.", {"topic": "animals", "year": 2011}),
    ("bank", "The bank raised its rates again this year.", {"topic": "money", "year": 2020}),
    ("loan", "A loan with a fixed rate costs more at first.", {"topic": "money", "year": 2021}),
    ("tank", "The tank bombarded the troops behind the river.", {"topic": "war", "year": 1944}),
    ("a/b c?d#e", "An id may have slashes, spaces, question marks and hashes in it.", {"topic": "ids"}),
    ("script", "<script>alert('x')</script> & \"quotes\" 😀 مرحبا are text like any other.", {"topic": "text"}),
]
READ, WRITE = {"X-API-Key": "read"}, {"Authorization": "Bearer write"}
SEARCH = "/v1/indexes/fish/search"


@contextmanager
def serving(folder: Path, **settings):
    """A client of an app in this process, ready for searches."""
    settings = {"workers": 2, "reload_seconds": 0.05, **settings}
    app = create_app(Indexes([ServedIndex("fish", folder)]), ServerSettings(**settings))
    with TestClient(app, raise_server_exceptions=False) as client:
        wait_for(lambda: client.get("/ready").status_code == 200)
        yield client


def wait_for(condition, seconds: float = 120.0):
    """What a condition gives as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
    return value


def finished(client, response) -> dict:
    """The task of a write, once it has ended."""
    assert response.status_code == 202, response.text

    def ended():
        task = client.get(response.headers["Location"]).json()
        return task if task["state"] in ("finished", "failed") else None

    return wait_for(ended)


@contextmanager
def process(*arguments: str, **environment: str):
    """A server in a process of its own: the process, and a client of it."""
    code = "from colbert_prf.cli import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "serve", *arguments, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        address = running.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), running.stderr.read()
        with httpx.Client(base_url=address, timeout=60) as client:
            wait_for(lambda: client.get("/ready").status_code == 200)
            yield running, client
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()
