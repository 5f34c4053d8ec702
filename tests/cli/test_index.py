"""``colbert-prf index``: checks before it encodes, fields by name, and goes on after an interruption."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from colbert_prf import Index
from colbert_prf.cli import cli, main
from colbert_prf.encoder.onnx import OnnxEncoder
from colbert_prf.index import batch, segment_writer


def invoke(*arguments, text: str | None = None):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=text)


@pytest.fixture
def no_encoding(monkeypatch):
    monkeypatch.setattr(OnnxEncoder, "encode_documents", lambda *given, **options: pytest.fail("it encodes"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tone\nb\ttwo\na\tthree\n", "line 3: the document id 'a' was used before, at line 1"),
        ("a\tone\nb\t \n", "line 2: document 'b' has no text"),
        ("a\tone\nb\n", "line 2: expected 2 tab-separated columns"),
    ],
)
@pytest.mark.parametrize("standard_input", [False, True])
def test_everything_is_checked_before_anything_is_encoded(tmp_path, no_encoding, content, message, standard_input):
    (tmp_path / "p.tsv").write_text(content)
    source = "-" if standard_input else tmp_path / "p.tsv"
    done = invoke("index", source, tmp_path / "i", text=content)
    assert message in str(done.exception)
    assert not (tmp_path / "i").exists()


def test_standard_input_is_indexed_after_the_check(tmp_path):
    lines = '{"_id": "a", "text": "Goldfish grow.", "year": 1999}\n{"_id": "b", "text": "Rates fell."}\n'
    assert invoke("index", "-", tmp_path / "i", text=lines).exit_code == 0
    index = Index.open(tmp_path / "i")
    assert [(index.doc_id(p), index.text(p), index.metadata(p)) for p in range(2)] == [
        ("a", "Goldfish grow.", {"year": 1999}),
        ("b", "Rates fell.", {}),
    ]


def test_csv_with_fields_of_other_names(tmp_path):
    (tmp_path / "p.csv").write_text('sku,name,description,price\n7,Bowl,"Glass, round",9.5\n')
    fields = ["--id-field", "sku", "--text-field", "description", "--title-field", "name"]
    assert invoke("index", tmp_path / "p.csv", tmp_path / "i", *fields).exit_code == 0
    index = Index.open(tmp_path / "i")
    assert (index.doc_id(0), index.text(0), index.metadata(0)) == (
        "7",
        "Bowl Glass, round",
        {"name": "Bowl", "price": 9.5},
    )


def test_an_interrupted_build_goes_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "p.tsv").write_text("".join(f"d{n}\ttext number {n} of a few\n" for n in range(40)))
    monkeypatch.setattr(batch, "BATCH_SECONDS", 0)
    monkeypatch.setattr(segment_writer, "CHUNK_SECONDS", 0)
    monkeypatch.setattr(segment_writer, "CHUNK_SHARE", 0)
    encode = OnnxEncoder.encode_documents

    def interrupted(self, texts, **options):
        for number, encoded in enumerate(encode(self, texts, **options)):
            if number == 25:
                raise KeyboardInterrupt
            yield encoded

    command = ["index", str(tmp_path / "p.tsv"), str(tmp_path / "i")]
    with monkeypatch.context() as patch:
        patch.setattr(OnnxEncoder, "encode_documents", interrupted)
        with pytest.raises(SystemExit) as left:
            main(command)
    assert left.value.code == 130
    assert "25 passages are kept; the same command with --resume goes on" in capsys.readouterr().err

    facts = json.loads(invoke("info", tmp_path / "i", "--json").stdout)
    assert (facts["unfinished"], facts["num_documents"], facts["bits"]) == (True, 25, 4)
    assert "--resume" in invoke("info", tmp_path / "i").stdout
    assert "25 documents are done" in str(invoke("search", tmp_path / "i", "text").exception)
    assert "--resume" in str(invoke(*command).exception)

    encoded = []
    monkeypatch.setattr(
        OnnxEncoder,
        "encode_documents",
        lambda self, texts, **options: encode(self, (encoded.append(text) or text for text in texts), **options),
    )
    assert invoke(*command, "--resume").exit_code == 0
    assert len(encoded) == 15
    assert Index.open(tmp_path / "i").num_documents == 40


def test_old_names_are_understood_and_not_shown(tmp_path):
    (tmp_path / "p.txt").write_text("a\tone\n")
    assert invoke("index", tmp_path / "p.txt", tmp_path / "i", "--format", "tsv").exit_code == 0
    for command, new, old in (("index", "--corpus-format", " --format"), ("evaluate", "--relevance", "--rel ")):
        shown = invoke(command, "--help").stdout
        assert new in shown
        assert old not in shown
        assert f"{old.strip()}," not in shown


def test_every_k_has_both_names():
    for name in ("search", "run", "bm25", "demo", "sweep"):
        assert "-k, --k " in invoke(name, "--help").stdout, name
    assert "stride needs" in invoke("index", "x", "y", "--stride", "3").output
