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

from gradewire.cli.problems import InputError, named_errors

STDIN: Final = "-"
GZIP: Final = ".gz"
_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""What a file in UTF-16 begins with: spreadsheets and PowerShell write such."""
_MARK_BYTES: Final = 2


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
        path: A file, gzip where its name ends so, or "-".
        encoding: Of the file; "": UTF-8, or UTF-16 where the file begins with its mark.

    Raises:
        InputError: The file is not there, is no gzip file, ends too early, or is not in the encoding.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(_open(path))
        if path.lower().endswith(GZIP):
            stream = stack.enter_context(gzip.open(stream))
        try:
            known = encoding or _MARKS.get(_peek(stream), "")
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
    with named_errors(path):
        return Path(path).open("rb")


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
