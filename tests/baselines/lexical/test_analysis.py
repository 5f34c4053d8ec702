"""A text as terms."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from colbert_prf.baselines.lexical import Analyzer
from colbert_prf.errors import InputError


def test_words_are_lowered_stopped_and_stemmed():
    assert Analyzer().terms("The Goldfish ARE growing, relational databases!") == [
        "goldfish",
        "grow",
        "relat",
        "databas",
    ]


@pytest.mark.parametrize(
    ("word", "kept"),
    [("1234", True), ("12345", False), ("aaab", True), ("aaaab", False), ("x" + "ab" * 9, True), ("ab" * 11, False)],
)
def test_noise_is_left_out(word, kept):
    assert Analyzer(stemmer="none").terms(word) == [word] * kept


def test_letters_of_any_script_are_words_and_underscores_separate():
    assert Analyzer(stemmer="none").terms("Größe_naïve 水槽") == ["größe", "naïve", "水槽"]


def test_porter_steps_are_those_of_1980():
    # Examples of the paper, but "fairly", which Porter's later stemmer shortens to "fair".
    words = {"caresses": "caress", "ponies": "poni", "hopping": "hop", "conditional": "condit", "fairly": "fairli"}
    assert {word: Analyzer().term(word) for word in words} == words


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="stemmer must be one of"):
        Analyzer(stemmer="krovetz")


def test_threads_may_share_an_analyzer():
    stems, endings = ("hope", "commun", "relat", "operat"), ("ization", "fulness", "ing")
    words = [f"{stem}{number}{ending}" for number in range(10, 99) for stem in stems for ending in endings]
    expected = [Analyzer().term(word) for word in words]
    shared, switching = Analyzer(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as executor:
            found = list(executor.map(shared.term, words))
    finally:
        sys.setswitchinterval(switching)
    assert found == expected
