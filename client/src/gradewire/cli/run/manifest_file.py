"""The manifest that a command writes beside its output, of what commands count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.options.group import OUTPUT_FILE, option_group
from gradewire.cli.problems import named_errors
from gradewire.cli.url_keys import shown_url
from gradewire.manifests import Cost, RunCounts, file_digest, manifest_path, pinned_names, write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from gradewire.cli.input.files import InputFile
    from gradewire.cli.options.judge_prices import JudgePrices
    from gradewire.cli.output.summary import MetricTally, Summary
    from gradewire.manifests import InputDigest, RunManifest

_MILLION = 1e6

manifest_option = click.option(
    "--manifest",
    type=OUTPUT_FILE,
    help="Write the manifest of the run here: versions, digests, counts, machine. Default: beside the output, as "
    "OUTPUT.manifest.json.",
)
row_output_options = option_group(
    click.option("--keep-columns", metavar="COLUMN,…", help="Columns of the input that the rows have too, or all."),
    click.option("--summary-json", type=OUTPUT_FILE, help="Also write the summary here, as JSON."),
    manifest_option,
)


def manifest_beside(given: Path | None, *outputs: Path | None) -> Path | None:
    """Where the manifest goes: as --manifest says, else beside the first output that is a file; None without any."""
    if given is not None:
        return given
    files = (path for path in outputs if path is not None and (path.is_file() or not path.exists()))
    first = next(files, None)
    return None if first is None else manifest_path(first)


def forget_manifest(path: Path | None) -> None:
    """Removes the manifest of an output that is about to change; raises InputError where that cannot be."""
    if path is not None:
        with named_errors(path):
            path.unlink(missing_ok=True)


def save_manifest(path: Path | None, manifest: RunManifest) -> None:
    """Writes a manifest where there is a place for it; raises InputError where that cannot be."""
    if path is not None:
        with named_errors(path):
            write_manifest(path, manifest)


def digests_of(paths: Iterable[str | Path]) -> list[InputDigest]:
    """Digests of files that were read, URLs without keys; raises InputError where one cannot be read any more."""
    found = []
    for path in paths:
        with named_errors(path):
            found.append(replace(file_digest(path), path=shown_url(str(path))))
    return found


def output_digest(path: Path | None) -> InputDigest | None:
    """Digest of an output that is whole; None where it is no file that can be read again.

    Raises:
        InputError: It cannot be read.
    """
    if path is None:
        return None
    (found,) = digests_of([path])
    return found if found.sha256 else None


def reading_parameters(source: InputFile) -> dict[str, Any]:
    """Options that decide what a row is, and what of it is kept; by name, as JSON has them."""
    rows, reading = source.options, source.reading
    return {
        "map": dict(rows.columns),
        "where": {column: sorted(values) for column, values in rows.where.items()},
        "reference_separator": rows.reference_separator,
        "missing": list(rows.missing),
        "keep_columns": None if rows.kept is None else list(rows.kept),
        "input_format": reading.format or "",
        "encoding": reading.encoding,
        "delimiter": reading.delimiter,
    }


def metric_fields(lines: Mapping[str, str]) -> dict[str, Any]:
    """Fields `metrics`, `models` and `prompts` of a manifest, from the lines of metrics by label."""
    models, prompts = pinned_names(lines.values())
    return {"metrics": dict(lines), "models": models, "prompts": prompts}


def counts_of(summary: Summary, *, scored_now: int) -> RunCounts:
    """Counts of a run, of which `scored_now` rows are not of an earlier one."""
    return RunCounts(
        rows=summary.rows,
        scored_now=scored_now,
        failed=summary.failed_rows,
        unscored=summary.unscored_rows,
        **_tallied(summary.metrics),
    )


def tallied_counts(tallies: Mapping[str, MetricTally], *, rows: int) -> RunCounts:
    """Counts of rows of which only statuses by metric are known."""
    return RunCounts(rows=rows, **_tallied(tallies))


def _tallied(tallies: Mapping[str, MetricTally]) -> dict[str, Any]:
    return {
        "statuses": {label: dict(tally.statuses) for label, tally in tallies.items()},
        "warnings": {label: dict(tally.warnings) for label, tally in tallies.items() if tally.warnings},
    }


def cost_of(summary: Summary, prices: JudgePrices | None) -> Cost | None:
    """What the judges of this run took; None where none is paid for that is known of (`prices` None)."""
    paid = [tally.judge.paid for tally in summary.metrics.values() if tally.judge is not None]
    if not paid or prices is None:
        return None
    read, written = sum(each.read for each in paid), sum(each.written for each in paid)
    known = prices.read is not None and prices.written is not None
    return Cost(
        read_tokens=read,
        written_tokens=written,
        unknown_rows=sum(each.unknown_rows for each in paid),
        read_price=prices.read,
        written_price=prices.written,
        price=(read * (prices.read or 0.0) + written * (prices.written or 0.0)) / _MILLION if known else None,
    )
