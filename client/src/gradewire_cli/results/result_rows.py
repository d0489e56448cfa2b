"""Rows of an output as lines of JSON, and the metric lines that say how they were computed."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from gradewire.results import Status
from gradewire_cli.problems import InputError
from gradewire_cli.results.journal import whole_lines
from gradewire_cli.results.table_forms import plain
from gradewire_proto.wire_rules import current, split_pin

CORPUS_PARAMETERS: Final = ("corpus", "idf")
"""That say which corpus weights are counted over: of cider, of bertscore."""
_NAMING: Final = ("line", "decided_by")
"""Of a result, what begins with a metric's name."""


def lines_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The lines that a row of an output has, by label; none in a row behind the first."""
    return {label: result["line"] for label, result in row["scores"].items() if "line" in result}


def with_current_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with the names that metrics have now: in labels, in lines, and where a result says who decided."""
    scores = {
        current(label): {**result, **{key: current(result[key]) for key in _NAMING if key in result}}
        for label, result in row["scores"].items()
    }
    return {**row, "scores": scores}


def with_lines(row: Mapping[str, Any], lines: Mapping[str, str]) -> dict[str, Any]:
    """The row with the lines of its metrics; those that it has itself stay."""
    known = {label: {"line": lines[label]} if label in lines else {} for label in row["scores"]}
    return {**row, "scores": {label: {**result, **known[label]} | result for label, result in row["scores"].items()}}


def without_lines(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without the lines of its metrics."""
    scores = {
        label: {key: value for key, value in result.items() if key != "line"} for label, result in row["scores"].items()
    }
    return {**row, "scores": scores}


def check_lines(path: Path, row: Mapping[str, Any], lines: Mapping[str, str]) -> None:
    """Refuses to mix scores of different definitions: those of a row of an output file, and what a run computes.

    Lines of one text may still mean two corpora: of a set that grows, where its content is not named.

    Raises:
        InputError: Says what differs, or what nobody can tell.
    """
    there = {label: score.get("line", "") for label, score in row["scores"].items()}
    if there == lines:
        for label, line in lines.items():
            if counts_over_unknown(line):
                raise InputError(
                    f"{path}: {label} counts over a prepared reference set, and its line, {line}, does not say over "
                    "which content (NAME@DIGEST): the set may have grown since; give another --out, or --overwrite"
                )
        return
    if there.keys() != lines.keys():
        raise InputError(
            f"{path} has the metrics {', '.join(there)} and this run computes {', '.join(lines)}: name those of the "
            f"file, --metrics {shlex.quote(','.join(there))}, give another --out, or --overwrite"
        )
    differing = next(label for label in there if there[label] != lines[label])
    difference = _difference(there[differing], lines[differing])
    # Options do not bring a version back.
    same = "" if "version" in difference and there[differing] and lines[differing] else "the same options, "
    raise InputError(
        f"{path} differs in {' and '.join(difference) or 'the line'} of {differing}: the file has "
        f"{there[differing] or 'nothing'} and this run computes {lines[differing] or 'nothing'}: give {same}another "
        "--out, or --overwrite"
    )


def _difference(there: str, here: str) -> list[str]:
    before, now = line_parts(there), line_parts(here)
    return sorted(name for name in before | now if before.get(name) != now.get(name))


def line_parts(line: str) -> dict[str, str]:
    """What a metric line says: preset, version, and each parameter by its name."""
    definition, _, version = line.partition("?")[0].partition("/")
    return {"preset": definition.partition(":")[2], "version": version, **_parameters(line)}


def _parameters(line: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in line.partition("?")[2].split("&") if "=" in pair)


def counts_over_unknown(line: str) -> bool:
    """Whether a metric counts over a prepared corpus that its line does not name by content, so that it may grow."""
    parameters = _parameters(line)
    counts = any(parameters.get(name) == "prepared" for name in CORPUS_PARAMETERS)
    return counts and not split_pin(unquote(parameters.get("reference_set", "")))[1]


def encode_row(row: Mapping[str, Any]) -> bytes:
    """One line of JSON; readable letters, but for lone surrogates, which UTF-8 cannot hold.

    A kept column may hold NaN or an infinity, which JSON does not have: they become null.
    """
    try:
        text = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(plain(row), ensure_ascii=False, default=str, allow_nan=False)
    # As a surrogate is escaped here, so it is in JSON.
    return text.encode(errors="backslashreplace") + b"\n"


def encode_rows(rows: Iterable[Mapping[str, Any]], *, first: bool) -> bytes:
    """Rows of an output; the first row of all has the lines of its metrics, which are those of the others too."""
    return b"".join(encode_row(row if first and place == 0 else without_lines(row)) for place, row in enumerate(rows))


def output_files(output: Path) -> list[Path]:
    """Files with the rows of an output: itself, or the parts of a folder that `gradewire bulk` wrote, in order."""
    if not output.is_dir():
        return [output]
    # Where a part was scored again both may be there, and "done" comes before "unanswered".
    found: dict[str, Path] = {}
    for part in sorted(output.glob("part-*.jsonl")):
        found.setdefault(part.name.partition(".")[0], part)
    return list(found.values())


def read_results(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of an output file with their end (offset in bytes); a torn last line is left out.

    Every row has the lines of its metrics, which stand in the first row of a file alone; metrics have the names that
    they have now.

    Raises:
        InputError: A line in the middle is no output row.
    """
    lines: dict[str, str] = {}
    with path.open("rb") as stream:
        for number, end, line in whole_lines(stream):
            try:
                row = with_current_names(json.loads(line))
                complete = isinstance(row["index"], int) and row["digest"]
            except (ValueError, KeyError, TypeError, AttributeError):
                complete = False
            if not complete:
                raise InputError(f"{path}: line {number} is no output row of gradewire score: give another file")
            lines |= lines_of(row)
            yield end, with_lines(row, lines)


def former_labels(path: Path) -> list[str]:
    """Labels in the first row of an output file that have another name now; none where there is no whole row."""
    with path.open("rb") as stream:
        line = stream.readline()
    try:
        return [label for label in json.loads(line)["scores"] if current(label) != label]
    except (ValueError, KeyError, TypeError):
        return []


def count_results(path: Path) -> int:
    """Rows of an output file as it stands: whole lines, even where one is no output row."""
    with path.open("rb") as stream:
        return sum(1 for _ in whole_lines(stream))


def may_pass(row: Mapping[str, Any]) -> bool:
    """Whether a result of the row failed for want of a server or of time, so that trying again may help."""
    return any(Status(score["status"]).may_pass for score in row["scores"].values())
