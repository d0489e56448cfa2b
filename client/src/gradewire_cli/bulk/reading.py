"""Input files cut into parts, by paths that name the same file in every directory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gradewire_cli.bulk.parts import PartId
from gradewire_cli.rows.files import file_system, is_url
from gradewire_cli.rows.row import Row, with_picture_digests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from gradewire import Tls
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.rows.input_file import InputFile


_CHAINED: Final = "::"
_LOCAL_URLS: Final = ("file://", "local://")


def absolute_name(path_or_url: str) -> str:
    """A path, or the URL of one, from the root on; the URLs of other file systems as they are."""
    if not is_url(path_or_url):
        return str(Path(path_or_url).absolute())
    return _CHAINED.join(map(_absolute_link, path_or_url.split(_CHAINED)))


def absolute_connection(connection: ConnectionOptions) -> ConnectionOptions:
    """The same with all paths from the root on."""
    return replace(
        connection,
        # Settings know the home directory by ~.
        cache_dir=connection.cache_dir and connection.cache_dir.expanduser().absolute(),
        models_dir=connection.models_dir and connection.models_dir.expanduser().absolute(),
        tls=connection.tls and _absolute_tls(connection.tls),
    )


def _absolute_link(url: str) -> str:
    if not url.startswith(_LOCAL_URLS):
        return url
    system, path = file_system(url)
    return str(system.unstrip_protocol(path))


def _absolute_tls(tls: Tls) -> Tls:
    return replace(
        tls,
        root_certificates=tls.root_certificates and tls.root_certificates.absolute(),
        certificate_chain=tls.certificate_chain and tls.certificate_chain.absolute(),
        private_key=tls.private_key and tls.private_key.absolute(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRows:
    """The rows of a part; none: it is done already."""

    part: PartId
    rows: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEnd:
    """What a reader found at the end of a file.

    Attributes:
        file: Its number.
        parts: How many parts it has.
        rows: How many rows these have.
    """

    file: int
    parts: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReader:
    """Reads one of the input files.

    Attributes:
        source: All input files, with how they are read, by the names that rows and messages have.
        file: Number of the one to read, from 0.
        path_or_url: Where it is, in whatever directory the reader runs.
        rows_before: Rows of the files before it, which are numbered first.
        part_rows: Rows of a part; the last of a file may have fewer.
        done: Numbers of its parts that need no scoring.
        pictures: Folder that rows name pictures from; None where no metric shows them.
    """

    source: InputFile
    file: int
    path_or_url: str
    rows_before: int
    part_rows: int
    done: AbstractSet[int]
    pictures: Path | None = None

    def read(self) -> Iterator[PartRows | FileEnd]:
        """Parts that are not done, in order, then the end; raises InputError where the file cannot be read.

        Rows of done parts are read too, for nothing but reading says where the next part begins.
        """
        opened = self.source.open_file(self.file, self.rows_before, self.path_or_url)
        remaining = iter(with_picture_digests(opened.rows, self.pictures))
        rows = 0
        for number in itertools.count():
            part = list(itertools.islice(remaining, self.part_rows))
            if not part:
                yield FileEnd(file=self.file, parts=number, rows=rows)
                return
            rows += len(part)
            if number not in self.done:
                yield PartRows(part=PartId(self.file, number), rows=part)


def file_readers(
    source: InputFile, rows_by_file: list[int], part_rows: int, found: dict[PartId, bool], pictures: Path | None
) -> list[FileReader]:
    """A reader for each file; parts of `found` that are answered are not scored again."""
    return [
        FileReader(
            source=source,
            file=file,
            path_or_url=absolute_name(source.paths[file]),
            rows_before=before,
            part_rows=part_rows,
            done=frozenset(part.number for part, answered in found.items() if answered and part.file == file),
            pictures=pictures and pictures.absolute(),
        )
        for file, before in enumerate(itertools.accumulate(rows_by_file[:-1], initial=0))
    ]
