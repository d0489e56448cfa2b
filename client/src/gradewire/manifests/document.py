"""Manifests as JSON files."""

import json
import math
import os
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from gradewire.manifests.durable import replacing
from gradewire.manifests.manifest import RunManifest

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
    document = {"format": FORMAT, **_plain(manifest)}
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


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
