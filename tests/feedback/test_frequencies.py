"""Token frequencies: counted like an index, kept in a file that says when it is damaged."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from colbert_prf import InputError, TokenFrequencies
from colbert_prf.errors import StorageError, TextError


def assert_same(found: TokenFrequencies, expected: TokenFrequencies) -> None:
    assert found.num_documents == expected.num_documents
    for name in ("document_frequencies", "collection_frequencies"):
        one, other = getattr(found, name), getattr(expected, name)
        if other is None:
            assert one is None
        else:
            assert one.tolist() == other.tolist()


def test_counts_worked_out_by_hand(encoder):
    """The word fish is in two of three texts, three times."""
    counted = TokenFrequencies.count(["fish fish", "a fish", "bank"], encoder=encoder, progress=False)
    fish, bank = (encoder.tokenization.document(text).input_ids[-2] for text in ("fish", "bank"))
    assert counted.num_documents == 3
    assert counted.document_frequencies[[fish, bank]].tolist() == [2, 1]
    assert counted.collection_frequencies[[fish, bank]].tolist() == [3, 1]


def test_counting_texts_gives_what_an_index_of_them_has(encoder, memory, open_index):
    long = "goldfish " * 1000  # cut by the model
    counted = TokenFrequencies.count(iter(memory.texts), encoder=encoder, progress=False)
    assert_same(counted, TokenFrequencies.of(open_index(4)))
    of_memory = TokenFrequencies.of(memory)
    size = len(of_memory.document_frequencies)
    assert counted.document_frequencies[:size].tolist() == of_memory.document_frequencies.tolist()
    assert not counted.document_frequencies[size:].any()
    cut = TokenFrequencies.count([long], encoder=encoder, progress=False)
    assert cut.collection_frequencies.sum() == len(next(iter(encoder.encode_documents([long]))))


def test_the_embedded_tokenizer_is_the_default(encoder):
    one, other = (TokenFrequencies.count(["a fish"], encoder=each, progress=False) for each in (encoder, None))
    assert_same(one, other)


@pytest.mark.parametrize("occurrences", [None, [5, 0, 2]])
def test_a_file_gives_back_what_was_saved(tmp_path, occurrences):
    saved = TokenFrequencies(7, np.array([3, 0, 2]), None if occurrences is None else np.array(occurrences))
    saved.save(tmp_path / "a.npz")
    assert_same(TokenFrequencies.load(tmp_path / "a.npz"), saved)
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_damage_never_gives_other_numbers(tmp_path):
    """Every byte in turn has a bit flipped: the file is refused, or the byte did not matter."""
    path = tmp_path / "a.npz"
    saved = TokenFrequencies(700, np.arange(300), np.arange(300) * 2)
    saved.save(path)
    content = path.read_bytes()
    refused = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        try:
            assert_same(TokenFrequencies.load(path), saved)
        except StorageError:
            refused += 1
    assert refused > len(content) / 2


def test_a_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    TokenFrequencies(7, np.arange(7)).save(path)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(StorageError, match=r"damaged, or not a \.npz file"):
            TokenFrequencies.load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(StorageError, match="cannot be read"):
        TokenFrequencies.load(path)
    with pytest.raises(StorageError, match="cannot be written"):
        TokenFrequencies(1, np.zeros(1, np.int64)).save(tmp_path / "missing" / "a.npz")
    none = {"collection_frequencies": np.zeros(0, np.int64)}
    for arrays, message in (
        ({"x": np.zeros(2)}, "not a file of token frequencies, found arrays \\['x'\\]"),
        ({"format": 2, "num_documents": 1, "document_frequencies": [0], **none}, "of format 2, this version reads 1"),
        (
            {"format": 1, "num_documents": 1, "document_frequencies": [2], **none},
            "wrong token frequencies: .* found 2 of 1",
        ),
        ({"format": 1, "num_documents": [1, 1], "document_frequencies": [1], **none}, "wrong token frequencies"),
        ({"format": "one", "num_documents": 1, "document_frequencies": [1], **none}, "of format one"),
        (
            {"format": np.array(object()), "num_documents": 1, "document_frequencies": [1], **none},
            "damaged, or not a .npz file",
        ),
    ):
        np.savez(path, **arrays)
        with pytest.raises(StorageError, match=message):
            TokenFrequencies.load(path)


def test_other_formats_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(StorageError, match="damaged, or not a"):
        TokenFrequencies.load(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("format", "num_documents", "document_frequencies", "collection_frequencies"):
            archive.writestr(name, "1")
    with pytest.raises(StorageError, match="of format b'1'"):
        TokenFrequencies.load(tmp_path / "a.zip")


def test_impossible_frequencies_are_refused(encoder):
    for arguments, message in (
        ((0, [0]), "num_documents must be a whole number of at least 1, found 0"),
        ((1.5, [0]), "num_documents must be a whole number"),
        ((3, [4]), "at most num_documents, found 4 of 3"),
        ((3, [-1]), "not negative, .* least -1"),
        ((3, [0.5]), "must be whole numbers"),
        ((3, [[1]]), "of shape \\(vocabulary_size,\\)"),
        ((3, [2, 1], [1, 1]), "nowhere smaller"),
        ((3, [2], [2, 1]), "must have the length"),
    ):
        with pytest.raises(InputError, match=message):
            TokenFrequencies(*arguments)
    with pytest.raises(InputError, match="at least 1, found 0"):
        TokenFrequencies.count([], encoder=encoder, progress=False)
    with pytest.raises(TextError, match="must be a string"):
        TokenFrequencies.count(["a", 7], encoder=encoder, progress=False)


def test_frequencies_are_frozen_and_their_own(encoder):
    mine = np.array([1, 2])
    frequencies = TokenFrequencies(2, mine)
    mine[0] = 2
    assert frequencies.document_frequencies.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        frequencies.document_frequencies[0] = 2
