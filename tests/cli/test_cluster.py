"""``--ray`` and its company: what they mean to the library."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from colbert_prf import Encoder, Index, distributed
from colbert_prf.cli import cli


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "c.tsv").write_text("a\tone fish\nb\ttwo fish\n")
    return tmp_path / "c.tsv"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--ray"], {"address": None}),
        (["--ray=local", "--workers=3"], {"address": None, "workers": 3}),
        (
            ["--ray", "10.0.0.1:6379", "--passages-per-segment=9"],
            {"address": "10.0.0.1:6379", "passages_per_segment": 9},
        ),
    ],
)
def test_a_cluster_builds_with_the_options_of_the_command(tmp_path, corpus, monkeypatch, options, expected):
    def create_index(path, documents, *, encoder, **given):
        assert isinstance(encoder, Encoder)
        calls.append(given)
        return Index.create(path, documents, encoder=encoder, progress=False)

    calls: list[dict] = []
    monkeypatch.setattr(distributed, "create_index", create_index)
    done = invoke("index", corpus, tmp_path / "i", "--bits=2", "--no-texts", *options)
    assert done.exit_code == 0, done.output
    assert "2 passages" in done.output
    assert calls == [{"bits": 2, "texts": False, "passages": None, "resume": False, **expected}]


@pytest.mark.parametrize(("command", "replacing"), [("add", False), ("upsert", True)])
def test_a_cluster_adds_and_replaces(tmp_path, corpus, monkeypatch, command, replacing):
    calls: list[tuple] = []
    monkeypatch.setattr(
        distributed, "add_documents", lambda index, documents, **given: calls.append((list(documents), given))
    )
    Index.create(tmp_path / "i", [("c", "three fish")], progress=False)
    assert invoke(command, tmp_path / "i", corpus, "--ray", "auto").exit_code == 0
    assert calls == [
        ([("a", "one fish", {}), ("b", "two fish", {})], {"replacing": replacing, "address": "auto"}),
    ]


@pytest.mark.parametrize("option", ["--workers=2", "--passages-per-segment=2"])
def test_options_of_a_cluster_need_one(tmp_path, corpus, option):
    done = invoke("index", corpus, tmp_path / "i", option)
    assert done.exit_code == 2
    assert f"{option.partition('=')[0]} needs --ray." in done.output
