"""Where encoded documents are kept."""

from colbert_prf.index.memory import MemoryIndex

__all__ = ["MemoryIndex"]
