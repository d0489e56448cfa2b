"""Whether bytes are a picture that any judge can read: decoded once as a whole, in bounded memory and time."""

import io
import re
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gradewire_server.domain.quoting import quoted
from gradewire_server.judges.images.errors import ImageError

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_BEGINNINGS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/gif": re.compile(rb"GIF8[79]a"),
}
_OTHERS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "SVG, a document": re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:svg|\?xml|!DOCTYPE svg|!--)", re.IGNORECASE),
    "AVIF or HEIC": re.compile(rb"....ftyp(?:avif|avis|heic|heix|mif1|msf1)", re.DOTALL),
    "TIFF": re.compile(rb"II\*\x00|MM\x00\*"),
    "BMP": re.compile(rb"BM"),
    "PDF": re.compile(rb"%PDF"),
    "HTML": re.compile(rb"\s*<(?:!DOCTYPE html|html)", re.IGNORECASE),
}
_TAKEN: Final = "send PNG, JPEG, WebP or GIF"
_MAX_JPEG_SCANS: Final = 64
"""A usual progressive file has ten. Each scan is decoded over all pixels, however few bytes it has."""


def media_type_of(content: bytes) -> str:
    """The media type that a picture's first bytes say.

    Raises:
        ImageError: It is none of those that are taken.
    """
    begin = content[:64]
    for media_type, pattern in _BEGINNINGS.items():
        if pattern.match(begin):
            return media_type
    for name, pattern in _OTHERS.items():
        if pattern.match(begin):
            raise ImageError(f"is {name}: {_TAKEN}")
    raise ImageError(f"is no picture as far as its first bytes tell: {_TAKEN}")


def decode(content: bytes, claimed: str, max_pixels: int) -> str:
    """Decodes a picture as a whole, and forgets it; returns its media type.

    Takes four bytes a pixel for as long as it runs.

    Args:
        content: The file.
        claimed: The media type that its sender says; "": none.
        max_pixels: Most that it may have; looked at before anything is decoded.

    Raises:
        ImageError: It is another type than it claims to be, too large, moves, or is damaged.
        ImportError: Pillow is not installed.
    """
    media_type = media_type_of(content)
    if claimed not in {"", media_type, "image/*"} and (claimed, media_type) != ("image/jpg", "image/jpeg"):
        raise ImageError(f"is {media_type}, not {quoted(claimed)} as its media type says")
    if media_type == "image/webp":
        _check_pixels(_webp_size(content), max_pixels)
    if media_type == "image/jpeg" and content.count(b"\xff\xda") > _MAX_JPEG_SCANS:
        raise ImageError(f"has more than {_MAX_JPEG_SCANS} scans: save it anew")
    reader = _readers()[media_type]
    try:
        with reader(io.BytesIO(content)) as picture:
            _check_pixels(picture.size, max_pixels)
            _check_still(picture)
            picture.load()
    except ImageError:
        raise
    # Whatever decoders raise over bytes that somebody made for them.
    except Exception as error:
        raise ImageError("is damaged or cut short: it cannot be decoded") from error
    return media_type


def _readers() -> "Mapping[str, type[ImageFile]]":
    # Not Image.open, which tries all formats that Pillow knows on a stranger's bytes. Only servers whose judge sees
    # have Pillow.
    from PIL.GifImagePlugin import GifImageFile  # noqa: PLC0415 - see above
    from PIL.JpegImagePlugin import JpegImageFile  # noqa: PLC0415 - see above
    from PIL.PngImagePlugin import PngImageFile  # noqa: PLC0415 - see above
    from PIL.WebPImagePlugin import WebPImageFile  # noqa: PLC0415 - see above

    return {
        "image/png": PngImageFile,
        "image/jpeg": JpegImageFile,
        "image/webp": WebPImageFile,
        "image/gif": GifImageFile,
    }


def _check_still(picture: "ImageFile") -> None:
    if getattr(picture, "n_frames", 1) > 1:
        raise ImageError("moves: send one of its pictures")


def _check_pixels(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        raise ImageError(
            f"has {width} x {height} pixels, at most {max_pixels} are allowed (max_image_pixels): scale it down"
        )


def _webp_size(content: bytes) -> tuple[int, int]:
    """Width and height by the container's header (RFC 9649): Pillow's reader makes room for all of it at once."""
    kind, head = content[12:16], content[20:30]
    if len(head) == 10:
        if kind == b"VP8X":
            return int.from_bytes(head[4:7], "little") + 1, int.from_bytes(head[7:10], "little") + 1
        if kind == b"VP8L":
            (bits,) = struct.unpack("<I", head[1:5])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        if kind == b"VP8 ":
            width, height = struct.unpack("<HH", head[6:10])
            return width & 0x3FFF, height & 0x3FFF
    raise ImageError("is damaged or cut short: its WebP header cannot be read")
