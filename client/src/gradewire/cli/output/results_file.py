"""The output file: rows in order, flushed whole, and found again after a break.

A run that was interrupted is picked up where the file ends. Where rows in the middle have to be scored again (the
server was away, or the input changed there), the file is cut before the first of them and the good rows behind it wait
in FILE.resume until their turn comes; so the file is in order at all times and nothing that was scored is lost:
results of rows that are no longer in the input stay in FILE.resume.
"""

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

from gradewire.cli.input.record import printable
from gradewire.cli.input.rows import Row, result_key
from gradewire.cli.output.metric_lines import check_lines, with_lines, without_lines
from gradewire.cli.output.result_rows import encode_row, encode_rows, former_labels, may_pass, read_results
from gradewire.cli.problems import InputError, named_errors
from gradewire.results import Status
from gradewire_proto.conventions.metric_lines import current

_WAY_ON = "--resume goes on from what is there"
_OTHER_INPUT = "it was made from another input; give that, another --out, or --overwrite"


def files_of(path: Path) -> tuple[Path, Path, Path]:
    """The output file, FILE.resume beside it, and the name under which that is made."""
    aside = path.with_name(path.name + ".resume")
    return path, aside, aside.with_name(aside.name + ".new")


def _sync(stream: BinaryIO) -> None:
    try:
        os.fsync(stream.fileno())
    except OSError as error:
        # Pipes and devices have nothing to sync and say so.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise


def _results_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    return read_results(path) if path.exists() else iter(())


def _was_unreadable(row: Mapping[str, Any]) -> bool:
    return all(score["status"] == Status.INVALID_INPUT.name for score in row["scores"].values())


@dataclass(slots=True)
class ResultsFile:
    """An output file under construction; close it, or use it with `with`.

    Attributes:
        path: The file.
        kept: Rows that were there and are not scored again: at the beginning, then in FILE.resume.
    """

    path: Path
    kept: int = 0
    _stream: BinaryIO | None = None
    _aside: dict[tuple[int, str], int] = field(default_factory=dict)
    _aside_stream: BinaryIO | None = None
    _has_first: bool = False
    _lines: Mapping[str, str] = field(default_factory=dict)

    @property
    def aside_path(self) -> Path:
        """Where good rows wait that stand behind rows to be scored again."""
        return files_of(self.path)[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def create(self) -> None:
        """Begins an empty file in place of what is there.

        Raises:
            InputError: It cannot be written.
        """
        with named_errors(self.path):
            self._stream = self.path.open("wb")
            self.aside_path.unlink(missing_ok=True)

    def resume(
        self,
        rows: Iterator[Row],
        lines: Mapping[str, str],
        keep: Callable[[Row, dict[str, Any]], None],
        *,
        input_rows: int | None = None,
    ) -> Iterable[Row]:
        """Finds the rows that are done; changes nothing where it refuses.

        Args:
            rows: Rows of the input from the first; read as far as the file agrees with them.
            lines: What this run computes, by label.
            keep: Told of every row that stays at the beginning, with its result.
            input_rows: Rows of the input; None where nobody knows.

        Returns:
            The rows that were read and are not done: at most one, unless the file has finished rows and the first of
            them comes late.

        Raises:
            InputError: The file was made with something else, from another input, or cannot be written.
        """
        pending: list[Row] = []
        end = 0
        self._lines = lines
        with named_errors(self.path):
            self._check_names()
            for row_end, result in _results_of(self.path):
                check_lines(self.path, result, lines)
                row = next(rows, None)
                if row is None:
                    raise InputError(f"{self.path} has more rows than the input: {_OTHER_INPUT}")
                if row.key != result_key(result) or may_pass(result):
                    self._check_columns(row, result)
                    pending.append(row)
                    break
                keep(row, result)
                self.kept += 1
                end = row_end
            finished = self._finished(end, lines)
            self._check_input(finished, input_rows)
            if finished and not self.kept:
                pending.extend(self._rows_to_the_first_done(pending, rows, finished))
            if finished:
                # Together with those that wait there already.
                self._gather(finished)
                self._aside_stream = self.aside_path.open("rb")
            else:
                self.aside_path.unlink(missing_ok=True)
            self._stream = self.path.open("ab")
            if self.path.stat().st_size > end:
                self._stream.truncate(end)
            self._has_first = end > 0
        return pending

    def _check_names(self) -> None:
        """Refuses a file in which a metric has a former name: the rows to come would not be called like its own."""
        for path in (self.path, self.aside_path):
            if path.exists() and (former := former_labels(path)):
                now = ", ".join(f"{label} is called {current(label)} now" for label in former)
                raise InputError(
                    f"{path} was written by an older gradewire, and {now}: it can be read as before, but no rows "
                    "are added to it; give another --out, or --overwrite"
                )

    def _finished(self, end: int, lines: Mapping[str, str]) -> dict[tuple[int, str], tuple[Path, int]]:
        """Good rows behind `end` and in FILE.resume: where each stands, by `Row.key`."""
        found: dict[tuple[int, str], tuple[Path, int]] = {}
        for source in (self.path, self.aside_path):
            begin = 0
            for row_end, result in _results_of(source):
                if not (source == self.path and row_end <= end) and not may_pass(result):
                    check_lines(source, result, lines)
                    found.setdefault(result_key(result), (source, begin))
                begin = row_end
        return found

    def _check_columns(self, row: Row, result: Mapping[str, Any]) -> None:
        # A line that could not be read, now or then, has no columns, whatever was to be kept.
        if (row.item is None and not row.kept) or ("input" not in result and _was_unreadable(result)):
            return
        there, given = (", ".join(map(printable, columns)) or "none" for columns in (result.get("input", {}), row.kept))
        if there != given:
            raise InputError(
                f"{self.path} has these columns of the input: {there}; --keep-columns says: {given}. Give the same, or "
                "another --out"
            )

    def _check_input(self, finished: Iterable[tuple[int, str]], input_rows: int | None) -> None:
        last = max((index for index, _ in finished), default=-1)
        if input_rows is not None and last >= input_rows:
            raise InputError(
                f"{self.path} has more rows than the input (row {last + 1} of {input_rows}): {_OTHER_INPUT}"
            )

    def _rows_to_the_first_done(
        self, read: Iterable[Row], rows: Iterator[Row], finished: Mapping[tuple[int, str], object]
    ) -> list[Row]:
        """Reads on until a row of the input is one of the file; a file that shares none belongs to another input."""
        last = max(index for index, _ in finished)
        if any(row.key in finished for row in read):
            return []
        further: list[Row] = []
        for row in rows:
            further.append(row)
            if row.key in finished:
                return further
            if row.index >= last:
                break
        raise InputError(
            f"{self.path} has {len(finished)} finished rows, none of which is a row of this input: {_OTHER_INPUT}"
        )

    def _gather(self, places: Mapping[tuple[int, str], tuple[Path, int]]) -> None:
        """Writes the rows that stand at these places into FILE.resume."""
        temporary = files_of(self.path)[2]
        self._aside = {}
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(temporary.open("wb"))
            sources = {source: stack.enter_context(source.open("rb")) for source in {at[0] for at in places.values()}}
            for key, (source, offset) in places.items():
                sources[source].seek(offset)
                row = json.loads(sources[source].readline())
                at = stream.tell()
                stream.write(encode_row(without_lines(row) if self._aside else with_lines(row, self._lines)))
                self._aside[key] = at
            stream.flush()
            _sync(stream)
        temporary.replace(self.aside_path)

    def waiting(self, row: Row) -> dict[str, Any] | None:
        """The result of a row that waits in FILE.resume, if it is there and of the same content."""
        offset = self._aside.get(row.key)
        if offset is None or self._aside_stream is None:
            return None
        self._aside_stream.seek(offset)
        return with_lines(json.loads(self._aside_stream.readline()), self._lines)

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends rows and flushes them.

        Raises:
            InputError: The file cannot be written, for instance because the disk is full.
        """
        if self._stream is None:
            raise RuntimeError("create or resume the file first")
        with named_errors(self.path, hint=_WAY_ON):
            listed = list(rows)
            self._stream.write(encode_rows(listed, first=not self._has_first))
            self._has_first = self._has_first or bool(listed)
            self._stream.flush()

    def finish(self) -> int:
        """Ends the file after its last row.

        Returns:
            Rows of an earlier run that are not in the file now, because no row of the input is like them; they stay in
            FILE.resume.

        Raises:
            InputError: The file cannot be written.
        """
        if self._stream is not None:
            with named_errors(self.path, hint=_WAY_ON):
                self._stream.flush()
                _sync(self._stream)
        self.close()
        left = {key: (self.aside_path, offset) for key, offset in self._aside.items()}
        if left:
            for _, result in read_results(self.path):
                left.pop(result_key(result), None)
        if left:
            self._gather(left)
        else:
            self.aside_path.unlink(missing_ok=True)
        return len(left)

    def close(self) -> None:
        """Closes the file; what was written stays."""
        for stream in (self._stream, self._aside_stream):
            if stream is not None:
                # Every write was flushed: what is left here could not be written, and that was said then.
                with contextlib.suppress(OSError):
                    stream.close()
