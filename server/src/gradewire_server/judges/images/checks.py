"""Checks the pictures of needs beside the event loop, and remembers which were good."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from gradewire_server.domain.image import Image
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.images.decoding import decode
from gradewire_server.judges.images.errors import ImageError
from gradewire_server.judges.images.sources import check_address, content, is_address
from gradewire_server.settings.images import ImageConfig

_REMEMBERED: Final = 4096
_NO_PILLOW: Final = Failure(
    Status.MODEL_UNAVAILABLE,
    "this server cannot check pictures, for Pillow is not installed on it: pip install 'gradewire[judge]'",
)


class ImageChecks:
    """Checks pictures, one at a time: a decoded one takes far more memory than its file.

    Args:
        config: Limits, and hosts whose addresses are handed on.
    """

    def __init__(self, config: ImageConfig) -> None:
        self._config = config
        self._thread = ThreadPoolExecutor(1, "gradewire-images")
        self._good: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def checked(self, images: Sequence[Image]) -> tuple[Image, ...] | Failure:
        """The pictures as a judge is shown them: bytes with their media type, or an address; each with its digest.

        INVALID_INPUT names the first that cannot be shown. The digest of an address is that of its letters: nothing
        here knows what it leads to.
        """
        if len(images) > self._config.max_count:
            return _invalid(
                f"images: {len(images)} of them, at most {self._config.max_count} are allowed (max_images_per_item)"
            )
        shown = []
        for index, image in enumerate(images):
            try:
                shown.append(await asyncio.get_running_loop().run_in_executor(self._thread, self._shown, image))
            except ImageError as error:
                return _invalid(f"images[{index}]: {error}")
            except ImportError:
                return _NO_PILLOW
        return tuple(shown)

    def close(self) -> None:
        """Gives back the thread; what waits for it is cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _shown(self, image: Image) -> Image:
        if is_address(image):
            check_address(image.uri, self._config.hosts)
            return replace(image, digest=hashlib.sha256(f"address\0{image.uri}".encode()).hexdigest())
        found, claimed = content(image, self._config.max_bytes)
        digest = hashlib.sha256(found).hexdigest()
        media_type = self._good.get((digest, claimed))
        if media_type is None:
            media_type = decode(found, claimed, self._config.max_pixels)
            self._good[digest, claimed] = media_type
            if len(self._good) > _REMEMBERED:
                self._good.popitem(last=False)
        return Image(data=found, media_type=media_type, digest=digest)


def _invalid(message: str) -> Failure:
    return Failure(Status.INVALID_INPUT, message)
