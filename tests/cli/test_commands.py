"""Commands as a user types them; those about pipes, signals and the process itself in a process of their own."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from colbert_prf import Encoder, __version__
from colbert_prf.cli import cli, main
from colbert_prf.errors import OutgrownCodecWarning

CORPUS = "fish\tGoldfish grow all their life if the tank is large.\nbank\tThe bank raised its rates again.\n"
COMMANDS = sorted(cli.commands)
ANNOUNCED_MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background ignores it
from colbert_prf.cli import main
from colbert_prf.encoder.onnx import OnnxEncoder

encode_documents = OnnxEncoder.encode_documents

def announced(self, texts, **options):
    print("encoding", flush=True)
    return encode_documents(self, texts, **options)

OnnxEncoder.encode_documents = announced
main()
"""


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "passages.tsv"
    path.write_text(CORPUS)
    return path


class Done(NamedTuple):
    """What a command leaves behind."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, standard_input: str = "") -> Done:
    """Run a command in this process, without a terminal, as :func:`colbert_prf.cli.main` runs it."""
    streams = [io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8") for text in (standard_input, "", "")]
    names = ("stdin", "stdout", "stderr")
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(names, streams, strict=True):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
    _, output, errors = streams
    for stream in (output, errors):
        stream.flush()
    return Done(stopped.value.code, output.buffer.getvalue().decode(), errors.buffer.getvalue().decode())


def run_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from colbert_prf.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_search_prints_passages_without_colours_in_a_pipe(corpus):
    done = run_process("search", str(corpus), "do fish grow", "-k", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "do fish grow"
    assert lines[1].split()[0] == "1."
    assert lines[1].split()[2] == "fish"
    assert lines[2].strip() == "Goldfish grow all their life if the tank is large."
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr == ""


def test_long_lines_are_not_broken_in_a_pipe(tmp_path):
    (tmp_path / "p.tsv").write_text("a-" + "very" * 60 + "-long-id\tgoldfish\n")
    assert "very" * 60 in run("search", str(tmp_path / "p.tsv"), "fish").stdout


def test_brackets_in_texts_and_ids_are_not_markup(tmp_path):
    (tmp_path / "p.tsv").write_text("[red]id\t[bold]gold[/bold] fish [/oops]\n")
    done = run("search", str(tmp_path / "p.tsv"), "[blue]fish")
    assert done.returncode == 0, done.stderr
    assert "[red]id" in done.stdout
    assert "[bold]gold[/bold] fish [/oops]" in done.stdout
    assert "[blue]fish" in done.stdout


def test_search_reads_standard_input_and_prints_json(corpus):
    done = run("search", "-", "do fish grow", "money", "-k", "1", "--json", standard_input=CORPUS)
    first, second = json.loads(done.stdout)
    assert first["query"] == "do fish grow"
    assert first["tokens"][:7] == ["[CLS]", "[unused0]", "do", "fish", "grow", "[SEP]", "[MASK]"]
    assert len(first["tokens"]) == 32
    assert [hit["doc_id"] for hit in first["hits"] + second["hits"]] == ["fish", "bank"]
    assert first["hits"][0]["rank"] == 1
    assert first["milliseconds"].keys() == {"encode", "score", "hits"}


def test_search_refuses_keeps_or_skips_empty_passages(tmp_path):
    (tmp_path / "p.tsv").write_text("fish\tgoldfish\nnothing\t\n")
    refused = run("search", str(tmp_path / "p.tsv"), "fish", "--json")
    assert refused.returncode == 1
    assert "line 2: document 'nothing' has no text" in refused.stderr
    for policy, found in {"keep": {"fish", "nothing"}, "skip": {"fish"}}.items():
        done = run("search", str(tmp_path / "p.tsv"), "fish", "--json", "--empty", policy)
        assert {hit["doc_id"] for hit in json.loads(done.stdout)[0]["hits"]} == found


def test_info_shows_the_embedded_model():
    facts = json.loads(CliRunner().invoke(cli, ["info", "--json"]).stdout)
    assert facts["dim"] == 96
    assert len(facts["fingerprint"]) == 32
    assert facts["fingerprint"] in CliRunner().invoke(cli, ["info"]).stdout


def test_demo_answers_questions(tmp_path, monkeypatch):
    monkeypatch.setattr("colbert_prf.demo.demo_passages", lambda: [("str.split", "str.split: Split a string.")] * 1)
    done = CliRunner().invoke(cli, ["demo", "split a string", "--cache", str(tmp_path), "--json"])
    (answer,) = json.loads(done.stdout)
    assert answer["hits"][0]["doc_id"] == "str.split"
    shown = CliRunner().invoke(cli, ["demo", "--cache", str(tmp_path)])
    assert shown.stdout.count("str.split: Split a string.") == 4


def test_demo_shows_both_passes(tmp_path, monkeypatch):
    words = ["split", "join", "strip", "find"]
    passages = [(f"str.{word}", f"str.{word}: {word} a string at the given place.") for word in words]
    monkeypatch.setattr("colbert_prf.demo.demo_passages", lambda: passages)
    arguments = ["demo", "split a string", "-k", "2", "--cache", str(tmp_path)]
    lines = CliRunner().invoke(cli, arguments).stdout.splitlines()
    assert lines[3].split()[:2] == ["1.", "="]
    assert [line.split()[0] for line in lines[2:] if line.strip()][1::2] == ["1.", "2.", "+"]
    (answer,) = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)
    assert answer["before"]
    assert answer["expansion"]["vectors"]
    plain = CliRunner().invoke(cli, [*arguments, "--plain"]).stdout.splitlines()
    assert plain[3].split()[2] == "str.split"
    assert not any(line.strip().startswith("+") for line in plain)


def test_the_life_of_an_index(corpus, tmp_path):
    path, more = str(tmp_path / "my.index"), tmp_path / "more.jsonl"
    made = json.loads(run("index", str(corpus), path, "--bits", "4", "--json").stdout)
    assert (made["num_documents"], made["bits"], made["generation"]) == (2, 4, 1)
    more.write_text('{"_id": "war", "text": "The tank fired at the troops.", "year": 1917}\n')
    assert "3 passages" in run("add", path, str(more)).stdout
    assert "'war' is in the index already; to replace it use upsert" in run("add", path, str(more)).stderr
    more.write_text(more.read_text() + '{"_id": "bank", "text": "A river bank."}\n')
    assert json.loads(run("upsert", path, str(more), "--json").stdout)["num_documents"] == 3
    assert "2 passages" in run("delete", path, "bank").stdout
    found = json.loads(run("search", path, "soldiers", "-k", "9", "--json", "--explain").stdout)[0]
    assert [hit["doc_id"] for hit in found["hits"]] == ["war", "fish"]
    assert found["hits"][0]["text"] == "The tank fired at the troops."
    matches = found["hits"][0]["matches"]
    assert [match["query_token"] for match in matches[:4]] == ["[CLS]", "[unused0]", "soldiers", "[SEP]"]
    assert {match["query_token"] for match in matches[4:]} == {"[MASK]"}
    assert sum(match["contribution"] for match in matches) == pytest.approx(found["hits"][0]["score"], abs=1e-3)
    assert "troops" in run("search", path, "soldiers", "-k", "1", "--explain").stdout.split("query token")[1]
    assert json.loads(run("merge", path, "--json").stdout)["num_segments"] == 1
    assert "all as they were written" in run("verify", path).stdout
    assert json.loads(run("info", path, "--json").stdout)["num_documents"] == 2


def test_search_with_the_preset_of_the_paper(corpus, tmp_path):
    path = str(tmp_path / "my.index")
    run("index", str(corpus), path, "--bits", "16")
    done = run("search", path, "do fish grow", "-k", "1", "--preset", "paper", "--json")
    assert done.stderr == ""
    (found,) = json.loads(done.stdout)
    assert [hit["doc_id"] for hit in found["hits"]] == ["fish"]
    assert found["milliseconds"].keys() == {"encode", "prepare", "candidates", "maxsim", "hits"}
    assert json.loads(run("search", path, "do fish grow", "-k", "1", "--json").stdout)[0]["hits"] == found["hits"]
    refused = run("search", str(corpus), "fish", "--preset", "paper")
    assert refused.returncode == 1
    assert "--bits 16" in refused.stderr


def test_an_index_is_never_overwritten(corpus, tmp_path):
    path = str(tmp_path / "my.index")
    run("index", str(corpus), path)
    again = run("index", str(corpus), path)
    assert again.returncode == 1
    assert again.stderr.startswith("Error: ")
    assert "2 passages" in run("merge", path).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "nowhere.tsv", "fish"], "nowhere.tsv: no such file"),
        (["search", "CORPUS", " "], "the query is empty"),
        (["search", "CORPUS", "fish", "--model", "./nowhere"], "no such model folder"),
        (["search", "CORPUS", "fish", "--model", "nowhere"], "no such model folder"),
        (
            ["search", "CORPUS", "fish", "--feedback", "prf", "--relevant", "a", "--non-relevant", "a"],
            "'a' is marked as",
        ),
        (["info", "CORPUS"], "a file, not a folder; `colbert-prf index"),
        (["info", "nowhere.index"], "nowhere.index: there is no such index or model folder"),
        (["index", "CORPUS", "CORPUS"], "cannot be made a folder"),
        (
            ["expansions", "CORPUS", "fish", "--format", "csv", "-o", "nowhere/a.csv"],
            "the folder nowhere does not exist",
        ),
        (["term-weights", "CORPUS", "nowhere/a.json"], "name a file in a folder that is there"),
    ],
)
def test_our_errors_are_one_line_and_exit_code_1(corpus, arguments, message):
    done = run(*[str(corpus) if argument == "CORPUS" else argument for argument in arguments])
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["serach"], ["search"], ["search", "x"], ["search", "x", "y", "-k", "0"], ["demo", "--bad"]]
)
def test_wrong_usage_is_exit_code_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("option", "first"), [("--json", "["), ("--explain", "fish")])
def test_a_closed_pipe_is_no_error(corpus, option, first):
    command = (
        f'"{sys.executable}" -c "from colbert_prf.cli import main; main()" search "{corpus}" fish {option} | head -n 1'
    )
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == f"{first}\n"
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_what_the_system_refuses_is_one_line(corpus):
    command = f'"{sys.executable}" -c "from colbert_prf.cli import main; main()" search "{corpus}" fish > /dev/full'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: output: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_is_quiet_and_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", ANNOUNCED_MAIN, "demo", "--cache", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "encoding\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert errors.split() == ["Interrupted."]
    assert not list(tmp_path.rglob("manifest.json"))


def test_the_version():
    assert run("--version").stdout.split()[-1] == __version__


def test_a_warning_is_one_line(monkeypatch, capsys):
    load = Encoder.load

    def warning_load(model=None):
        warnings.warn("the index has\noutgrown its codec", OutgrownCodecWarning, stacklevel=2)
        return load(model)

    monkeypatch.setattr(Encoder, "load", staticmethod(warning_load))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.raises(SystemExit) as stopped:
            main(["info", "--json"])
    assert stopped.value.code == 0
    assert capsys.readouterr().err == "Warning: the index has outgrown its codec\n"


def test_main_returns_the_exit_code():
    with pytest.raises(SystemExit) as stopped:
        main(["info", "--json"])
    assert stopped.value.code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name):
    shown = CliRunner().invoke(cli, [name, "--help"]).stdout
    assert "Examples:" in shown
    assert f"colbert-prf {name}" in shown


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("mcp", "serve")])
def test_every_command_with_a_result_can_print_it_as_json(name):
    """Servers run until they are stopped, and print no result."""
    assert "--json" in {option for parameter in cli.commands[name].params for option in parameter.opts}
