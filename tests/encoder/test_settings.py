from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.encoder import ModelSettings
from colbert_prf.errors import ModelError

MINIMAL = {"format": 1, "name": "tiny", "dim": 4}


@given(
    st.builds(
        ModelSettings,
        name=st.text(),
        dim=st.integers(1, 1000),
        query_prefix=st.text(),
        query_length=st.integers(32, 64),
        augment_to=st.integers(0, 32),
        attend_to_augmentation=st.booleans(),
        skip_tokens=st.lists(st.text()).map(tuple),
    )
)
def test_writing_and_reading_is_identity(settings):
    assert ModelSettings.from_json(settings.to_json()) == settings


def test_the_paper_is_the_default_where_a_model_says_nothing():
    settings = ModelSettings.from_json(json.dumps(MINIMAL))
    assert (settings.query_length, settings.document_length) == (32, 180)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "must be a JSON object, found list"),
        (json.dumps({**MINIMAL, "format": 2}), "have format 2, this version reads 1; upgrade"),
        (json.dumps({"name": "tiny", "dim": 4}), "have format None"),
        (json.dumps({**MINIMAL, "lenght": 3}), r"unknown keys \['lenght'\]"),
        (json.dumps({"format": 1, "name": "tiny"}), r"lack \['dim'\]"),
        (json.dumps({**MINIMAL, "dim": "4"}), "dim must be a whole number, found '4'"),
        (json.dumps({**MINIMAL, "dim": True}), "dim must be a whole number, found True"),
        (json.dumps({**MINIMAL, "dim": 0}), "dim must be at least 1, found 0"),
        (json.dumps({**MINIMAL, "attend_to_augmentation": 1}), "must be true or false, found 1"),
        (json.dumps({**MINIMAL, "skip_tokens": [1]}), "must be a list of strings"),
        (json.dumps({**MINIMAL, "skip_tokens": "."}), "must be a list of strings"),
        (json.dumps({**MINIMAL, "augment_to": 33}), "between 0 and query_length = 32, found 33"),
    ],
)
def test_bad_settings_are_refused(text, message):
    with pytest.raises(ModelError, match=message):
        ModelSettings.from_json(text)
