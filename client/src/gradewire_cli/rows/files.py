"""Open standard input and files (local or by URL, plain or gzip, in any encoding) as UTF-8 byte streams."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import re
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from gradewire_cli.problems import InputError, named_errors, redacted_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")
STDIN: Final = "-"
GZIP: Final = ".gz"
_BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARK_BYTES: Final = 4
_OTHER_FORMATS: Final = {
    b"PAR1": "is a Parquet file. Use --input-format parquet",
    b"ARRO": "is an Arrow file. Use --input-format arrow",
    b"PK\x03\x04": "is a workbook or a zip archive. Save the sheet as CSV UTF-8, or unpack the archive. An inspect log "
    "needs a name that ends in .eval",
    b"\x1f\x8b": "is a gzip file. Rename it to end in .gz, or unpack it",
}


def is_url(path: str) -> bool:
    """Return True for a URL (of an fsspec file system), False for a local path."""
    return _URL.match(path) is not None


def display_names(paths: Sequence[str]) -> list[str]:
    """Return distinct file names to show and store, without the secrets in URLs."""
    names = [redacted_url(path) if is_url(path) else path for path in paths]
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]


@contextlib.contextmanager
def file_errors(path_or_url: str) -> Iterator[None]:
    """Turn a file system's errors into InputErrors that name the file or its URL."""
    try:
        yield
    except click.ClickException:
        raise
    except OSError as error:
        raise InputError(f"{redacted_url(path_or_url)}: {error.strerror or error}") from error
    except Exception as error:
        # Each remote store's package defines its own errors, for example for missing credentials.
        if not is_url(path_or_url):
            raise
        raise InputError(f"{redacted_url(path_or_url)}: {str(error) or type(error).__name__}") from error


def file_system(url: str) -> tuple[Any, str]:
    """Return a URL's fsspec file system, and the path in that file system.

    Raises:
        InputError: fsspec or the protocol's package is not installed, or the protocol is unknown.
    """
    try:
        import fsspec  # noqa: PLC0415 - optional

        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        missing = "fsspec. Run: pip install 'gradewire[ray]'" if error.name == "fsspec" else str(error)
        raise InputError(f"{redacted_url(url)} needs {missing}") from error
    except ValueError as error:
        raise InputError(f"{redacted_url(url)}: {error}") from error
    return system, path


def protocols(system: Any) -> tuple[str, ...]:
    """Return the protocol names of an fsspec file system, such as "s3"."""
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


def local_path(path_or_url: str) -> Path | None:
    """Return the local path of a file or folder, or None if the file is not local."""
    if not is_url(path_or_url):
        return Path(path_or_url)
    system, path = file_system(path_or_url)
    return Path(path) if "file" in protocols(system) else None


def open_url(url: str) -> Any:
    """Open a file as a buffered, seekable byte stream; raise InputError on failure."""
    system, path = file_system(url)
    with file_errors(url):
        return system.open(path, "rb")


def matching_urls(url: str) -> Sequence[str]:
    """Return the URLs that match a pattern with *, ? or [, sorted by name; raise InputError on failure."""
    system, path = file_system(url)
    with file_errors(url):
        return sorted(system.unstrip_protocol(found) for found in system.glob(path))


def check_encoding(name: str | None) -> str:
    """Return Python's name for an encoding, or "" for None; raise InputError if the encoding is unknown."""
    try:
        return codecs.lookup(name).name if name else ""
    except LookupError:
        raise InputError(f"--encoding {name} is unknown. Use utf-8, utf-16, cp1252 or gb18030, for example") from None


@contextlib.contextmanager
def open_bytes(path: str, encoding: str = "") -> Iterator[BinaryIO]:
    """Yield a UTF-8 byte stream of a file. A UTF-8 file's bytes stay unchanged.

    Args:
        path: A path or URL, or "-" for standard input. Names that end in .gz mean gzip.
        encoding: The file's encoding. "" means UTF-8, or UTF-16 if the first bytes look like UTF-16.

    Raises:
        InputError: The file is missing, is damaged gzip, has another encoding, or is not text.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(_open(path))
        if path.lower().endswith(GZIP):
            stream = stack.enter_context(gzip.open(stream))
        try:
            known = encoding or _encoding(path, bytes(stream.peek(_MARK_BYTES)[:_MARK_BYTES]))
            yield stream if known in {"", "utf-8"} else io.BufferedReader(_Recoded(stream, known))
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path} is not a complete gzip file: {error}") from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not {error.encoding} ({error.reason} at byte {error.start + 1} of the read bytes). Use "
                "another --encoding"
            ) from error


def _open(path: str) -> Any:
    if path == STDIN:
        # The caller closes this stream, but standard input must stay open.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    if is_url(path):
        return io.BufferedReader(open_url(path))
    with named_errors(path):
        return Path(path).open("rb")


def _encoding(path: str, begins: bytes) -> str:
    for magic, hint in _OTHER_FORMATS.items():
        if begins.startswith(magic):
            raise InputError(f"{path} {hint}")
    # Without a byte order mark, every second byte of ASCII text in UTF-16 is 0.
    for encoding, nothing in (("utf-16-le", begins[1::2]), ("utf-16-be", begins[::2])):
        if len(begins) == _MARK_BYTES and not any(nothing) and any(begins):
            return encoding
    return "utf-16" if begins.startswith(_BYTE_ORDER_MARKS) else ""


class _Recoded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        # Keep all line endings, because CSV cells may contain any line breaks.
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
        # Do not close the inner stream, because its owner does.
        if not self.closed:
            with contextlib.suppress(ValueError):
                self._text.detach()
        super().close()
