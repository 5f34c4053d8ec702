"""What is collected: the modules of the PyTerrier plugin only where PyTerrier is installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyterrier") else ["colbert_prf/pyterrier/*"]
