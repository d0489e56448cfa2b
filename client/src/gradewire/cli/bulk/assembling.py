"""Makes the output of the parts, and checks that every row has exactly one result."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradewire.cli.bulk.parts import PartId, PartStore, missing_parts
from gradewire.cli.input.urls import file_system, is_url, local_path, place_errors
from gradewire.cli.output.metric_lines import without_lines
from gradewire.cli.output.result_rows import encode_row
from gradewire.cli.output.table_file import is_table, write_table
from gradewire.cli.problems import InputError, named_errors
from gradewire.manifests.durable import replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gradewire.cli.bulk.reading import FileEnd


class IncompleteError(InputError):
    """Parts do not have exactly one result for each row of the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The parts of a run that is done.

    Attributes:
        store: Where they are.
        found: Which are there, and whether they are answered.
        ends: What the readers found at the end of each file.
    """

    store: PartStore
    found: Mapping[PartId, bool]
    ends: Mapping[int, FileEnd]

    def check(self, take: Callable[[Mapping[str, Any]], None]) -> None:
        """Reads all parts once, and hands out their rows in the order of the input.

        Raises:
            IncompleteError: A part is missing, or the rows of a file are not each there exactly once.
        """
        if missing := list(missing_parts(dict(self.found), {file: end.parts for file, end in self.ends.items()})):
            raise IncompleteError(f"{len(missing)} parts are not in {self.store.place}: --resume scores them")
        last = -1
        for file, end in sorted(self.ends.items()):
            counts = [0] * end.parts
            for number in range(end.parts):
                for row in self._rows(PartId(file, number)):
                    if row["index"] <= last:
                        raise IncompleteError(
                            f"{self.store.place}: row {row['index']} comes after row {last}: a part was changed; "
                            "--overwrite begins again"
                        )
                    last = row["index"]
                    counts[number] += 1
                    take(row)
            if sum(counts) != end.rows:
                # All parts of a file but its last have as many rows.
                short = next((number for number, rows in enumerate(counts[:-1]) if rows < max(counts)), end.parts - 1)
                raise IncompleteError(
                    f"the parts of file {file + 1} have {sum(counts)} rows and the file {end.rows}: "
                    f"{self._not_whole(PartId(file, short))}"
                )

    def write(self, output: str) -> None:
        """Writes the output; its name says which form it has.

        On this machine it is there as a whole or not at all, and outlasts a power cut when this returns. Elsewhere a
        whole file is uploaded: an object store shows it when all of it is there, others may show its beginning.

        Raises:
            InputError: It cannot be written.
        """
        local = local_path(output)
        if local is None:
            # A table is made of a file that can be read twice.
            with tempfile.TemporaryDirectory(prefix="gradewire-bulk-") as folder, place_errors(output):
                made = Path(folder) / output.rsplit("/", 1)[-1]
                self._write_file(made)
                system, path = file_system(output)
                system.put_file(str(made), path)
        else:
            self._write_file(local)

    def _write_file(self, path: Path) -> None:
        table = is_table(path)
        rows = path.with_name(f".{path.name}.rows.jsonl") if table else path
        unfinished = path.with_name(f".{path.name}.new")
        with named_errors(path), replacing(rows, unfinished=unfinished), unfinished.open("wb") as stream:
            for place, part in enumerate(sorted(self.found)):
                stream.writelines(self._lines(part) if place == 0 else _without_lines(self._lines(part)))
        if table:
            try:
                write_table(path, rows)
            finally:
                rows.unlink(missing_ok=True)

    def _rows(self, part: PartId) -> Iterator[dict[str, Any]]:
        for line in self._lines(part):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise IncompleteError(self._not_whole(part)) from error

    def _not_whole(self, part: PartId) -> str:
        """What a file system whose move is a copy may leave of a part where a run was killed, and the way out."""
        name = part.name(answered=self.found[part])
        return f"{self.store.place}/{name} is not whole: remove it, and --resume scores its rows again"

    def _lines(self, part: PartId) -> Iterator[bytes]:
        yield from self.store.read_part(part, answered=self.found[part]).splitlines(keepends=True)


def _without_lines(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Lines of a part behind the first: its first row has the lines of the metrics, which the output has already."""
    for place, line in enumerate(lines):
        yield encode_row(without_lines(json.loads(line))) if place == 0 else line


def remove_output(output: str) -> None:
    """Removes an output that is about to be made again; raises InputError where it cannot be."""
    with place_errors(output):
        if is_url(output):
            system, path = file_system(output)
            if system.exists(path):
                system.rm(path)
        else:
            Path(output).unlink(missing_ok=True)


def output_exists(output: str) -> bool:
    """Whether there is an output already."""
    if is_url(output):
        system, path = file_system(output)
        with place_errors(output):
            return bool(system.exists(path))
    return Path(output).exists()
