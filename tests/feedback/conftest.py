"""A small real collection: passages about three subjects, encoded by the embedded model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, Encoder, Index, MemoryIndex

PASSAGES = {
    "fish1": "Goldfish grow all their life. In a small tank a goldfish stays small, in a pond it becomes large.",
    "fish2": "How large a goldfish becomes depends on its tank, on clean water and on what it is fed.",
    "fish3": "The common goldfish reaches thirty centimetres in a garden pond; fancy breeds stay smaller.",
    "fish4": "Koi and goldfish are carp. Keepers of ponds breed them for their colours.",
    "bank1": "The central bank raised its interest rates again to bring inflation down.",
    "bank2": "Savers were glad that banks pay interest on deposits once more.",
    "bank3": "When inflation rises, a currency loses value and loans become dearer.",
    "war1": "While the soldiers advanced, the tank bombarded the troops from the hill.",
    "war2": "The army lost forty tanks in the first week of the campaign.",
    "war3": "Infantry followed the armoured column towards the river.",
    "fungus1": "Mushrooms grow overnight after rain, fed by threads under the ground.",
    "fungus2": "Yeast is a fungus that turns sugar into alcohol and makes dough rise.",
}


@pytest.fixture(scope="session")
def memory(encoder: Encoder) -> MemoryIndex:
    return MemoryIndex.create(PASSAGES.items(), encoder=encoder, progress=False)


@pytest.fixture(scope="session")
def open_index(memory: MemoryIndex, encoder: Encoder, tmp_path_factory) -> Callable[[int], Index]:
    """The same passages in a folder, with so many bits."""
    opened: dict[int, Index] = {}

    def of_bits(bits: int) -> Index:
        if bits not in opened:
            path = tmp_path_factory.mktemp("feedback") / f"{bits}.index"
            opened[bits] = Index.create(path, PASSAGES.items(), encoder=encoder, bits=bits, progress=False)
        return opened[bits]

    return of_bits


@pytest.fixture(scope="session")
def goldfish(encoder: Encoder) -> EncodedQuery:
    return encoder.encode_query("do goldfish grow")


@pytest.fixture
def plane() -> MemoryIndex:
    """Five documents in the plane, worked through by hand in test_prf: tokens 1 to 4 at 0, 60, 90 and 120 degrees."""
    angles = {1: 0, 2: 60, 3: 90, 4: 120}

    def document(*token_ids: int) -> EncodedDocument:
        radians = np.radians([angles[token_id] for token_id in token_ids])
        vectors = np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)
        return EncodedDocument(np.array(token_ids, dtype=np.int32), vectors)

    documents = {"a": (1, 1, 3), "b": (1, 2), "c": (3,), "d": (4, 4), "e": (2, 4)}
    return MemoryIndex(list(documents), [document(*token_ids) for token_ids in documents.values()])
