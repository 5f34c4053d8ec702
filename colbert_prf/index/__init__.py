"""Indexes of encoded documents, in a folder or in memory."""

from colbert_prf.index.codec import Codec
from colbert_prf.index.index import Index
from colbert_prf.index.info import IndexInfo
from colbert_prf.index.memory import MemoryIndex
from colbert_prf.index.passages import Passages
from colbert_prf.storage.verification import Verification

__all__ = ["Codec", "Index", "IndexInfo", "MemoryIndex", "Passages", "Verification"]
