"""The record of a run (inputs, versions, metric lines, costs, times, machine), and the JSON file that holds it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDigest:
    """A file that a run read or wrote.

    Attributes:
        bytes: Its size; None where it could be read only once (standard input, a pipe) or is not on this machine.
        sha256: 64 hex digits over its bytes; "" where `bytes` is None.
    """

    path: str
    bytes: int | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of what took part.

    Attributes:
        gradewire: Of the client that ran the command.
        server: Of the engine or server that scored; "" where nobody asked.
        protocol: Package of the wire format, for instance gradewire.v1.
    """

    gradewire: str
    server: str = ""
    protocol: str = ""
    python: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Rows by their outcome, those of earlier runs that were kept included.

    Attributes:
        scored_now: Rows that this run scored; None: all.
        failed: Rows with at least one result that is a failure; an empty prediction is none.
        unscored: Rows that lack at least one score.
    """

    rows: int
    scored_now: int | None = None
    failed: int = 0
    unscored: int = 0
    statuses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Tokens and price of the judges of this run.

    Attributes:
        unknown_rows: Rows whose tokens the judge's server does not tell.
        read_price: Of a million tokens that are read, in the user's currency; None: not given.
        written_price: Of a million tokens that are written; None: not given.
        price: Of the known tokens together; None where a price was not given.
    """

    read_tokens: int
    written_tokens: int
    unknown_rows: int = 0
    read_price: float | None = None
    written_price: float | None = None
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """When a run was done and what it took.

    Attributes:
        wall_s: From `began_at` (UTC, ISO 8601) to the end, seconds.
        cpu_s: CPU seconds of the command's process and of those of its children that have ended; a server is not in it.
    """

    began_at: str
    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine on which the command ran; a server may be elsewhere.

    Attributes:
        cores: Logical ones that the process may use.
        memory_bytes: Of the machine; None where the system does not say.
        system: Kernel and architecture.
        load_before: Mean number of runnable processes in the minute before the run; None where the system does not say.
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
        command: Of gradewire, for instance "score" or "bench load".
        metrics: The line that reproduces each metric, by label: with all parameters, and digests of models and prompts.
        models: What those lines name with a digest, as NAME@DIGEST: encoders, graders, judges.
        prompts: The same of prompts.
        output: The output as the run left it; None where it is no single file on this machine, or of a command whose
            outputs are not compared.
        parameters: Further options that change what comes out, by name; values as JSON has them.
        cost: What judges took; None where none was asked, or none that is paid for.
        reproduce: A command line that gives the same again, without secrets; "" where there is none.
        notes: What people should know of the input, in sentences.
        results: Statistics of the command itself; values as JSON has them.
        others: Fields of a file that a newer gradewire wrote, kept as they are.
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
    """A file is no manifest that this version can read."""


def write_manifest(path: Path, manifest: RunManifest) -> None:
    """Write a manifest, all or nothing: a reader sees the old file or the whole new one.

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
    """Read a manifest.

    Raises:
        ManifestError: It is none, of a format that this version does not know, or a field is not what it has to be.
        OSError: The file cannot be read.
    """
    return decode_manifest(path.read_bytes(), str(path))


def decode_manifest(text: bytes, path: str) -> RunManifest:
    """Read the content of a manifest's file, which errors call `path`; raises ManifestError as `read_manifest`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{path} is no manifest of gradewire: it is not JSON") from error
    written = document.get("format") if isinstance(document, dict) else None
    if not isinstance(written, str) or written.partition("/")[0] != FORMAT.partition("/")[0]:
        raise ManifestError(f"{path} is no manifest of gradewire: its format is not {FORMAT}")
    if written != FORMAT:
        raise ManifestError(f"{path} is of format {written}, and this gradewire reads {FORMAT}: install a newer one")
    known = {each.name for each in fields(RunManifest)}
    others = {name: value for name, value in document.items() if name not in known and name != "format"}
    own = {name: value for name, value in document.items() if name in known}
    try:
        manifest: RunManifest = _read(RunManifest, {**own, _OTHERS: others}, "")
    except ValueError as error:
        raise ManifestError(f"{path}: {error}") from error
    return manifest


def _read(kind: Any, value: Any, name: str) -> Any:
    """Return a value of this type from JSON; raises ValueError, which names the field."""
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
    if kind is float and type(value) is int:  # JSON may have it without a fraction
        if abs(value) > sys.float_info.max:
            raise ValueError(f"{name} is a whole number that is too large")
        value = float(value)
    return _checked(kind, value, name)


def _read_fields(kind: Any, document: Mapping[str, Any], name: str) -> Any:
    hints, values = get_type_hints(kind), {}
    for each in fields(kind):
        place = f"{name}.{each.name}" if name else each.name
        if each.name in document:
            values[each.name] = _read(hints[each.name], document[each.name], place)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"it has no {place}")
    return kind(**values)


def _checked(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {_JSON_NAMES[type(value)]} and has to be {_JSON_NAMES[kind]}")
    return value
