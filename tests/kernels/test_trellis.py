"""Residuals as paths through a trellis, against paths that are drawn up one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.trellis import TRELLIS, best_paths, best_paths_definition, levels_of_paths


def symbols_of(packed: np.ndarray) -> list[int]:
    """The sixteen symbols of four bytes, from the lowest bits of the first byte up."""
    bits = int.from_bytes(packed.tobytes(), "little")
    return [(bits >> (2 * i)) & 3 for i in range(16)]


def in_steps(values: np.ndarray) -> list[float]:
    """The values of sixteen dimensions in the order of the symbols: dimension i is byte i % 4, plane i // 4."""
    return [values[4 * (i % 4) + i // 4] for i in range(16)]


def error(symbols: list[int], values: list[float]) -> float:
    levels = [TRELLIS[symbols[i] + 4 * symbols[(i + 1) % 16]] for i in range(16)]
    return float(np.square(np.array(levels) - values).sum())


@given(st.binary(min_size=4, max_size=4))
def test_levels_are_those_of_a_symbol_and_the_next(packed):
    packed = np.frombuffer(packed, np.uint8)
    symbols = symbols_of(packed)
    expected = [TRELLIS[symbols[i] + 4 * symbols[(i + 1) % 16]] for i in range(16)]
    assert in_steps(levels_of_paths(packed[None])[0]) == expected


@given(st.lists(st.integers(0, 255), min_size=32, max_size=32))
def test_the_levels_of_a_path_lead_back_to_it_or_to_one_as_good(packed):
    levels = levels_of_paths(np.array([packed], np.uint8))
    assert np.array_equal(levels_of_paths(best_paths(levels.astype(np.float32))), levels)


@pytest.mark.parametrize("dim", [16, 48, 128, 768])
def test_the_compiled_paths_are_those_of_the_definition(dim):
    values = 3 * np.random.default_rng(dim).standard_normal((50, dim)).astype(np.float32) + 7.5
    assert np.array_equal(best_paths(values), best_paths_definition(values))


def test_no_path_is_nearer():
    """Changing any four symbols in a row makes it no nearer, and of random paths none comes near."""
    random = np.random.default_rng(1)
    for values in (3 * random.standard_normal((5, 16)) + 7.5).astype(np.float32):
        symbols, steps = symbols_of(best_paths(values[None])[0]), in_steps(values)
        least = error(symbols, steps)
        for start, others in product(range(16), product(range(4), repeat=4)):
            changed = list(symbols)
            for i, other in enumerate(others):
                changed[(start + i) % 16] = other
            assert error(changed, steps) >= least - 1e-3
        assert all(error(random.integers(0, 4, 16).tolist(), steps) >= least for _ in range(200))


def test_a_normal_variable_loses_less_than_in_four_levels():
    values = np.random.default_rng(2).standard_normal((2000, 128)).astype(np.float32)
    levels = levels_of_paths(best_paths(values / np.float32(0.3352) + np.float32(7.5)))
    lost = np.square((levels - 7.5) * 0.3352 - values).mean()
    # Four levels lose .1175 at best (Max, 1960); no two bits can lose less than 2 ** -4 (Shannon).
    assert 2**-4 < lost < 0.092


def test_the_table_is_symmetric():
    assert [TRELLIS[15 - code] for code in range(16)] == [15 - level for level in TRELLIS]
