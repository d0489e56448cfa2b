"""A picture, small or with as many bytes as one likes."""

import base64
import zlib


def png(*, padding: int = 0) -> bytes:
    """One red pixel, and so many bytes behind it."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)

    head = (1).to_bytes(4) + (1).to_bytes(4) + bytes([8, 2, 0, 0, 0])
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks + b"\x00" * padding


def data_uri(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
