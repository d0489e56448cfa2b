"""Where a picture's bytes are: in the request, or behind an address that somebody else fetches."""

import base64
import binascii
import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from gradewire_server.domain.image import Image
from gradewire_server.domain.quoting import quoted
from gradewire_server.judges.images.errors import ImageError

_MAX_ADDRESS_CHARACTERS: Final = 2048
_DATA: Final = re.compile(r"data:(image/[\w.+-]{1,64});base64,", re.IGNORECASE)
_HTTPS: Final = "https://"
_ADDRESS: Final = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
"""What an address is written with; a backslash, a quote or a control character is read otherwise by other programs."""
_PLACE: Final = re.compile(r"(?P<host>[0-9A-Za-z_-][0-9A-Za-z._-]*)(?::(?P<port>[0-9]{0,5}))?")
"""A host by its name, and a port. No address in brackets: Python's reader of URLs overlooks what stands before one."""
_HTTPS_PORT: Final = 443
_WHITE_SPACE: Final = re.compile(r"[ \t\r\n\f]+")


def is_address(image: Image) -> bool:
    """Whether a picture is only pointed to."""
    return not image.data and image.uri[: len(_HTTPS)].casefold() == _HTTPS


def content(image: Image, max_bytes: int) -> tuple[bytes, str]:
    """A picture's bytes, and the media type that its URI or its sender says ("": none).

    Raises:
        ImageError: There are none, too many, or they stand in a URI that cannot be read.
    """
    if image.data:
        found, said = image.data, ""
    elif image.uri:
        found, said = _from_data_uri(image.uri, max_bytes)
    else:
        raise ImageError("holds neither data nor uri: give one of both")
    if len(found) > max_bytes:
        raise _too_large(len(found), max_bytes)
    claimed = image.media_type.strip().casefold()
    if said and claimed and said != claimed:
        raise ImageError(f"its uri says {said}, its media_type {quoted(claimed)}: give one of both")
    return found, said or claimed


def check_address(uri: str, hosts: Collection[str]) -> None:
    """Raises ImageError where an https address is not to be handed on.

    Args:
        uri: The address.
        hosts: Which are allowed, as HOST or HOST:PORT in small letters.
    """
    if len(uri) > _MAX_ADDRESS_CHARACTERS or _ADDRESS.fullmatch(uri) is None:
        raise ImageError(
            f"uri: has characters that an address has not, or more than {_MAX_ADDRESS_CHARACTERS}: send the bytes"
        )
    try:
        place = urlsplit(uri).netloc
    except ValueError:
        raise ImageError("uri: is no valid address: send the bytes") from None
    if "@" in place:
        raise ImageError("uri: holds a user's name or a password: send the bytes")
    named = _PLACE.fullmatch(place)
    if named is None:
        raise ImageError("uri: names no host, or one by its address in brackets: send the bytes")
    host, port = named["host"].casefold(), int(named["port"] or _HTTPS_PORT)
    allowed = {host, f"{host}:{_HTTPS_PORT}"} if port == _HTTPS_PORT else {f"{host}:{port}"}
    if not allowed & set(hosts):
        raise ImageError(
            f"uri: the host {quoted(host)} is not one whose pictures this server hands on (judge_image_hosts): "
            "send the bytes"
        )


def _from_data_uri(uri: str, max_bytes: int) -> tuple[bytes, str]:
    scheme = uri.partition(":")[0].casefold()
    if scheme != "data":
        raise ImageError(
            f"uri: {quoted(uri)} is no data: URI and no https address; the server fetches nothing: send the bytes "
            "(gradewire score reads files in the folder of FILE or below)"
        )
    begin = _DATA.match(uri[:128])
    if begin is None:
        raise ImageError("uri: does not begin as data:image/png;base64,… does (or image/jpeg, image/webp, image/gif)")
    text = _WHITE_SPACE.sub("", uri[begin.end() :])  # programs that write base64 break it into lines
    size = len(text) * 3 // 4 - 2
    if size > max_bytes:
        raise _too_large(size, max_bytes)
    try:
        return base64.b64decode(text, validate=True), begin[1].casefold()
    except (binascii.Error, ValueError):
        raise ImageError("uri: its base64 cannot be read: give the usual alphabet (+ and /), padded with =") from None


def _too_large(size: int, max_bytes: int) -> ImageError:
    return ImageError(f"has {size} bytes, at most {max_bytes} are allowed (max_image_bytes): scale it down")
