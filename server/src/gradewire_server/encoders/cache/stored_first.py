"""A second level before an encoder: what is stored is not computed."""

import time
from collections.abc import AsyncIterator, Sequence

from typing_extensions import override

from gradewire_proto.conventions.spans import spanned
from gradewire_proto.conventions.telemetry_names import CACHE, CACHE_HITS, CACHE_LEVEL, TEXTS
from gradewire_server.encoders.backend import Encoded, EndedTexts, VectorBackend
from gradewire_server.encoders.batching.submission import Ended
from gradewire_server.encoders.waiting_calls import PendingText
from gradewire_server.storage.keys import EntryKind, ModelSpaces
from gradewire_server.storage.second_level import SecondLevel
from gradewire_server.storage.token_codec import is_whole
from gradewire_server.storage.vector_kind import SENTENCE, Blobs, VectorKind


class StoredFirst(VectorBackend):
    """Looks texts up in a second level, then asks another backend.

    Args:
        backend: Asked for what is not stored.
        second: The second level.
        spaces: Names of the model's entries.
    """

    def __init__(self, backend: VectorBackend, second: SecondLevel, spaces: ModelSpaces) -> None:
        self._backend = backend
        self._second = second
        self._spaces = spaces

    @override
    async def encode(self, texts: Sequence[PendingText], /) -> AsyncIterator[EndedTexts]:
        started_s = time.perf_counter()
        level = self._second.source.name.lower()
        with spanned(CACHE, {CACHE_LEVEL: level, TEXTS: len(texts)}) as span:
            found = await find_stored(self._spaces, self._second, texts)
            if span is not None:
                span.set(CACHE_HITS, sum(map(bool, found)))
        took_s = time.perf_counter() - started_s
        for call in {call for text in texts for call in text.calls()}:
            call.timing.cache_s += took_s
        hits = [(text, Encoded(blobs, self._second.source)) for text, blobs in zip(texts, found, strict=True) if blobs]
        if hits:
            yield Ended([text for text, _ in hits], [encoded for _, encoded in hits])
        left = [text for text, blobs in zip(texts, found, strict=True) if not blobs]
        if left:
            async for part in self._backend.encode(left):
                yield part


async def find_stored(spaces: ModelSpaces, second: SecondLevel, texts: Sequence[PendingText]) -> Sequence[Blobs]:
    """Blobs of each text that are stored, by kind; empty where there is none.

    Where token vectors are wanted the sentence is taken out of their entry: it is not looked for by itself, for a text
    of which something is missing is computed anyway.
    """
    wanted = [text.token_kinds for text in texts]
    found: list[dict[VectorKind, bytes]] = [{} for _ in texts]
    plain = [index for index, kinds in enumerate(wanted) if not kinds]
    keys = [spaces.sentence.stored(texts[index].name) for index in plain]
    if keys:
        for index, blob in zip(plain, await second.read(keys, spaces.dims, kind=spaces.sentence.kind), strict=True):
            if blob is not None:
                found[index][SENTENCE] = blob
    for kind in sorted(frozenset().union(*wanted)):
        space = spaces.of(kind)
        having = [index for index, kinds in enumerate(wanted) if kind in kinds]
        keys = [space.stored(name) for name in space.hashes([texts[index].text for index in having])]
        for index, blob in zip(having, await second.read(keys, spaces.dims, kind=EntryKind.TOKENS), strict=True):
            if blob is not None and is_whole(blob[:-2], spaces.dims):
                found[index][kind] = blob
    return found
