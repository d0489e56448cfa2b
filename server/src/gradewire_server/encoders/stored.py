"""What a second level holds of texts."""

from collections.abc import Sequence

from gradewire_server.encoders.pending import Flight
from gradewire_server.storage.keys import Kind, ModelSpaces
from gradewire_server.storage.second_level import SecondLevel
from gradewire_server.storage.token_codec import is_whole
from gradewire_server.storage.vector_kind import SENTENCE, Bodies, Part


async def find_stored(spaces: ModelSpaces, second: SecondLevel, flights: Sequence[Flight]) -> Sequence[Bodies]:
    """Bodies of each flight that are stored, by part; empty where there is none.

    Where token vectors are wanted the sentence is taken out of their entry: it is not looked for by itself, for a text
    of which something is missing is computed anyway.
    """
    wanted = [flight.token_parts for flight in flights]
    found: list[dict[Part, bytes]] = [{} for _ in flights]
    plain = [index for index, parts in enumerate(wanted) if not parts]
    keys = [spaces.sentence.stored(flights[index].name) for index in plain]
    if keys:
        for index, body in zip(plain, await second.read(keys, spaces.dims), strict=True):
            if body is not None:
                found[index][SENTENCE] = body
    for part in sorted(frozenset().union(*wanted)):
        space = spaces.of(part)
        having = [index for index, parts in enumerate(wanted) if part in parts]
        keys = [space.stored(name) for name in space.hashes([flights[index].text for index in having])]
        for index, body in zip(having, await second.read(keys, spaces.dims, kind=Kind.TOKENS), strict=True):
            if body is not None and is_whole(body[:-2], spaces.dims):
                found[index][part] = body
    return found
