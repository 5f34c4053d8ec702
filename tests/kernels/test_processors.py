"""Kernels choose instructions by what the processor has: what other processors would run is run here too."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROCESSORS = {"x86-64": "", "haswell": "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2"}
TESTS = (
    "test_seeding.py",
    "test_packed.py",
    "test_interaction.py",
    "test_simd.py",
    "test_stored.py",
)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the processors are of this family")
@pytest.mark.parametrize("name", PROCESSORS)
def test_kernels_equal_their_definitions_on_other_processors(name, tmp_path):
    """The tests of these kernels once more, in a process whose processor numba takes for another."""
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": name,
        "NUMBA_CPU_FEATURES": PROCESSORS[name],
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    files = [str(Path(__file__).with_name(test)) for test in TESTS]
    done = subprocess.run([*command, *files], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
