from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.strings import joined


@given(texts=st.lists(st.text("ab \n\x7f\xe9", max_size=4), min_size=1, max_size=12), data=st.data())
@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_strings_become_lines(dtype, texts, data):
    raw = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, raw)]).astype(dtype)
    numbers = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=20))
    lines, whole = joined(np.frombuffer(b"".join(raw), np.uint8), offsets, np.array(numbers, np.int64))
    assert lines.tobytes() == b"".join(raw[number] + b"\n" for number in numbers)
    assert whole == all(texts[number].isascii() and "\n" not in texts[number] for number in numbers)


@pytest.mark.parametrize("offsets", [[0, 9, 3], [0, 2, 1], [2, 1, 3], [-1, 2, 3]])
def test_an_offset_that_leads_astray_is_not_followed(offsets):
    lines, whole = joined(np.frombuffer(b"abc", np.uint8), np.array(offsets), np.array([0, 1]))
    assert not whole
    assert len(lines) == 0
