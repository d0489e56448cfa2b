"""What of a text is worked out and kept: its sentence vector, or the token vectors of a layer."""

from collections.abc import Mapping
from typing import Final, TypeAlias

VectorKind: TypeAlias = int
"""SENTENCE, or a layer as in `EmbedTokens.layer`."""

SENTENCE: Final[VectorKind] = -1
WORDS: Final[VectorKind] = 0
"""Token vectors of the last layer without special tokens; layers from 1 come with them."""

Blobs: TypeAlias = Mapping[VectorKind, bytes]
"""What a text was made into; SENTENCE is always there, for one pass gives all."""
