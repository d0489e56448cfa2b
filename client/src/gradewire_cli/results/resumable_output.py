"""The output file: complete JSON lines in input order, which a run can continue after an interruption.

If rows in the middle need scoring again, the file is cut before the first of these rows. Finished rows after the cut
wait in FILE.resume for their turn. Results without an input row stay in FILE.resume.
"""

import contextlib
import itertools
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Self
from urllib.parse import unquote

from gradewire.results import Status
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.journal import Journal, files_of, replacing, whole_lines
from gradewire_cli.results.table_formats import plain
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.row import Row, result_key
from gradewire_proto.wire_rules import current, split_pin

CORPUS_PARAMETERS: Final = ("corpus", "idf")
"""Parameters of cider and bertscore that name the corpus for word weights."""
_NAMING: Final = ("line", "decided_by")
# Old output files lack `correct`, but these metrics' scores are verdicts.
BINARY_METRICS = frozenset({"exact_match", "easy_match"})
_OTHER_INPUT = "it was made from another input. Use that input, another --out, or --overwrite"


def lines_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a row's metric identifiers by label. Only an output's first row contains identifiers."""
    return {label: result["line"] for label, result in row["scores"].items() if "line" in result}


def with_current_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with current metric names in labels, identifiers and `decided_by`."""
    scores = {
        current(label): {**result, **{key: current(result[key]) for key in _NAMING if key in result}}
        for label, result in row["scores"].items()
    }
    return {**row, "scores": scores}


def with_lines(row: Mapping[str, Any], lines: Mapping[str, str]) -> dict[str, Any]:
    """Return the row with metric identifiers added. Existing identifiers stay."""
    known = {label: {"line": lines[label]} if label in lines else {} for label in row["scores"]}
    return {**row, "scores": {label: {**result, **known[label]} | result for label, result in row["scores"].items()}}


def without_lines(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row without its metric identifiers."""
    scores = {
        label: {key: value for key, value in result.items() if key != "line"} for label, result in row["scores"].items()
    }
    return {**row, "scores": scores}


def check_lines(path: Path, row: Mapping[str, Any], lines: Mapping[str, str]) -> None:
    """Raise InputError if an output file's metrics differ, or may differ, from this run's metrics.

    Metrics with equal identifiers may use different corpora if the identifiers lack the reference set's digest.
    """
    there = {label: score.get("line", "") for label, score in row["scores"].items()}
    _refuse_former_names(path, there)
    if there == lines:
        for label, line in lines.items():
            if counts_over_unknown(line):
                raise InputError(
                    f"{path}: {label} counts words in a prepared reference set that may have grown, because {line} "
                    "does not contain the set's digest (NAME@DIGEST). Use another --out, or --overwrite"
                )
        return
    if there.keys() != lines.keys():
        raise InputError(
            f"{path} has the metrics {', '.join(there)}, but this run computes {', '.join(lines)}. Use the file's "
            f"metrics (--metrics {shlex.quote(','.join(there))}), another --out, or --overwrite"
        )
    differing = next(label for label in there if there[label] != lines[label])
    difference = _difference(there[differing], lines[differing])
    same = "" if "version" in difference and there[differing] and lines[differing] else "the same options, "
    raise InputError(
        f"{path}: {differing} differs in {' and '.join(difference) or 'the identifier'}: the file has "
        f"{there[differing] or 'nothing'}, but this run computes {lines[differing] or 'nothing'}. Use {same}another "
        "--out, or --overwrite"
    )


def _difference(there: str, here: str) -> list[str]:
    before, now = line_parts(there), line_parts(here)
    return sorted(name for name in before | now if before.get(name) != now.get(name))


def line_parts(line: str) -> dict[str, str]:
    """Return a metric identifier's parts: preset, version, and each parameter by name."""
    definition, _, version = line.partition("?")[0].partition("/")
    return {"preset": definition.partition(":")[2], "version": version, **_parameters(line)}


def _parameters(line: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in line.partition("?")[2].split("&") if "=" in pair)


def counts_over_unknown(line: str) -> bool:
    """Return True if a metric counts words in a prepared corpus that may grow, because no digest pins the corpus."""
    parameters = _parameters(line)
    counts = any(parameters.get(name) == "prepared" for name in CORPUS_PARAMETERS)
    return counts and not split_pin(unquote(parameters.get("reference_set", "")))[1]


def encode_row(row: Mapping[str, Any]) -> bytes:
    """Return a row as one line of JSON. NaN and infinities in kept columns become null."""
    try:
        text = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(plain(row), ensure_ascii=False, default=str, allow_nan=False)
    return text.encode(errors="backslashreplace") + b"\n"


def encode_rows(rows: Iterable[Mapping[str, Any]], *, first: bool) -> bytes:
    """Encode rows without metric identifiers. If `first` is True, the first row keeps its identifiers."""
    return b"".join(encode_row(row if first and place == 0 else without_lines(row)) for place, row in enumerate(rows))


def output_files(output: Path) -> list[Path]:
    """Return an output's files: the file itself, or the sorted parts in a `gradewire bulk` folder."""
    if not output.is_dir():
        return [output]
    # If a part has two files, prefer "done", which sorts before "unanswered".
    found: dict[str, Path] = {}
    for part in sorted(output.glob("part-*.jsonl")):
        found.setdefault(part.name.partition(".")[0], part)
    return list(found.values())


def read_results(path: Path, *, to_go_on: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (end offset in bytes, row) for each row of an output file. Skip a partial last line.

    All rows get current metric names, and the metric identifiers from the file's first row.

    Raises:
        InputError: A line is not an output row, or `to_go_on` is True and the file has former metric names.
    """
    lines: dict[str, str] = {}
    with path.open("rb") as stream:
        for number, end, line in whole_lines(stream):
            try:
                written = json.loads(line)
                row = with_current_names(written)
                complete = isinstance(row["index"], int) and row["digest"]
            except (ValueError, KeyError, TypeError, AttributeError):
                complete = False
            if not complete:
                raise InputError(f"{path}: line {number} is not an output row from gradewire score. Use another file")
            if to_go_on:
                _refuse_former_names(path, written["scores"])
            lines |= lines_of(row)
            yield end, with_lines(row, lines)


def _refuse_former_names(path: Path, labels: Iterable[str]) -> None:
    former = [label for label in labels if current(label) != label]
    if former:
        now = ", ".join(f"{label} is now called {current(label)}" for label in former)
        raise InputError(
            f"{path} was written by an older gradewire: {now}. The file can still be read, but not extended. Use "
            "another --out, or --overwrite"
        )


def count_results(path: Path) -> int:
    """Return the number of complete lines in an output file."""
    with path.open("rb") as stream:
        return sum(1 for _ in whole_lines(stream))


def verdict(label: str, result: Mapping[str, Any]) -> bool | None:
    """Return a result's verdict, or None. In older files, a score of 1 from a binary metric counts as right."""
    if result["score"] is None:
        return None
    if "correct" in result:
        return bool(result["correct"])
    name = result.get("line", label).partition("?")[0].partition("/")[0].partition(":")[0]
    return result["score"] >= 1.0 if name in BINARY_METRICS else None


def may_pass(row: Mapping[str, Any]) -> bool:
    """Return True if a result failed because the server was down or too slow."""
    return any(Status(score["status"]).may_pass for score in row["scores"].values())


def _was_unreadable(row: Mapping[str, Any]) -> bool:
    return all(score["status"] == Status.INVALID_INPUT.name for score in row["scores"].values())


@dataclass(slots=True)
class ResultsFile:
    """An output file under construction, for use in a `with` block.

    Attributes:
        resumed_rows: Number of finished rows at the start of the file, which are not scored again.
    """

    path: Path
    resumed_rows: int = 0
    _journal: Journal = field(init=False)
    _aside: dict[tuple[int, str], int] = field(default_factory=dict)
    _aside_stream: BinaryIO | None = None
    _has_first: bool = False
    _lines: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._journal = Journal(self.path)

    @property
    def aside_path(self) -> Path:
        """The file for finished rows that come after a row that must be scored again."""
        return files_of(self.path)[1]

    def __enter__(self) -> Self:
        self._journal.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._aside_stream is not None:
            self._aside_stream.close()
        self._journal.__exit__(*error)

    def create(self) -> None:
        """Start an empty file in place of an existing file; raise InputError on failure."""
        self._journal.begin()
        with named_errors(self.path):
            self.aside_path.unlink(missing_ok=True)

    def left(
        self,
        rows: Iterator[Row],
        lines: Mapping[str, str],
        keep: Callable[[Row, dict[str, Any]], None],
        *,
        resume: bool,
        input_rows: int | None = None,
    ) -> Iterator[Row]:
        """Start the file, or continue it if `resume` is True. Return the rows that still need scores."""
        if not resume:
            self.create()
            return rows
        return itertools.chain(self.resume(rows, lines, keep, input_rows=input_rows), rows)

    def resume(
        self,
        rows: Iterator[Row],
        lines: Mapping[str, str],
        keep: Callable[[Row, dict[str, Any]], None],
        *,
        input_rows: int | None = None,
    ) -> Iterable[Row]:
        """Continue the file after its finished rows. An error leaves the file unchanged.

        Returns:
            The rows that were read from `rows` but not kept. If the file starts with finished rows, there is at most
            one such row. Otherwise, these rows end with the input's first finished row.

        Raises:
            InputError: The file was made with other settings or from another input, or cannot be written.
        """
        pending: list[Row] = []
        finished: dict[tuple[int, str], tuple[Path, int]] = {}
        end, agrees = 0, True
        self._lines = lines
        with named_errors(self.path):
            for source, begin, row_end, result in self._there():
                agrees = agrees and source == self.path
                if agrees:
                    check_lines(source, result, lines)
                    row = next(rows, None)
                    if row is None:
                        raise InputError(f"{self.path} has more rows than the input: {_OTHER_INPUT}")
                    if row.key == result_key(result) and not may_pass(result):
                        keep(row, result)
                        self.resumed_rows += 1
                        end = row_end
                        continue
                    self._check_columns(row, result)
                    pending.append(row)
                    agrees = False
                if not may_pass(result):
                    check_lines(source, result, lines)
                    finished.setdefault(result_key(result), (source, begin))
            self._check_input(finished, input_rows)
            if finished and not self.resumed_rows:
                pending.extend(self._rows_to_the_first_done(pending, rows, finished))
            if finished:
                self._rewrite_aside(finished)
                self._aside_stream = self.aside_path.open("rb")
            else:
                self.aside_path.unlink(missing_ok=True)
            self._journal.begin(end)
            self._has_first = end > 0
        return pending

    def _there(self) -> Iterator[tuple[Path, int, int, dict[str, Any]]]:
        """Yield (file, start, end, result) for the output and then FILE.resume. Start and end are byte offsets."""
        for source in filter(Path.exists, (self.path, self.aside_path)):
            begin = 0
            for end, result in read_results(source, to_go_on=True):
                yield source, begin, end, result
                begin = end

    def _check_columns(self, row: Row, result: Mapping[str, Any]) -> None:
        # An unreadable line has no columns, whatever --keep-columns says.
        if (row.item is None and not row.kept_columns) or ("input" not in result and _was_unreadable(result)):
            return
        there, given = (
            ", ".join(map(printable, columns)) or "none" for columns in (result.get("input", {}), row.kept_columns)
        )
        if there != given:
            raise InputError(
                f"the input columns in {self.path} ({there}) differ from --keep-columns ({given}). Use the same "
                "columns, or another --out"
            )

    def _check_input(self, finished: Iterable[tuple[int, str]], input_rows: int | None) -> None:
        last = max((index for index, _ in finished), default=-1)
        if input_rows is not None and last >= input_rows:
            raise InputError(
                f"{self.path} has at least {last + 1} rows, but the input has only {input_rows}: {_OTHER_INPUT}"
            )

    def _rows_to_the_first_done(
        self, read: Iterable[Row], rows: Iterator[Row], finished: Mapping[tuple[int, str], object]
    ) -> list[Row]:
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
        raise InputError(f"{self.path} has {len(finished)} finished rows, but none is in this input: {_OTHER_INPUT}")

    def _rewrite_aside(self, places: Mapping[tuple[int, str], tuple[Path, int]]) -> None:
        self._aside = {}
        with contextlib.ExitStack() as stack:
            sources = {source: stack.enter_context(source.open("rb")) for source in {at[0] for at in places.values()}}
            unfinished = stack.enter_context(replacing(self.aside_path))
            with unfinished.open("wb") as stream:
                for key, (source, offset) in places.items():
                    sources[source].seek(offset)
                    row = json.loads(sources[source].readline())
                    at = stream.tell()
                    stream.write(encode_row(without_lines(row) if self._aside else with_lines(row, self._lines)))
                    self._aside[key] = at

    def waiting(self, row: Row) -> dict[str, Any] | None:
        """Return a row's result from FILE.resume, or None."""
        offset = self._aside.get(row.key)
        if offset is None or self._aside_stream is None:
            return None
        self._aside_stream.seek(offset)
        return with_lines(json.loads(self._aside_stream.readline()), self._lines)

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows and flush them; raise InputError if the disk fails."""
        listed = list(rows)
        self._journal.write(encode_rows(listed, first=not self._has_first))
        self._has_first = self._has_first or bool(listed)

    def discard_if_empty(self) -> None:
        """Remove the file if it has no row, so that the same command can be run again without --overwrite."""
        if self.path.is_file() and not self.path.is_symlink() and not self.path.stat().st_size:
            self.path.unlink()

    def finish(self) -> str:
        """Complete the file after its last row; raise InputError on failure.

        If earlier results match no input row and so stay in FILE.resume, return a sentence about them; otherwise "".
        """
        self._journal.finish()
        left = {key: (self.aside_path, offset) for key, offset in self._aside.items()}
        if left:
            for _, result in read_results(self.path):
                left.pop(result_key(result), None)
        if not left:
            self.aside_path.unlink(missing_ok=True)
            return ""
        self._rewrite_aside(left)
        return f"{len(left)} earlier results no longer match a row of the input and stay in {self.aside_path}"
