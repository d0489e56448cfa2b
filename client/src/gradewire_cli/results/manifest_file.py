"""Manifests as JSON files, which a command writes beside its output."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin, get_type_hints

import click

from gradewire_cli.options.common import OUTPUT_FILE, option_group
from gradewire_cli.problems import named_errors, redacted_url
from gradewire_cli.results.journal import replacing
from gradewire_cli.results.manifest import (
    Cost,
    InputDigest,
    RunCounts,
    RunManifest,
    file_digest,
    manifest_path,
    pinned_names,
)
from gradewire_cli.results.table_formats import plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gradewire_cli.results.summary import Summary
    from gradewire_cli.results.tallies import MetricTally
    from gradewire_cli.rows.input_file import InputFile


FORMAT: Final = "gradewire-manifest/1"
"""First field of the file. The number grows where an older gradewire would misread a newer file; a field that is added
does not change it, and is kept in `RunManifest.others`."""
_OTHERS: Final = "others"
_JSON_NAMES: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    types.NoneType: "null",
}


class ManifestError(ValueError):
    """A file is no manifest that this version can read."""


def write_manifest(path: Path, manifest: RunManifest) -> None:
    """Writes a manifest, all or nothing: a reader sees the old file or the whole new one.

    Raises:
        OSError: The file cannot be written.
        TypeError: As `encode_manifest`.
    """
    text = encode_manifest(manifest)
    with replacing(path, unfinished=path.with_name(f".{path.name}.{os.getpid()}.new")) as unfinished:
        unfinished.write_bytes(text)


def encode_manifest(manifest: RunManifest) -> bytes:
    """Return the content of a manifest's file; NaN and infinities become null.

    Raises:
        TypeError: A value of `parameters` or `results` is nothing that JSON has.
    """
    document = {"format": FORMAT, **plain(manifest)}
    document |= document.pop(_OTHERS)
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="replace")


def read_manifest(path: Path) -> RunManifest:
    """Reads a manifest.

    Raises:
        ManifestError: It is none, of a format that this version does not know, or a field is not what it has to be.
        OSError: The file cannot be read.
    """
    return decode_manifest(path.read_bytes(), str(path))


def decode_manifest(text: bytes, path: str) -> RunManifest:
    """Reads the content of a manifest's file, which errors call `path`; raises ManifestError as `read_manifest`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{path} is no manifest of gradewire: it is not JSON") from error
    written = document.get("format") if isinstance(document, dict) else None
    if not isinstance(written, str) or written.partition("/")[0] != FORMAT.partition("/")[0]:
        raise ManifestError(f"{path} is no manifest of gradewire: its format is not {FORMAT}")
    if written != FORMAT:
        raise ManifestError(f"{path} is of format {written}, and this gradewire reads {FORMAT}: install a newer one")
    known = {field.name for field in fields(RunManifest)}
    others = {name: value for name, value in document.items() if name not in known and name != "format"}
    told = {name: value for name, value in document.items() if name in known}
    try:
        manifest = _read(RunManifest, {**told, _OTHERS: others}, "")
    except ValueError as error:
        raise ManifestError(f"{path}: {error}") from error
    assert isinstance(manifest, RunManifest)  # noqa: S101 - the kind that was asked for
    return manifest


def _read(kind: Any, value: Any, name: str) -> Any:
    """A value of this type from JSON; raises ValueError, which names the field."""
    origin, of = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in {Union, types.UnionType}:
        return None if value is None else _read(next(one for one in of if one is not types.NoneType), value, name)
    if is_dataclass(kind):
        return _read_fields(kind, _checked(dict, value, name), name)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _read(of[1], inner, f"{name}.{key}") for key, inner in _checked(dict, value, name).items()}
    if origin is not None and issubclass(origin, Sequence):
        return tuple(_read(of[0], inner, f"{name}[{place}]") for place, inner in enumerate(_checked(list, value, name)))
    return _as_float(value, name) if kind is float else _checked(kind, value, name)


def _as_float(value: Any, name: str) -> float:
    """A number, which JSON may have without a fraction; true and false are none, though Python counts with them."""
    if not isinstance(value, int) or isinstance(value, bool):
        value = _checked(float, value, name)
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} is a whole number that is too large") from error


def _read_fields(kind: Any, document: Mapping[str, Any], name: str) -> Any:
    hints, values = get_type_hints(kind), {}
    for field in fields(kind):
        place = f"{name}.{field.name}" if name else field.name
        if field.name in document:
            values[field.name] = _read(hints[field.name], document[field.name], place)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"it has no {place}")
    return kind(**values)


def _checked(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {_JSON_NAMES[type(value)]} and has to be {_JSON_NAMES[kind]}")
    return value


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


def manifest_path_of(given: Path | None, *outputs: Path | None) -> Path | None:
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
            found.append(replace(file_digest(path), path=redacted_url(str(path))))
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
        "keep_columns": None if rows.kept_columns is None else list(rows.kept_columns),
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


def cost_of(summary: Summary) -> Cost | None:
    """What the judges of this run took; None where none is paid for that is known of."""
    prices = summary.prices
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
