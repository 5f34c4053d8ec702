"""The code of docs/filters.md runs and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "filters.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_says(tmp_path):
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    code = "".join(text for language, text in blocks if language == "python")
    expected = "".join(text for language, text in blocks if language == "")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected
