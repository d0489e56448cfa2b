"""Pictures as judges' servers take them."""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gradewire_server.domain.image import Image

_LARGE_BYTES: Final = 128 << 10


def base64_of(image: Image) -> str:
    """A picture's bytes in base64."""
    return base64.b64encode(image.data).decode("ascii")


def url_of(image: Image) -> str:
    """A picture as a URL: a data: URI of its bytes, or its own address."""
    return image.uri or f"data:{image.media_type};base64,{base64_of(image)}"


async def body_with(images: Sequence[Image], make: Callable[[], Mapping[str, object]]) -> Mapping[str, object] | bytes:
    """The body of a request; with large pictures as JSON, written on a thread: 12 MB keep the loop for 0.1 s.

    Args:
        images: Those that it holds.
        make: Makes it.
    """
    if sum(len(image.data) for image in images) < _LARGE_BYTES:
        return make()
    return await asyncio.to_thread(lambda: json.dumps(make(), ensure_ascii=False, separators=(",", ":")).encode())
