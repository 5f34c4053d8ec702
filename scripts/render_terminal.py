"""Render the picture of the README: the demo's answers to two questions, as a terminal shows them.

python scripts/render_terminal.py docs/demo.svg
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from colbert_prf import ColbertPRF, Encoder, Searcher
from colbert_prf.cli.demo import answer
from colbert_prf.demo import QUESTIONS, demo_index

FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts fetched from elsewhere: the picture stands alone."""


def main() -> None:
    searcher = Searcher(demo_index(Encoder.load()))
    terminal = Console(record=True, width=96, file=io.StringIO(), force_terminal=True, highlight=False)
    searcher.search(QUESTIONS[0], feedback=ColbertPRF())  # the first search of a process also pays for loading
    terminal.print("[bold]$[/bold] colbert-prf demo -k 3\n")
    for question in QUESTIONS[:2]:
        answer(terminal, searcher, question, 3, ColbertPRF())
    picture = terminal.export_svg(title="colbert-prf", unique_id="demo")
    Path(sys.argv[1]).write_text(FONT_FACE.sub("", picture), encoding="utf-8")
    print(f"wrote {sys.argv[1]}")


if __name__ == "__main__":
    main()
