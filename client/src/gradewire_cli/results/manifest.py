"""The record of a run and its JSON file."""

import json
import os
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from gradewire_cli.results.journal import replacing
from gradewire_cli.results.table_formats import plain

FORMAT: Final = "gradewire-manifest/1"
"""Value of the file's first field. Increase the number if older versions of gradewire would misread the file."""
_OTHERS: Final = "others"
_JSON_NAMES: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    types.NoneType: "null",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDigest:
    """A file that a run read or wrote.

    Attributes:
        bytes: Size in bytes, or None for standard input, pipes and files on other machines.
        sha256: SHA-256 of the content in 64 hex digits, or "" if `bytes` is None.
    """

    path: str
    bytes: int | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of the software that a run used.

    Attributes:
        server: Version of the engine or server that scored the rows, or "" if unknown.
        protocol: Package name of the wire format, for example gradewire.v1.
    """

    gradewire: str
    server: str = ""
    protocol: str = ""
    python: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Numbers of rows by outcome, including rows kept from earlier runs.

    Attributes:
        scored_now: Number of rows that this run scored. None means all rows.
        failed: Number of rows with at least one failure. An empty prediction is not a failure.
        unscored: Number of rows that lack at least one score.
    """

    rows: int
    scored_now: int | None = None
    failed: int = 0
    unscored: int = 0
    statuses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Tokens that judges used in this run, and the tokens' price in the user's currency.

    Attributes:
        unknown_rows: Number of rows for which the judge's server reported no tokens.
        read_price: Price per million tokens read, or None.
        written_price: Price per million tokens written, or None.
        price: Price of the reported tokens, or None if a price per million tokens is missing.
    """

    read_tokens: int
    written_tokens: int
    unknown_rows: int = 0
    read_price: float | None = None
    written_price: float | None = None
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """Start (`began_at`, in UTC and ISO 8601) and duration of a run, and the CPU seconds of the command's processes."""

    began_at: str
    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine that ran the command. Unknown values are None.

    Attributes:
        cores: Number of logical cores that the process may use.
        system: Kernel and architecture.
        load_before: Load average in the minute before the run.
    """

    processor: str
    cores: int
    memory_bytes: int | None = None
    system: str = ""
    load_before: float | None = None
    load_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """The record of a run.

    Attributes:
        metrics: Metric identifiers by label.
        models: Encoders, graders and judges in the metric identifiers, as NAME@DIGEST.
        prompts: Prompts in the metric identifiers, as NAME@DIGEST.
        output: The finished output if it is a single file on this machine that `gradewire compare` can read, otherwise
            None.
        cost: Cost of judge calls, or None if no paid judge was called.
        reproduce: A command that reproduces the result, without secrets, or "" if unknown.
        others: Unknown fields from a newer gradewire.
    """

    command: str
    versions: Versions
    counts: RunCounts
    times: RunTimes
    machine: Machine
    place: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    models: Sequence[str] = ()
    prompts: Sequence[str] = ()
    inputs: Sequence[InputDigest] = ()
    output: InputDigest | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost | None = None
    reproduce: str = ""
    notes: Sequence[str] = ()
    results: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)


class ManifestError(ValueError):
    """Raised when a file is not a readable manifest."""


def write_manifest(path: Path, manifest: RunManifest) -> None:
    """Write a manifest. Readers always see the old file or the complete new file.

    Raises:
        OSError: The file cannot be written.
        TypeError: See `encode_manifest`.
    """
    text = encode_manifest(manifest)
    with replacing(path, unfinished=path.with_name(f".{path.name}.{os.getpid()}.new")) as unfinished:
        unfinished.write_bytes(text)


def encode_manifest(manifest: RunManifest) -> bytes:
    """Return the content of a manifest's file. NaN and infinities become null.

    Raises:
        TypeError: A value in `parameters` or `results` cannot be converted to JSON.
    """
    document = {"format": FORMAT, **plain(manifest)}
    document |= document.pop(_OTHERS)
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="replace")


def read_manifest(path: Path) -> RunManifest:
    """Read a manifest.

    Raises:
        ManifestError: The file is not a manifest, has an unknown format, or has an invalid field.
        OSError: The file cannot be read.
    """
    return decode_manifest(path.read_bytes(), str(path))


def decode_manifest(text: bytes, path: str) -> RunManifest:
    """Decode a manifest file's content; raise ManifestError like `read_manifest`, with `path` in the message."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{path} is not a gradewire manifest: it is not JSON") from error
    written = document.get("format") if isinstance(document, dict) else None
    if not isinstance(written, str) or written.partition("/")[0] != FORMAT.partition("/")[0]:
        raise ManifestError(f"{path} is not a gradewire manifest: its format is not {FORMAT}")
    if written != FORMAT:
        raise ManifestError(f"{path} has format {written}, but this gradewire reads {FORMAT}. Install a newer version")
    known = {each.name for each in fields(RunManifest)}
    others = {name: value for name, value in document.items() if name not in known and name != "format"}
    own = {name: value for name, value in document.items() if name in known}
    try:
        manifest: RunManifest = _read(RunManifest, {**own, _OTHERS: others}, "")
    except ValueError as error:
        raise ManifestError(f"{path}: {error}") from error
    return manifest


def _read(kind: Any, value: Any, name: str) -> Any:
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
    if kind is float and type(value) is int:  # JSON may omit the fraction
        if abs(value) > sys.float_info.max:
            raise ValueError(f"{name} is too large")
        value = float(value)
    return _checked(kind, value, name)


def _read_fields(kind: Any, document: Mapping[str, Any], name: str) -> Any:
    hints, values = get_type_hints(kind), {}
    for each in fields(kind):
        place = f"{name}.{each.name}" if name else each.name
        if each.name in document:
            values[each.name] = _read(hints[each.name], document[each.name], place)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"field {place} is missing")
    return kind(**values)


def _checked(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} must be {_JSON_NAMES[kind]}, not {_JSON_NAMES[type(value)]}")
    return value
