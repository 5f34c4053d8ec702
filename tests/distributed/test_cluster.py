"""Reaching a cluster, and refusing workers that are unlike the driver."""

from __future__ import annotations

import builtins
import dataclasses
import socket

import pytest

from colbert_prf.distributed.cluster import connected, shared_folder
from colbert_prf.errors import ClusterError, InputError, MissingExtraError


@pytest.fixture
def unconnected(monkeypatch):
    """A process that is not connected, although another test of this process may have connected it."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)


@pytest.mark.usefixtures("unconnected")
def test_an_address_where_nothing_listens_is_refused_with_advice():
    with socket.socket() as taken:  # bound, so that nobody else listens there
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray cluster answers at {address} .*ray start --head"):
            connected(address).__enter__()


@pytest.mark.usefixtures("unconnected")
@pytest.mark.parametrize("address", ["ray://head:10001", "head:port", ":6379"])
def test_what_is_no_address_is_refused(address: str):
    with pytest.raises(InputError, match="a Ray address is HOST:PORT"):
        connected(address).__enter__()


def test_without_ray_the_extra_is_named(monkeypatch):
    real_import = builtins.__import__

    def without_ray(name, *arguments, **keywords):
        if name == "ray":
            raise ImportError(name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(MissingExtraError, match=r"colbert-prf\[ray\]"):
        connected().__enter__()


def test_a_worker_that_sees_the_folder_passes_and_the_token_goes(tmp_path):
    with shared_folder(tmp_path) as check:
        assert len(list(tmp_path.iterdir())) == 1
        check.run()
    assert not list(tmp_path.iterdir())


def test_a_worker_with_another_folder_is_refused(tmp_path):
    with shared_folder(tmp_path) as check:
        with pytest.raises(ClusterError, match=r"does not see .*mount under one path"):
            dataclasses.replace(check, token=str(tmp_path / "elsewhere")).run()
        with pytest.raises(ClusterError, match="sees another file"):
            dataclasses.replace(check, content="of another driver").run()


def test_a_worker_with_another_version_is_refused(tmp_path):
    with shared_folder(tmp_path) as check, pytest.raises(ClusterError, match=r"the driver 0\.0\.0; install one"):
        dataclasses.replace(check, version="0.0.0").run()


def test_a_connected_process_stays_connected(ray_cluster):
    with connected("127.0.0.1:1") as ray:
        assert ray is ray_cluster
    assert ray_cluster.is_initialized()
