"""Assemble the output from parts, and check that a resumed run has the same settings."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradewire_cli.bulk.parts import RUN_NAME, PartId, PartStore, missing_parts
from gradewire_cli.problems import InputError, named_errors, redacted_url
from gradewire_cli.results.journal import refuse_other_run, replacing, shown_value
from gradewire_cli.results.manifest import InputDigest, ManifestError, RunManifest, decode_manifest, encode_manifest
from gradewire_cli.results.manifest_entries import file_digest
from gradewire_cli.results.results_table import is_table, write_table
from gradewire_cli.results.resumable_output import counts_over_unknown, encode_row, line_parts, without_lines
from gradewire_cli.rows.files import file_errors, file_system, is_url, local_path, open_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradewire_cli.bulk.pipeline import FileEnd
    from gradewire_cli.rows.input_file import InputFile


class IncompleteError(InputError):
    """Raised when the parts do not contain exactly one result for each input row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The parts of a finished run, which form its output.

    Attributes:
        parts: All parts. The value is False if some of the part's rows are unanswered.
    """

    store: PartStore
    parts: Mapping[PartId, bool]
    ends: Mapping[int, FileEnd]

    def check(self, take: Callable[[Mapping[str, Any]], None]) -> None:
        """Read all parts once, and pass their rows to `take` in input order.

        Raises:
            IncompleteError: A part is missing, or an input file's row is missing or appears twice.
        """
        if missing := missing_parts(self.parts, {file: end.parts for file, end in self.ends.items()}):
            raise IncompleteError(
                f"{self.store.path_or_url}: {len(missing)} parts are missing. Score them with --resume"
            )
        last = -1
        for file, end in sorted(self.ends.items()):
            counts = [0] * end.parts
            for number in range(end.parts):
                for row in self._rows(PartId(file, number)):
                    if row["index"] <= last:
                        raise IncompleteError(
                            f"{self.store.path_or_url}: row {row['index']} comes after row {last}, because a part was "
                            "changed. Use --overwrite to start again"
                        )
                    last = row["index"]
                    counts[number] += 1
                    take(row)
            if sum(counts) != end.rows:
                # All parts except the last one have the same number of rows.
                short = next((number for number, rows in enumerate(counts[:-1]) if rows < max(counts)), end.parts - 1)
                raise IncompleteError(
                    f"the parts of file {file + 1} have {sum(counts)} rows, but the file has {end.rows}: "
                    f"{self._incomplete_message(PartId(file, short))}"
                )

    def write(self, output: str) -> None:
        """Write the output in the format of its suffix.

        On this machine, the write is durable and atomic. On file systems that are not object stores, the file's
        beginning may appear before the end of the upload.
        """
        local = local_path(output)
        if local is None:
            with tempfile.TemporaryDirectory(prefix="gradewire-bulk-") as folder, file_errors(output):
                made = Path(folder) / output.rsplit("/", 1)[-1]
                self._write_file(made)
                system, path = file_system(output)
                system.put_file(str(made), path)
        else:
            self._write_file(local)

    def _write_file(self, path: Path) -> None:
        table = is_table(path)
        rows = path.with_name(f".{path.name}.rows.jsonl") if table else path
        unfinished = path.with_name(f".{path.name}.new")
        with named_errors(path), replacing(rows, unfinished=unfinished), unfinished.open("wb") as stream:
            for place, part in enumerate(sorted(self.parts)):
                stream.writelines(self._lines(part) if place == 0 else _without_identifiers(self._lines(part)))
        if table:
            try:
                write_table(path, rows)
            finally:
                rows.unlink(missing_ok=True)

    def _rows(self, part: PartId) -> Iterator[dict[str, Any]]:
        for line in self._lines(part):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise IncompleteError(self._incomplete_message(part)) from error

    def _incomplete_message(self, part: PartId) -> str:
        name = part.name(answered=self.parts[part])
        return f"{self.store.path_or_url}/{name} is incomplete. Remove the file and score its rows again with --resume"

    def _lines(self, part: PartId) -> Iterator[bytes]:
        yield from self.store.read_part(part, answered=self.parts[part]).splitlines(keepends=True)


def _without_identifiers(lines: Iterator[bytes]) -> Iterator[bytes]:
    for place, line in enumerate(lines):
        yield encode_row(without_lines(json.loads(line))) if place == 0 else line


def remove_output(output: str) -> None:
    """Remove an output if it exists; raise InputError on failure."""
    system, path = file_system(output)
    with file_errors(output), contextlib.suppress(FileNotFoundError):
        system.rm_file(path)


def output_exists(output: str) -> bool:
    """Return True if an output exists."""
    system, path = file_system(output)
    with file_errors(output):
        return bool(system.exists(path))


def input_digests(source: InputFile) -> list[InputDigest]:
    """Return the size and SHA-256 of every input file; raise InputError if a file cannot be read."""
    found = []
    for path in source.paths:
        with file_errors(path):
            if not is_url(path):
                found.append(file_digest(path))
                continue
            with open_url(path) as stream:
                digest = hashlib.file_digest(stream, "sha256")
                found.append(InputDigest(path=redacted_url(path), bytes=stream.tell(), sha256=digest.hexdigest()))
    return found


def save_run(store: PartStore, run: RunManifest, name: str = RUN_NAME) -> None:
    """Write a manifest (by default the run's description) into a store; raise InputError on failure."""
    store.write(name, encode_manifest(run))


def saved_run(store: PartStore, name: str = RUN_NAME) -> RunManifest | None:
    """Return a store's manifest (by default the run's description), or None if the manifest is missing.

    Raises:
        InputError: The manifest is broken or from a newer gradewire, or the store contains parts but no description.
    """
    if name not in store.names():
        if name == RUN_NAME and store.parts():
            raise InputError(
                f"--resume: {store.path_or_url} contains parts, but the description of their run ({RUN_NAME}) is "
                "missing. Use another OUTPUT, or --overwrite"
            )
        return None
    try:
        return decode_manifest(store.read(name), f"{store.path_or_url}/{name}")
    except ManifestError as error:
        raise InputError(f"{error}. Use --overwrite to start again") from error


def check_same(output: str, before: RunManifest, now: RunManifest) -> None:
    """Raise InputError with the differences if a run with different settings made the output."""
    refuse_other_run(output, _differences(before, now), way_out="use the same settings, another OUTPUT, or --overwrite")


def _differences(before: RunManifest, now: RunManifest) -> Iterator[str]:
    yield from _changed_input(before.inputs, now.inputs)
    yield from _changed_lines(before.metrics, now.metrics)
    for name in sorted({*before.parameters, *now.parameters}):
        there, here = before.parameters.get(name), now.parameters.get(name)
        if json.loads(json.dumps(here)) != there:
            yield f"--{name.replace('_', '-')} was {shown_value(there)}, now {shown_value(here)}"


def _changed_input(before: Sequence[InputDigest], now: Sequence[InputDigest]) -> Iterator[str]:
    if len(before) != len(now):
        yield f"the number of input files was {len(before)}, now {len(now)}"
        return
    for there, here in zip(before, now, strict=True):
        if there.path != here.path:
            yield f"the input {there.path} is now {here.path}"
        if there.sha256 != here.sha256:
            yield f"{here.path} has changed ({there.bytes} bytes before, {here.bytes} now)"


def _changed_lines(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    if list(before) != list(now):
        yield f"--metrics were {', '.join(before)}, now {', '.join(now)}"
        return
    for label, line in now.items():
        if line == before[label] and counts_over_unknown(line):
            yield f"{label} uses a reference set that may have changed, because {line} does not name the set's digest"
        there, here = line_parts(before[label]), line_parts(line)
        for name in sorted(there | here):
            if there.get(name) != here.get(name):
                yield f"{name} of {label} was {shown_value(there.get(name))}, now {shown_value(here.get(name))}"
