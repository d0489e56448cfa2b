"""What of a text is worked out and kept: its sentence vector, or the token vectors of a layer."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from typing import Final, Self, TypeAlias

from gradewire_models.repository.built import BuiltModel

VectorKind: TypeAlias = int
"""SENTENCE, or a layer as in `EmbedTokens.layer`."""

SENTENCE: Final[VectorKind] = -1
WORDS: Final[VectorKind] = 0
"""Token vectors of the last layer without special tokens; layers from 1 come with them."""

Blobs: TypeAlias = Mapping[VectorKind, bytes]
"""What a text was made into; SENTENCE is always there, for one pass gives all."""


FORMAT_VERSION = 1
HASH_BYTES = 16
LOGIT_DIMS = 2
"""A logit is a float32, which takes the room of two float16 numbers."""


class EntryKind(StrEnum):
    """What an entry holds; token vectors of a layer with special tokens have its number behind."""

    SENTENCE = "s"
    TOKENS = "t"
    VERDICT = "v"
    LOGIT = "g"


class KeySpace:
    """Keys of one namespace, model and kind.

    In the process an entry is named by the 16-byte hash alone: the space's prefix is hashed before the text, so
    hashes of different spaces differ. Stores outside the process see `stored`, whose prefix people can read.

    Args:
        namespace: Tenant; see `CacheConfig.namespace`.
        model_digest: 64 hex characters.
        kind: What the entries hold.
        layer: Of token vectors with special tokens; 0 otherwise.
        input_prefix: The model's prefix, part of the exact input.
    """

    __slots__ = ("_seed", "kind", "prefix")

    def __init__(
        self, *, namespace: str, model_digest: str, kind: EntryKind, layer: int = 0, input_prefix: str = ""
    ) -> None:
        self.kind = kind
        self.prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:{model_digest}:{kind}{layer or ''}:".encode()
        self._seed = blake2b(self.prefix, digest_size=HASH_BYTES)
        # The length keeps prefix and text apart: ("ab", "c") and ("a", "bc") are different inputs.
        encoded = input_prefix.encode()
        self._seed.update(len(encoded).to_bytes(4, "little") + encoded)

    def hashes(self, texts: Sequence[str]) -> list[bytes]:
        """The in-process names of `texts` (NFC, no lone surrogates), 16 bytes each."""
        seed = self._seed
        hashes = []
        for text in texts:
            state = seed.copy()
            state.update(text.encode())
            hashes.append(state.digest())
        return hashes

    def stored(self, text_hash: bytes) -> bytes:
        """The name of an entry in a store outside the process."""
        return self.prefix + text_hash


class ModelSpaces:
    """Names of one model's entries, and the length of its vectors.

    Attributes:
        dims: float16 numbers of an entry: dimensions of a vector; LOGIT_DIMS of a grader's logit.
        sentence: Entries of whole texts: sentence vectors, or a grader's logits.
    """

    __slots__ = ("_digest", "_kind", "_make", "_prefix", "_spaces", "dims", "sentence")

    @classmethod
    def of_model(cls, namespace: str, model: BuiltModel) -> Self:
        """Those of a model as it is built: of an encoder, or of a grader."""
        if model.kind == "grader":
            return cls(namespace=namespace, digest=model.digest, dims=LOGIT_DIMS, kind=EntryKind.LOGIT)
        return cls(namespace=namespace, digest=model.digest, prefix=model.prefix, dims=model.dims)

    def __init__(
        self, *, namespace: str, digest: str, dims: int, prefix: str = "", kind: EntryKind = EntryKind.SENTENCE
    ) -> None:
        self.dims = dims
        self._digest, self._prefix, self._kind = digest, prefix, kind
        self._make = partial(KeySpace, namespace=namespace, model_digest=digest, input_prefix=prefix)
        self.sentence = self._make(kind=kind)
        self._spaces = {SENTENCE: self.sentence}

    def within(self, namespace: str) -> "ModelSpaces":
        """The same model's entries in another namespace."""
        return ModelSpaces(
            namespace=namespace, digest=self._digest, prefix=self._prefix, dims=self.dims, kind=self._kind
        )

    def of(self, kind: VectorKind) -> KeySpace:
        """Names of the entries that hold `kind`."""
        space = self._spaces.get(kind)
        if space is None:
            space = self._spaces[kind] = self._make(kind=EntryKind.TOKENS, layer=kind)
        return space
