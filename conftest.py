"""What is collected, the modules of the PyTerrier plugin only where PyTerrier is installed; and that kernels are new.

Machine code is kept until the file of its kernel changes, also where a kernel it calls has changed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

collect_ignore_glob = [] if find_spec("pyterrier") else ["colbert_prf/pyterrier/*"]

KERNELS = Path(__file__).parent / "colbert_prf" / "kernels"


def pytest_configure() -> None:
    """Remove machine code that is older than a kernel."""
    kept = list(KERNELS.glob("__pycache__/*.nb?"))
    newest = max(file.stat().st_mtime for file in KERNELS.glob("*.py"))
    if any(file.stat().st_mtime < newest for file in kept):
        for file in kept:
            file.unlink(missing_ok=True)
