"""Encoding, indexing and searching on a Ray cluster: the folder is the same, the work is done by many machines.

The extra ``[ray]`` brings what it needs. A folder made here opens with :class:`colbert_prf.Index` on one machine, and
the other way round.
"""

from colbert_prf.distributed.indexing import add_documents, create_index
from colbert_prf.distributed.searcher import DistributedSearcher

__all__ = ["DistributedSearcher", "add_documents", "create_index"]
