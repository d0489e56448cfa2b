"""Checks of images for judges."""

import asyncio
import base64
import hashlib
import io
import re
import struct
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gradewire_server.domain.items import Failure, Image, Status, quoted
from gradewire_server.settings.judge import ImageConfig

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_MAX_ADDRESS_CHARACTERS: Final = 2048
_DATA: Final = re.compile(r"data:(image/[\w.+-]{1,64});base64,", re.IGNORECASE)
_HTTPS: Final = "https://"
_ADDRESS: Final = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
"""An allowed address. Programs disagree on backslashes, double quotes and control characters, so these are excluded."""
_PLACE: Final = re.compile(r"(?P<host>[0-9A-Za-z_-][0-9A-Za-z._-]*)(?::(?P<port>[0-9]{0,5}))?")
"""A host name and port. Hosts in brackets do not match, because Python's URL parser ignores text before brackets."""
_HTTPS_PORT: Final = 443
_WHITE_SPACE: Final = re.compile(r"[ \t\r\n\f]+")

_BEGINNINGS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/gif": re.compile(rb"GIF8[79]a"),
}
_REFUSED_BEGINNINGS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "SVG, a document": re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:svg|\?xml|!DOCTYPE svg|!--)", re.IGNORECASE),
    "AVIF or HEIC": re.compile(rb"....ftyp(?:avif|avis|heic|heix|mif1|msf1)", re.DOTALL),
    "TIFF": re.compile(rb"II\*\x00|MM\x00\*"),
    "BMP": re.compile(rb"BM"),
    "PDF": re.compile(rb"%PDF"),
    "HTML": re.compile(rb"\s*<(?:!DOCTYPE html|html)", re.IGNORECASE),
}
_TYPES_HINT: Final = "Send PNG, JPEG, WebP or GIF"
_SEND_BYTES: Final = "Send the image's bytes"
_MAX_JPEG_SCANS: Final = 64
"""The maximum number of scans, because each scan costs a pass over all pixels. A usual progressive file has ten."""

_REMEMBERED: Final = 4096
_NO_PILLOW: Final = Failure(
    Status.MODEL_UNAVAILABLE,
    "this server cannot check images because Pillow is not installed. Run: pip install 'gradewire[judge]'",
)


class ImageError(ValueError):
    """Raised when an image cannot be used. The message does not name the image's field."""


def is_address(image: Image) -> bool:
    """Return True if an image is an address instead of bytes."""
    return not image.data and image.uri[: len(_HTTPS)].casefold() == _HTTPS


def base64_of(image: Image) -> str:
    """Return an image's bytes in base64."""
    return base64.b64encode(image.data).decode("ascii")


def url_of(image: Image) -> str:
    """Return an image's address, or a data: URI with the image's bytes."""
    return image.uri or f"data:{image.media_type};base64,{base64_of(image)}"


def content(image: Image, max_bytes: int) -> tuple[bytes, str]:
    """Return an image's bytes, and the stated media type ("" if no type is stated).

    Raises:
        ImageError: The image has no bytes or too many bytes, its URI is invalid, or two different types are stated.
    """
    if image.data:
        found, said = image.data, ""
    elif image.uri:
        found, said = _from_data_uri(image.uri, max_bytes)
    else:
        raise ImageError("has neither data nor uri. Set one of them")
    if len(found) > max_bytes:
        raise _too_large(len(found), max_bytes)
    claimed = image.media_type.strip().casefold()
    if said and claimed and said != claimed:
        raise ImageError(f"uri says {said}, but media_type says {quoted(claimed)}. Set only one of the two types")
    return found, said or claimed


def check_address(uri: str, hosts: Collection[str]) -> None:
    """Raise ImageError if the server must not pass this https address to a judge.

    `hosts` contains the allowed hosts (HOST or HOST:PORT) in lower case.
    """
    if len(uri) > _MAX_ADDRESS_CHARACTERS or _ADDRESS.fullmatch(uri) is None:
        raise ImageError(f"uri: is invalid, or has more than {_MAX_ADDRESS_CHARACTERS} characters. {_SEND_BYTES}")
    try:
        place = urlsplit(uri).netloc
    except ValueError:
        raise ImageError(f"uri: is not a valid address. {_SEND_BYTES}") from None
    if "@" in place:
        raise ImageError(f"uri: contains a user name or password. {_SEND_BYTES}")
    named = _PLACE.fullmatch(place)
    if named is None:
        raise ImageError(f"uri: has no host name, or a host in brackets. {_SEND_BYTES}")
    host, port = named["host"].casefold(), int(named["port"] or _HTTPS_PORT)
    allowed = {host, f"{host}:{_HTTPS_PORT}"} if port == _HTTPS_PORT else {f"{host}:{port}"}
    if not allowed & set(hosts):
        raise ImageError(
            f"uri: this server does not allow images from the host {quoted(host)} (judge_image_hosts). {_SEND_BYTES}"
        )


def _from_data_uri(uri: str, max_bytes: int) -> tuple[bytes, str]:
    scheme = uri.partition(":")[0].casefold()
    if scheme != "data":
        raise ImageError(
            f"uri: {quoted(uri)} is neither a data: URI nor an https address, and the server fetches nothing. "
            f"{_SEND_BYTES} (gradewire score reads image files in FILE's folder and subfolders)"
        )
    begin = _DATA.match(uri[:128])
    if begin is None:
        raise ImageError("uri: must begin with data:image/png;base64, (or image/jpeg, image/webp, image/gif)")
    text = _WHITE_SPACE.sub("", uri[begin.end() :])  # base64 encoders may break lines
    size = len(text) * 3 // 4 - 2
    if size > max_bytes:
        raise _too_large(size, max_bytes)
    try:
        return base64.b64decode(text, validate=True), begin[1].casefold()
    except ValueError:
        raise ImageError("uri: has invalid base64. Use the standard alphabet (+ and /), padded with =") from None


def _too_large(size: int, max_bytes: int) -> ImageError:
    return ImageError(f"has {size} bytes, but at most {max_bytes} are allowed. Scale the image down")


def media_type_of(content: bytes) -> str:
    """Return an image's media type, detected from its first bytes.

    Raises:
        ImageError: The type is not supported.
    """
    begin = content[:64]
    for media_type, pattern in _BEGINNINGS.items():
        if pattern.match(begin):
            return media_type
    other = next((name for name, pattern in _REFUSED_BEGINNINGS.items() if pattern.match(begin)), "")
    raise ImageError(f"is {other or 'not an image according to its first bytes'}. {_TYPES_HINT}")


def decode(content: bytes, claimed: str, max_pixels: int) -> str:
    """Decode a whole image and return its media type. Decoding needs four bytes of memory per pixel.

    Raises:
        ImageError: The image's type is not the claimed type, or the image is too large, animated or damaged.
        ImportError: Pillow is not installed.
    """
    media_type = media_type_of(content)
    if claimed not in {"", media_type, "image/*"} and (claimed, media_type) != ("image/jpg", "image/jpeg"):
        raise ImageError(f"is {media_type}, but its media type says {quoted(claimed)}")
    if media_type == "image/webp":
        _check_pixels(_webp_size(content), max_pixels)
    if media_type == "image/jpeg" and content.count(b"\xff\xda") > _MAX_JPEG_SCANS:
        raise ImageError(f"has more than {_MAX_JPEG_SCANS} scans. Save the image again with fewer scans")
    reader = _readers()[media_type]
    try:
        with reader(io.BytesIO(content)) as picture:
            _check_pixels(picture.size, max_pixels)
            _check_still(picture)
            picture.load()
    except ImageError:
        raise
    # Decoders may raise any error for malicious bytes.
    except Exception as error:
        raise ImageError("is damaged or cut short, so decoding failed") from error
    return media_type


def _readers() -> "Mapping[str, type[ImageFile]]":
    # Image.open would try all of Pillow's formats on untrusted bytes. Import here, because only servers whose judge
    # accepts images need Pillow.
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
        raise ImageError("is animated. Send a single frame")


def _check_pixels(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        raise ImageError(f"has {width} x {height} pixels, but at most {max_pixels} are allowed. Scale the image down")


def _webp_size(content: bytes) -> tuple[int, int]:
    """Return width and height from the header (RFC 9649). Pillow's reader would first allocate the whole image."""
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
    raise ImageError("is damaged or cut short, so the WebP header cannot be parsed")


class ImageChecks:
    """A checker that decodes one image at a time, because decoded images need much memory."""

    def __init__(self, config: ImageConfig) -> None:
        self._config = config
        self._thread = ThreadPoolExecutor(1, "gradewire-images")
        self._good: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def checked(self, images: Sequence[Image]) -> tuple[Image, ...] | Failure:
        """Return the images for a judge, with media types and digests.

        If an image is invalid, return an INVALID_INPUT failure for the first invalid image. An address's digest covers
        only the address's characters, not the image.
        """
        most = self._config.max_count
        if len(images) > most:
            return _invalid(f"images: there are {len(images)} images, but at most {most} are allowed")
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
        """Stop the thread and cancel waiting checks."""
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
