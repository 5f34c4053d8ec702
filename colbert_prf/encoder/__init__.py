"""Encoders: they turn text into token ids and unit vectors."""

from colbert_prf.encoder.base import Encoder
from colbert_prf.encoder.settings import ModelSettings

__all__ = ["Encoder", "ModelSettings"]
