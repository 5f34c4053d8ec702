"""Documents with the questions they answer."""

from __future__ import annotations

import gzip
import json

import pytest

from colbert_prf import InputError
from colbert_prf.baselines.lexical import BM25, LexicalIndex, QueryGenerator, expanded_documents, read_expansions
from colbert_prf.errors import DatasetError, ModelError

DOCUMENTS = [("x", "Goldfish live in ponds."), ("y", "Rates fell."), ("z", "Rain fell.")]


def test_questions_from_a_file_are_found(tmp_path):
    (tmp_path / "q.tsv").write_text("x\thow long do fish survive\nx\twhere is carp kept\ny\twhy do banks lend\n")
    expansions = read_expansions(tmp_path / "q.tsv")
    index = LexicalIndex.create(tmp_path / "l", expanded_documents(DOCUMENTS, expansions), progress=False)
    assert BM25(index).search("carp survival banks").doc_ids == ["x", "y"]
    assert index.text("x") == "Goldfish live in ponds. how long do fish survive where is carp kept"
    assert index.text("z") == "Rain fell."


def test_json_lines_are_read(tmp_path):
    lines = [{"id": 7, "predicted_queries": ["a b", "c"]}, {"_id": "8", "queries": "d"}, {"id": 7, "query": "e"}]
    with gzip.open(tmp_path / "q.jsonl.gz", "wt") as file:
        file.write("\n\n".join(map(json.dumps, lines)))
    assert read_expansions(tmp_path / "q.jsonl.gz") == {"7": ["a b", "c", "e"], "8": ["d"]}


@pytest.mark.parametrize("line", ["no tab", '{"id": 1}', '{"id": 1', '{"id": 1, "queries": [2]}'])
def test_a_bad_line_is_named(tmp_path, line):
    (tmp_path / "q").write_text("x\tfine\n" + line + "\n")
    with pytest.raises(DatasetError, match="line 2"):
        read_expansions(tmp_path / "q")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A tiny T5 with random weights: it writes nonsense, the same every time."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    path = str(tmp_path_factory.mktemp("t5") / "model")
    words = ["<pad>", "</s>", "<unk>", *"goldfish live in ponds . rates fell rain who what".split()]
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(words), d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(path)
    return path


def test_a_checkpoint_writes_questions(checkpoint):
    generator = QueryGenerator(checkpoint, num_queries=3, max_length=4, batch_size=2)
    done = []
    texts = [text for _, text in DOCUMENTS]
    written = list(generator.generate(texts, progress=done.append))
    assert [len(queries) for queries in written] == [3, 3, 3]
    assert done == [2, 1]
    assert all(len(query.split()) <= 4 for queries in written for query in queries)
    assert written == list(generator.generate(texts))
    expanded = dict(expanded_documents(DOCUMENTS, generator))
    assert list(expanded) == ["x", "y", "z"]
    assert expanded["x"] == " ".join(["Goldfish live in ponds.", *written[0]])


def test_impossible_values_are_refused(checkpoint, tmp_path):
    with pytest.raises(InputError, match="num_queries"):
        QueryGenerator(checkpoint, num_queries=0)
    with pytest.raises(ModelError, match="no sequence-to-sequence model"):
        QueryGenerator(str(tmp_path))
