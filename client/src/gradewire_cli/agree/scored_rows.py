"""`python -m gradewire_cli.agree.scored_rows`: write an agreement page for rows that are already scored.

Each line of standard input is ``{"row": {…}, "scores": {…}}``, an input row with its scores in the format of `gradewire
score`. The program writes the same page as `gradewire agree --html` to standard output, and errors about rows to
standard error with exit code 2. The HTTP gateway runs this program for its web page.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire_cli.agree.command import agree_command
from gradewire_cli.problems import InputError, fail
from gradewire_cli.scoring.labelled_run import labelled_run_of
from gradewire_proto.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NICENESS = 10
"""A nice level that gives a server on the same cores priority over this process."""
_OOM_SCORE_ADJUSTMENT = Path("/proc/self/oom_score_adj")
_MAX_CPU_S = 600
"""Maximum CPU time in seconds, in case the gateway dies and cannot stop this program."""
_TEXTS = ("line", "message", "best_window")


def report_of(lines: bytes, folder: Path) -> bytes:
    """Return the HTML page for the input lines. Write temporary files to `folder`, which must be empty.

    Raises:
        click.ClickException: A line is invalid.
    """
    given = [_line(number, line) for number, line in enumerate(lines.splitlines(), 1) if line.strip()]
    if not given:
        raise InputError("no rows on standard input")
    # Use relative names, because errors and the page may show file names but must not show the folder.
    rows, scores, page = Path("rows.jsonl"), Path("scores.jsonl"), Path("report.html")
    arguments = [str(rows), "--scores", str(scores), "--html", str(page), "--quiet"]
    with contextlib.chdir(folder):
        rows.write_text("".join(f"{json.dumps(one['row'])}\n" for one in given))
        _write_scores(scores, arguments, given)
        with contextlib.redirect_stdout(io.StringIO()):
            agree_command.main(arguments, prog_name="gradewire agree", standalone_mode=False)
        return page.read_bytes()


def _write_scores(path: Path, arguments: Sequence[str], given: Sequence[Mapping[str, Any]]) -> None:
    """Write each row's scores with the digest that `gradewire agree` computes for the row."""
    with agree_command.make_context("agree", list(arguments)) as context:
        run = labelled_run_of(context.params)
    with path.open("w") as file:
        for row in run.source.open().rows:
            result = {"id": row.id, "index": row.index, "digest": row.digest, "scores": given[row.index]["scores"]}
            file.write(f"{json.dumps(result)}\n")


def _line(number: int, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number} is unreadable JSON: {error}") from None
    parts = [value.get(name) for name in ("row", "scores")] if isinstance(value, dict) else []
    results = list(parts[1].values()) if parts and isinstance(parts[1], dict) else []
    well = bool(results) and isinstance(parts[0], dict) and all(map(_is_result, results))
    if not well:
        raise InputError(f'line {number} is not {{"row": {{…}}, "scores": {{METRIC: {{"score", "status", …}}}}}}')
    return dict(value)


def _is_result(value: object) -> bool:
    """Return True if a value from an untrusted client has the fields of a result, with the right types."""
    if not isinstance(value, dict) or not isinstance(value.get("status"), str):
        return False
    warnings = value.get("warnings", [])
    return (
        _is_score(value.get("score"))
        and isinstance(value.get("correct", True), bool)
        and all(isinstance(value.get(name, ""), str) for name in _TEXTS)
        and isinstance(value.get("matched_reference", 0), int)
        and isinstance(warnings, list)
        and all(isinstance(warning, str) for warning in warnings)
    )


def _is_score(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _lower_priority() -> None:
    os.nice(_NICENESS)
    _, allowed = resource.getrlimit(resource.RLIMIT_CPU)
    most = _MAX_CPU_S if allowed == resource.RLIM_INFINITY else min(allowed, _MAX_CPU_S)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    if _OOM_SCORE_ADJUSTMENT.exists():  # Linux only
        _OOM_SCORE_ADJUSTMENT.write_text("1000")


def main() -> None:
    """Read rows from standard input and write the page to standard output."""
    _lower_priority()
    with tempfile.TemporaryDirectory(prefix="gradewire-report-") as folder:
        try:
            page = report_of(sys.stdin.buffer.read(), Path(folder))
        except click.ClickException as error:
            fail(error, ExitCode.UNUSABLE)
    sys.stdout.buffer.write(page)


if __name__ == "__main__":
    main()
