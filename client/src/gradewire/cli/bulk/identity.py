"""What must not change between a run and the one that goes on with it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from gradewire.cli.bulk.parts import RUN_NAME
from gradewire.cli.input.urls import is_url, open_url, place_errors
from gradewire.cli.output.journal import refuse_other_run, told
from gradewire.cli.output.metric_lines import counts_over_unknown, line_parts
from gradewire.cli.problems import InputError
from gradewire.cli.url_keys import shown_url
from gradewire.manifests import InputDigest, ManifestError, decode_manifest, encode_manifest, file_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire.cli.bulk.parts import PartStore
    from gradewire.cli.input.files import InputFile
    from gradewire.manifests import RunManifest


def input_digests(source: InputFile) -> list[InputDigest]:
    """Size and SHA-256 of every input file; raises InputError where one cannot be read."""
    found = []
    for path in source.paths:
        with place_errors(path):
            if not is_url(path):
                found.append(file_digest(path))
                continue
            with open_url(path) as stream:
                digest = hashlib.file_digest(stream, "sha256")
                found.append(InputDigest(path=shown_url(path), bytes=stream.tell(), sha256=digest.hexdigest()))
    return found


def save_run(store: PartStore, run: RunManifest, name: str = RUN_NAME) -> None:
    """Writes a manifest into a folder, by default what its parts are made with.

    Raises:
        InputError: It cannot be written.
    """
    store.write(name, encode_manifest(run))


def saved_run(store: PartStore, name: str = RUN_NAME) -> RunManifest | None:
    """What the parts that are there were made with, or a manifest of another name; None where there is no run.

    Raises:
        InputError: The file that says so is broken, or of a newer gradewire; or there are parts without it.
    """
    if name not in store.names():
        if name == RUN_NAME and store.parts():
            raise InputError(
                f"--resume: {store.place} has parts and no {RUN_NAME}, which says what they are made with: give "
                "another OUTPUT, or --overwrite"
            )
        return None
    try:
        return decode_manifest(store.read(name), f"{store.place}/{name}")
    except ManifestError as error:
        raise InputError(f"{error}; --overwrite begins again") from error


def check_same(output: str, before: RunManifest, now: RunManifest) -> None:
    """Refuses to go on with what another run made; raises InputError, which says in what the runs differ."""
    refuse_other_run(output, _differences(before, now), way_out="give the same, another OUTPUT, or --overwrite")


def _differences(before: RunManifest, now: RunManifest) -> Iterator[str]:
    yield from _changed_input(before.inputs, now.inputs)
    yield from _changed_lines(before.metrics, now.metrics)
    for name in sorted({*before.parameters, *now.parameters}):
        there, here = before.parameters.get(name), now.parameters.get(name)
        if json.loads(json.dumps(here)) != there:
            yield f"--{name.replace('_', '-')} was {told(there)} and is {told(here)}"


def _changed_input(before: Sequence[InputDigest], now: Sequence[InputDigest]) -> Iterator[str]:
    if len(before) != len(now):
        yield f"it had {len(before)} input files and now there are {len(now)}"
        return
    for there, here in zip(before, now, strict=True):
        if there.path != here.path:
            yield f"the input {there.path} is now {here.path}"
        if there.sha256 != here.sha256:
            yield f"{here.path} has changed ({there.bytes} bytes then, {here.bytes} now)"


def _changed_lines(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    if list(before) != list(now):
        yield f"--metrics were {', '.join(before)} and are {', '.join(now)}"
        return
    for label, line in now.items():
        if line == before[label] and counts_over_unknown(line):
            yield f"{label} counts over a reference set whose content {line} does not name: it may have grown"
        there, here = line_parts(before[label]), line_parts(line)
        for name in sorted(there | here):
            if there.get(name) != here.get(name):
                yield f"{name} of {label} was {told(there.get(name))} and is {told(here.get(name))}"
