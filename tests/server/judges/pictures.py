"""Pictures for tests, good ones and bad ones, made when they are asked for."""

import io
import struct
import zlib
from typing import Any

from PIL import Image

SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1:1/x"/></svg>'


def picture(kind: str = "PNG", size: tuple[int, int] = (8, 6), colour: str = "red", **options: Any) -> bytes:
    """A file of one colour."""
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, kind, **options)
    return out.getvalue()


def moving(kind: str) -> bytes:
    """A file of two pictures."""
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "blue")]
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], duration=100)
    return out.getvalue()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk of a PNG file, its checksum right."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_bomb(width: int, height: int) -> bytes:
    """A small valid PNG file with very many black pixels."""
    rows = zlib.compressobj(9)
    row = b"\0" * (1 + (width + 7) // 8)
    data = b"".join(rows.compress(row) for _ in range(height)) + rows.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", data) + png_chunk(b"IEND", b"")


def png_that_says(width: int, height: int) -> bytes:
    """A PNG file whose header has another size than its pixels."""
    good = picture()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return good[:8] + png_chunk(b"IHDR", header) + good[33:]


def jpeg_of_many_scans(scans: int) -> bytes:
    """A progressive JPEG file whose last scan stands there again and again."""
    good = picture("JPEG", (64, 64), progressive=True)
    last = good.rindex(b"\xff\xda")
    return good[:last] + good[last:-2] * scans + good[-2:]


def webp_that_says(width: int, height: int) -> bytes:
    """A WebP file in the extended form with a canvas of this size and one small picture."""
    body = picture("WEBP", lossless=True)[12:]
    canvas = b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    content = b"WEBP" + b"VP8X" + struct.pack("<I", len(canvas)) + canvas + body
    return b"RIFF" + struct.pack("<I", len(content)) + content
