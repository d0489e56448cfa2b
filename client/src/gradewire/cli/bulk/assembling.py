"""Makes the output of the parts, and checks that every row has exactly one result."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradewire.cli.bulk.parts import PartId, PartStore, missing_parts
from gradewire.cli.input.urls import file_system, is_url, place_errors
from gradewire.cli.output.metric_lines import without_lines
from gradewire.cli.output.result_rows import encode_row
from gradewire.cli.output.table_file import is_table, write_table
from gradewire.cli.problems import InputError, named_errors

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
            rows = 0
            for number in range(end.parts):
                for line in self._lines(PartId(file, number)):
                    row = json.loads(line)
                    if row["index"] <= last:
                        raise IncompleteError(
                            f"{self.store.place}: row {row['index']} comes after row {last}: a part was changed; "
                            "--overwrite begins again"
                        )
                    last = row["index"]
                    rows += 1
                    take(row)
            if rows != end.rows:
                raise IncompleteError(
                    f"{self.store.place}: the parts of file {file + 1} have {rows} rows and the file {end.rows}: "
                    "a part was changed; --overwrite begins again"
                )

    def write(self, output: str) -> None:
        """Writes the output, all or nothing; its name says which form it has.

        Raises:
            InputError: It cannot be written.
        """
        if is_url(output):
            # A table is made of a file that can be read twice, and an object store takes an object as a whole.
            with tempfile.TemporaryDirectory(prefix="gradewire-bulk-") as folder, place_errors(output):
                made = Path(folder) / output.rsplit("/", 1)[-1]
                self._write_file(made)
                system, path = file_system(output)
                system.put_file(str(made), path)
        else:
            self._write_file(Path(output))

    def _write_file(self, path: Path) -> None:
        table = is_table(path)
        rows = path.with_name(f".{path.name}.rows.jsonl") if table else path.with_name(f".{path.name}.new")
        try:
            with named_errors(path), rows.open("wb") as stream:
                for place, part in enumerate(sorted(self.found)):
                    stream.writelines(self._lines(part) if place == 0 else _without_lines(self._lines(part)))
            if table:
                write_table(path, rows)
            else:
                rows.replace(path)
        finally:
            rows.unlink(missing_ok=True)

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
