"""Opens input files as streams of bytes in UTF-8: plain or gzip, in any encoding, or standard input."""

import codecs
import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from gradewire.cli.input.urls import is_url, open_url
from gradewire.cli.problems import InputError, named_errors

STDIN: Final = "-"
GZIP: Final = ".gz"
_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""What a file in UTF-16 begins with: spreadsheets and PowerShell write such."""
_MARK_BYTES: Final = 4
_OTHER_FORMATS: Final = {
    b"PAR1": "is a Parquet file: give --input-format parquet",
    b"ARRO": "is an Arrow file: give --input-format arrow",
    b"PK\x03\x04": "is a workbook or a zip archive: save the sheet as CSV UTF-8, or unpack it (of inspect, "
    "write it to a file that ends in .eval)",
    b"\x1f\x8b": "is a gzip file: end its name in .gz, or unpack it",
}
"""What files of other formats begin with, where their name does not say so."""


def check_encoding(name: str | None) -> str:
    """The name of an encoding as Python writes it; "" where none is given.

    Raises:
        InputError: Python does not know it.
    """
    try:
        return codecs.lookup(name).name if name else ""
    except LookupError:
        raise InputError(f"--encoding {name}: is not known; give for instance utf-8, utf-16, cp1252, gb18030") from None


@contextlib.contextmanager
def opened(path: str, encoding: str = "") -> Iterator[BinaryIO]:
    """A stream of the file's bytes, in UTF-8; bytes of a file that is to be UTF-8 come as they are.

    Args:
        path: A file or its URL, gzip where its name ends so, or "-".
        encoding: Of the file; "": UTF-8, or UTF-16 where the file begins so.

    Raises:
        InputError: The file is not there, is no gzip file, ends too early, is not in the encoding, or is no text.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(_open(path))
        if path.lower().endswith(GZIP):
            stream = stack.enter_context(gzip.open(stream))
        try:
            known = encoding or _encoding(path, _peek(stream))
            yield stream if known in {"", "utf-8"} else io.BufferedReader(_Recoded(stream, known))
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path} is no whole gzip file: {error}") from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not {error.encoding} ({error.reason} at byte {error.start + 1} of what was read): give "
                "another --encoding"
            ) from error


def _open(path: str) -> Any:
    if path == STDIN:
        # Closed by the caller like a file, without taking the real one away.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    if is_url(path):
        return io.BufferedReader(open_url(path))
    with named_errors(path):
        return Path(path).open("rb")


def _encoding(path: str, begins: bytes) -> str:
    for magic, told in _OTHER_FORMATS.items():
        if begins.startswith(magic):
            raise InputError(f"{path} {told}")
    # Without a mark: a sign of ASCII has a byte of nothing beside it.
    for encoding, nothing in (("utf-16-le", begins[1::2]), ("utf-16-be", begins[::2])):
        if len(begins) == _MARK_BYTES and not any(nothing) and any(begins):
            return encoding
    return _MARKS.get(begins[:2], "")


def _peek(stream: Any) -> bytes:
    return bytes(stream.peek(_MARK_BYTES)[:_MARK_BYTES])


class _Recoded(io.RawIOBase):
    """UTF-8 of a stream in another encoding, line by line."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        # Lines end where the file says so: CSV has line ends of its own in cells.
        self._text = io.TextIOWrapper(stream, encoding=encoding, newline="")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = self._text.read(io.DEFAULT_BUFFER_SIZE).encode(errors="surrogatepass")
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    def close(self) -> None:
        # The file below is closed by who opened it.
        if not self.closed:
            with contextlib.suppress(ValueError):
                self._text.detach()
        super().close()
