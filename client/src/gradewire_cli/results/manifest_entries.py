"""Collect a manifest's entries, and find its path."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from gradewire_cli.options.common import OUTPUT_FILE
from gradewire_cli.options.help import option
from gradewire_cli.problems import named_errors, redacted_url
from gradewire_cli.results.manifest import (
    Cost,
    InputDigest,
    Machine,
    RunCounts,
    RunManifest,
    RunTimes,
    Versions,
    write_manifest,
)
from gradewire_cli.results.tallies import PaidTokens
from gradewire_proto.v1 import scoring_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gradewire_cli.results.summary import Summary
    from gradewire_cli.results.tallies import MetricTally
    from gradewire_cli.rows.input_file import InputFile

_CPU_INFO = Path("/proc/cpuinfo")


def _load() -> float | None:
    # Windows has no load average.
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _cpu_s() -> float:
    return sum(os.times()[:4])


@dataclass(frozen=True, slots=True)
class RunClock:
    """A clock that starts with the run."""

    _began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _began_s: float = field(default_factory=time.monotonic)
    _cpu_s: float = field(default_factory=_cpu_s)
    _load: float | None = field(default_factory=_load)

    def times(self) -> RunTimes:
        """Return the times from the start until now."""
        return RunTimes(
            began_at=self._began_at.isoformat(timespec="seconds"),
            wall_s=time.monotonic() - self._began_s,
            cpu_s=_cpu_s() - self._cpu_s,
        )

    def machine(self) -> Machine:
        """Return this machine, with the load before the run and the current load."""
        return Machine(
            processor=_processor(),
            cores=usable_cores(),
            memory_bytes=_memory_bytes(),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            load_before=self._load,
            load_after=_load(),
        )


def _processor() -> str:
    with suppress(OSError):
        for line in _CPU_INFO.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return the number of logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_bytes() -> int | None:
    with suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def manifest_path(output: Path) -> Path:
    """Return the path of an output's manifest: OUTPUT.manifest.json, or manifest.json in a `gradewire bulk` folder."""
    if output.is_dir():
        return output / "manifest.json"
    return output.with_name(f"{output.name}.manifest.json")


def file_digest(path: str | Path) -> InputDigest:
    """Return a regular file's size and SHA-256. For other files, return only the path.

    Raises:
        OSError: The file exists but cannot be read.
    """
    file = Path(path)
    if not file.exists() or not stat.S_ISREG(file.stat().st_mode):
        return InputDigest(path=str(path))
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        return InputDigest(path=str(path), bytes=stream.tell(), sha256=digest.hexdigest())


def versions(server: str = "") -> Versions:
    """Return the versions of this client, the server, and the protocol."""
    return Versions(
        gradewire=importlib.metadata.version("gradewire"),
        server=server,
        protocol=scoring_pb2.DESCRIPTOR.package,
        python=platform.python_version(),
    )


def pinned_names(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the distinct models and prompts in metric identifiers, each as NAME@DIGEST."""
    models: dict[str, None] = {}
    prompts: dict[str, None] = {}
    for line in lines:
        for pair in line.partition("?")[2].split("&"):
            name, _, value = pair.partition("=")
            if "@" in value and name != "reference_set":
                (prompts if name == "prompt" else models)[unquote(value)] = None
    return list(models), list(prompts)


manifest_option = option("--manifest", type=OUTPUT_FILE)
row_output_options = (
    option("--keep-columns"),
    option("--summary-json", type=OUTPUT_FILE),
    manifest_option,
)


def manifest_path_of(given: Path | None, *outputs: Path | None) -> Path | None:
    """Return the path from --manifest, or a path next to the first output file, or None without output files."""
    if given is not None:
        return given
    files = (path for path in outputs if path is not None and (path.is_file() or not path.exists()))
    first = next(files, None)
    return None if first is None else manifest_path(first)


def forget_manifest(path: Path | None) -> None:
    """Remove the manifest of an output that will change; raise InputError on failure."""
    if path is not None:
        with named_errors(path):
            path.unlink(missing_ok=True)


def save_manifest(path: Path, manifest: RunManifest) -> None:
    """Write a manifest; raise InputError on failure."""
    with named_errors(path):
        write_manifest(path, manifest)


def digests_of(paths: Iterable[str | Path]) -> list[InputDigest]:
    """Return digests of files, with secrets removed from URLs; raise InputError on failure."""
    found = []
    for path in paths:
        with named_errors(path):
            found.append(replace(file_digest(path), path=redacted_url(str(path))))
    return found


def output_digest(path: Path | None) -> InputDigest | None:
    """Return the digest of a finished output, or None if the output is not a regular file."""
    if path is None:
        return None
    (found,) = digests_of([path])
    return found if found.sha256 else None


def reading_parameters(source: InputFile) -> dict[str, Any]:
    """Return the options that select rows and columns, as JSON values by name."""
    rows, reading = source.options, source.reading
    return {
        "map": dict(rows.columns),
        "where": {column: sorted(values) for column, values in rows.where.items()},
        "reference_separator": rows.reference_separator,
        "missing": list(rows.missing),
        "keep_columns": None if rows.kept_columns is None else list(rows.kept_columns),
        "input_format": reading.format or "",
        "encoding": reading.encoding,
        "delimiter": reading.delimiter,
    }


def metric_fields(lines: Mapping[str, str]) -> dict[str, Any]:
    """Return a manifest's `metrics`, `models` and `prompts` from metric identifiers by label."""
    models, prompts = pinned_names(lines.values())
    return {"metrics": dict(lines), "models": models, "prompts": prompts}


def counts_of(summary: Summary, *, scored_now: int) -> RunCounts:
    """Return the counts of a run that scored `scored_now` of its rows."""
    return RunCounts(
        rows=summary.rows,
        scored_now=scored_now,
        failed=summary.failed_rows,
        unscored=summary.unscored_rows,
        **_tallied(summary.metrics),
    )


def tallied_counts(tallies: Mapping[str, MetricTally], *, rows: int) -> RunCounts:
    """Return the number of rows, with each metric's statuses and warnings."""
    return RunCounts(rows=rows, **_tallied(tallies))


def _tallied(tallies: Mapping[str, MetricTally]) -> dict[str, Any]:
    return {
        "statuses": {label: dict(tally.statuses) for label, tally in tallies.items()},
        "warnings": {label: dict(tally.warnings) for label, tally in tallies.items() if tally.warnings},
    }


def cost_of(summary: Summary) -> Cost | None:
    """Return the judges' cost in this run, or None if there was no judge, or if prices are unknown."""
    prices = summary.prices
    paid = [tally.judge.paid for tally in summary.metrics.values() if tally.judge is not None]
    if not paid or prices is None:
        return None
    used = sum(paid, start=PaidTokens())
    return Cost(
        read_tokens=used.read,
        written_tokens=used.written,
        unknown_rows=used.unknown_rows,
        read_price=prices.read,
        written_price=prices.written,
        price=prices.price(used.read, used.written),
    )
