"""The output file: rows in order, flushed whole, and found again after a break.

A run that was interrupted is picked up where the file ends. Where rows in the middle have to be scored again (the
server was away, or the input changed there), the file is cut before the first of them and the good rows behind it wait
in FILE.resume until their turn comes; so the file is in order at all times and nothing that was scored is lost.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from gradewire.cli.problems import InputError
from gradewire.results import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from gradewire.cli.rows import Row


def files_of(path: Path) -> tuple[Path, Path, Path]:
    """The output file, FILE.resume beside it, and the name under which that is made."""
    aside = path.with_name(path.name + ".resume")
    return path, aside, aside.with_name(aside.name + ".new")


def encode_row(row: Mapping[str, Any]) -> bytes:
    """One line of JSON; readable letters, but for lone surrogates, which UTF-8 cannot hold."""
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row).encode() + b"\n"


def read_results(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of an output file with their end (offset in bytes); a torn last line is left out.

    Raises:
        InputError: A line in the middle is no output row.
    """
    end = 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            end += len(line)
            if not line.endswith(b"\n"):
                return
            try:
                row = json.loads(line)
                complete = isinstance(row["index"], int) and isinstance(row["scores"], dict) and row["digest"]
            except (ValueError, KeyError, TypeError):
                complete = False
            if not complete:
                raise InputError(f"{path}: line {number} is no output row of gradewire score: give another --out")
            yield end, row


def may_pass(row: Mapping[str, Any]) -> bool:
    """Whether a result of the row failed for want of a server or of time, so that trying again may help."""
    return any(Status(score["status"]).may_pass for score in row["scores"].values())


def check_lines(path: Path, row: Mapping[str, Any], lines: Mapping[str, str]) -> None:
    """Refuses to mix scores of different definitions.

    Args:
        path: The output file, for the message.
        row: A row of it.
        lines: What this run computes, by label.

    Raises:
        InputError: Says what differs.
    """
    there = {label: score.get("line", "") for label, score in row["scores"].items()}
    if there == lines:
        return
    way_out = "give the same options, another --out, or --overwrite"
    if there.keys() != lines.keys():
        raise InputError(
            f"{path} has the metrics {', '.join(there)} and this run computes {', '.join(lines)}: {way_out}"
        )
    differing = next(label for label in there if there[label] != lines[label])
    raise InputError(
        f"{path} differs in {_difference(there[differing], lines[differing])} of {differing}: the file has "
        f"{there[differing] or 'nothing'} and this run computes {lines[differing] or 'nothing'}: {way_out}"
    )


def _difference(there: str, here: str) -> str:
    def parts(line: str) -> dict[str, str]:
        head, _, parameters = line.partition("?")
        definition, _, version = head.partition("/")
        named = dict(pair.split("=", 1) for pair in parameters.split("&") if "=" in pair)
        return {"preset": definition.partition(":")[2], "version": version, **named}

    before, now = parts(there), parts(here)
    return " and ".join(sorted(name for name in before | now if before.get(name) != now.get(name))) or "the line"


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
    _aside: dict[int, tuple[str, int]] = field(default_factory=dict)
    _aside_stream: BinaryIO | None = None

    @property
    def aside_path(self) -> Path:
        """Where good rows wait that stand behind rows to be scored again."""
        return files_of(self.path)[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def create(self) -> None:
        """Begins an empty file in place of what is there.

        Raises:
            InputError: It cannot be written.
        """
        try:
            self._stream = self.path.open("wb")
            self.aside_path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from error

    def resume(
        self, rows: Iterator[Row], lines: Mapping[str, str], keep: Callable[[dict[str, Any]], None]
    ) -> Iterable[Row]:
        """Finds what is done.

        Args:
            rows: Rows of the input from the first; read as far as the file agrees with them.
            lines: What this run computes, by label.
            keep: Told of every row that stays at the beginning.

        Returns:
            The rows that were read and are not done, at most one.

        Raises:
            InputError: The file was made with something else, from another input, or cannot be written.
        """
        pending: list[Row] = []
        end = 0
        try:
            with self.path.open("ab"):  # makes the file if it is not there
                pass
            for row_end, result in read_results(self.path):
                check_lines(self.path, result, lines)
                row = next(rows, None)
                if row is None:
                    raise InputError(f"{self.path} has more rows than the input: is it the right file?")
                if (row.index, row.digest) != (result["index"], result["digest"]) or may_pass(result):
                    pending.append(row)
                    break
                keep(result)
                self.kept += 1
                end = row_end
            self._set_aside(end, lines)
            self._stream = self.path.open("r+b")
            self._stream.truncate(end)
            self._stream.seek(end)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from error
        return pending

    def _set_aside(self, end: int, lines: Mapping[str, str]) -> None:
        """Moves good rows behind `end` into FILE.resume, together with those that wait there already."""
        temporary = files_of(self.path)[2]
        found: dict[int, tuple[str, int]] = {}
        with temporary.open("wb") as stream:
            for source in (self.path, self.aside_path):
                if not source.exists():
                    continue
                for row_end, result in read_results(source):
                    if (source == self.path and row_end <= end) or may_pass(result) or result["index"] in found:
                        continue
                    check_lines(source, result, lines)
                    found[result["index"]] = (result["digest"], stream.tell())
                    stream.write(encode_row(result))
            stream.flush()
            os.fsync(stream.fileno())
        if found:
            temporary.replace(self.aside_path)
            self._aside, self._aside_stream = found, self.aside_path.open("rb")
        else:
            temporary.unlink()

    def waiting(self, row: Row) -> dict[str, Any] | None:
        """The result of a row that waits in FILE.resume, if it is there and of the same content."""
        digest, offset = self._aside.get(row.index, ("", 0))
        if digest != row.digest or self._aside_stream is None:
            return None
        self._aside_stream.seek(offset)
        result: dict[str, Any] = json.loads(self._aside_stream.readline())
        return result

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends rows and flushes them.

        Raises:
            InputError: The file cannot be written, for instance because the disk is full.
        """
        if self._stream is None:
            raise RuntimeError("create or resume the file first")
        try:
            self._stream.write(b"".join(map(encode_row, rows)))
            self._stream.flush()
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}; --resume goes on from what is there") from error

    def finish(self) -> None:
        """Says that every row is in the file."""
        if self._stream is not None:
            self._stream.flush()
            os.fsync(self._stream.fileno())
        self.close()
        self.aside_path.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets go of the file; what was written stays."""
        for stream in (self._stream, self._aside_stream):
            if stream is not None:
                stream.close()
