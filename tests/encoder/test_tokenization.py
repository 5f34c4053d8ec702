"""Markers, augmentation, truncation and skip list, on a tokenizer small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from colbert_prf.encoder import ModelSettings
from colbert_prf.encoder.tokenization import Tokenization
from colbert_prf.errors import ModelError

VOCABULARY = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "[Q]": 4, "[D]": 5, "gold": 6, "fish": 7, ",": 8}


def tokenization(**settings) -> Tokenization:
    tokenizer = Tokenizer(WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.enable_padding(length=50)
    return Tokenization(tokenizer, ModelSettings(name="tiny", dim=4, **settings))


def test_a_query_is_marked():
    ids, attention, kept = tokenization(query_prefix="[Q] ").query("gold fish")
    assert ids.tolist() == [1, 4, 6, 7, 2]
    assert attention.tolist() == [1] * 5
    assert kept.all()


@pytest.mark.parametrize("attend", [False, True])
def test_a_short_query_is_filled_up_with_masks(attend):
    ids, attention, kept = tokenization(augment_to=6, attend_to_augmentation=attend).query("gold")
    assert ids.tolist() == [1, 6, 2, 3, 3, 3]
    assert attention.tolist() == [1, 1, 1, attend, attend, attend]
    assert kept.all()


def test_a_query_longer_than_the_filling_is_kept_up_to_query_length():
    assert len(tokenization(augment_to=4, query_length=6).query("gold fish gold").input_ids) == 5
    assert tokenization(augment_to=4, query_length=6).query("gold " * 50).input_ids.tolist() == [1, 6, 6, 6, 6, 2]


def test_a_document_is_marked_cut_and_never_filled():
    ids, attention, _ = tokenization(document_prefix="[D] ", document_length=5, augment_to=8).document("fish " * 9)
    assert ids.tolist() == [1, 5, 7, 7, 2]
    assert attention.tolist() == [1] * 5


def test_skipped_tokens_are_seen_by_the_network_but_get_no_vector():
    ids, attention, kept = tokenization(skip_tokens=(",",)).document("gold , fish")
    assert ids.tolist() == [1, 6, 8, 7, 2]
    assert attention.tolist() == [1] * 5
    assert kept.tolist() == [True, True, False, True, True]
    assert tokenization(skip_tokens=(",",)).query("gold , fish").has_vector.all()


def test_both_sides_keep_their_own_length_in_any_order():
    both = tokenization(query_length=4, document_length=6)
    lengths = [len(side("gold " * 50).input_ids) for side in (both.query, both.document, both.query)]
    assert lengths == [4, 6, 4]


def test_a_token_the_tokenizer_lacks_is_refused():
    with pytest.raises(ModelError, match=r"does not have: \['!'\]"):
        tokenization(skip_tokens=("!",))


def test_saving_and_reading_is_identity(tmp_path):
    before = tokenization(query_prefix="[Q] ", augment_to=6)
    before.save(tmp_path / "tokenizer.json")
    after = Tokenization.from_file(tmp_path / "tokenizer.json", before.settings)
    for one, other in zip(before.query("gold"), after.query("gold"), strict=True):
        assert np.array_equal(one, other)


def test_spans_show_each_token_and_its_word_in_the_text(encoder):
    text = "Crèates 😀 mkdtemp."
    spans = encoder.tokenization.spans(text)
    shown = [
        (token, text[start:end], text[first:last])
        for token, (start, end), (first, last) in zip(
            encoder.tokens(spans.token_ids), spans.tokens.tolist(), spans.words.tolist(), strict=True
        )
        if start >= 0
    ]
    assert shown == [
        ("creates", "Crèates", "Crèates"),
        ("[UNK]", "😀", "😀"),
        ("mk", "mk", "mkdtemp"),
        ("##dt", "dt", "mkdtemp"),
        ("##em", "em", "mkdtemp"),
        ("##p", "p", "mkdtemp"),
        (".", ".", "."),
    ]
    assert spans.tokens.tolist()[:2] == [[-1, -1], [-1, -1]], "[CLS] and the marker are not in the text"


@pytest.mark.parametrize("text", ["", "  a\tb ", "[MASK] in a text", "gold\ud800fish", "long " * 300])
def test_spans_are_of_the_tokens_that_get_a_vector(encoder, text):
    spans, tokenized = encoder.tokenization.spans(text), encoder.tokenization.document(text)
    assert spans.token_ids.tolist() == tokenized.input_ids[tokenized.has_vector].tolist()
    assert spans.tokens.shape == spans.words.shape == (len(spans.token_ids), 2)
    assert spans.tokens.max() <= len(text)
