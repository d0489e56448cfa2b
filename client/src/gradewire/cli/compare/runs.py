"""What manifests and summaries say of the runs that wrote outputs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gradewire.cli.compare.manifests import INPUTS, PARAMETERS
from gradewire.cli.problems import InputError, named_errors
from gradewire.manifests import ManifestError, file_digest, manifest_path, read_manifest
from gradewire_proto.conventions.metric_lines import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.manifests import InputDigest, RunManifest

_LEFT_OUT: Final = "what it says of the run is left out"
_DIGEST_CHARACTERS: Final = 12
_MOST_CHARACTERS: Final = 150


def runs_beside(
    lines_by_output: Mapping[str, Mapping[str, str]], rows_by_output: Mapping[str, int]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What the manifests beside outputs say of the runs that wrote them, and notes where one cannot be used.

    Args:
        lines_by_output: Outputs of `gradewire score` and `gradewire bulk`, with what reproduces the metrics of each.
        rows_by_output: How many rows each has; without those whose number is not known.
    """
    runs: dict[str, dict[str, Any]] = {}
    missing, notes = [], []
    for output, lines in lines_by_output.items():
        runs[output] = {}
        path = manifest_path(Path(output))
        if not path.exists():
            missing.append(f"{output} has no manifest ({path.name}), as one of a run that did not end")
            continue
        try:
            manifest = read_manifest(path)
            other = _other_content(output, manifest)
        except (ManifestError, OSError) as error:
            notes.append(f"{error}; {_LEFT_OUT}")
            continue
        if _current(manifest.metrics) != dict(lines):
            notes.append(f"{path} is not that of {output}, whose metrics are others; {_LEFT_OUT}")
        elif (rows := rows_by_output.get(output, manifest.counts.rows)) != manifest.counts.rows:
            notes.append(f"{path} is of {manifest.counts.rows} rows, and {output} has {rows}; {_LEFT_OUT}")
        elif other:
            notes.append(f"{path} is not that of {output}: {other}; {_LEFT_OUT}")
        else:
            runs[output] = _run_of(manifest)
    # Where no output has one there is nothing that one side lacks.
    notes += [f"{lack}; {_LEFT_OUT}" for lack in missing] if any(runs.values()) else []
    return runs, [_plain(note) for note in notes]


def _other_content(output: str, manifest: RunManifest) -> str:
    """Says that a manifest was written for another content than the output's; "" where it was not, or does not say.

    Raises:
        OSError: The output cannot be read.
    """
    written = manifest.output
    if written is None or not written.sha256 or not Path(output).is_file():
        return ""
    there = file_digest(output)
    if not there.sha256 or there.sha256 == written.sha256:
        return ""
    return (
        f"it was written for {_input_told(written)}, and {output} has the SHA-256 "
        f"{there.sha256[:_DIGEST_CHARACTERS]}: another output, or one that was changed since"
    )


def _run_of(manifest: RunManifest) -> dict[str, Any]:
    cost = None if manifest.cost is None else manifest.cost.price
    told = {
        "gradewire_version": manifest.versions.gradewire,
        "server_version": manifest.versions.server,
        "protocol": manifest.versions.protocol,
        "place": manifest.place,
        "processor": manifest.machine.processor,
        "judge_price": cost,
        PARAMETERS: {name: told for name, value in manifest.parameters.items() if (told := _short(value))},
        INPUTS: [_input_told(each) for each in manifest.inputs],
        "notes": list(manifest.notes),
    }
    return {name: value for name, value in told.items() if value}


def _input_told(each: InputDigest) -> str:
    return _cut(each.path) + (f" (SHA-256 {each.sha256[:_DIGEST_CHARACTERS]})" if each.sha256 else "")


def _short(value: Any) -> str:
    """A value of JSON; "" for what says nothing."""
    if value in (None, "", [], {}):
        return ""
    try:
        return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
    except RecursionError:
        # What could just be read may be too deep to be written, from deeper in this program.
        return "nested too deeply to be shown"


def _cut(text: str) -> str:
    """The text, or its beginning and a digest, by which two long ones still differ."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_MOST_CHARACTERS]}… (SHA-256 of the whole {digest[:_DIGEST_CHARACTERS]})"


def _plain(text: str) -> str:
    """A line without what a terminal obeys and without lone surrogates, as manifests of others may have them."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def read_summary(path: Path, output: str, lines: Mapping[str, str]) -> dict[str, Any]:
    """What `gradewire score --summary-json`, or a manifest that stands elsewhere, says of the run that wrote `output`.

    Args:
        path: The summary or manifest.
        output: For messages.
        lines: What reproduces the metrics of that output.

    Raises:
        InputError: The file is neither, or that of another output.
    """
    with named_errors(path):
        text = path.read_bytes()
    try:
        document = json.loads(text)
        if "format" in document:
            manifest = read_manifest(path)
            told, there = _run_of(manifest), _current(manifest.metrics)
            with named_errors(output):
                other = _other_content(output, manifest)
        else:
            told, there = _summarized(document)
            other = ""
    except ManifestError as error:
        raise InputError(_plain(f"--summary {error}")) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"--summary {path}: is no summary of gradewire score --summary-json, and no manifest"
        ) from error
    if unlike := [label for label in lines if there.get(label) != lines[label]]:
        other = f"{unlike[0]} is {there.get(unlike[0])} there and {lines[unlike[0]]} in the output"
    if other:
        raise InputError(
            _plain(f"--summary {path}: is not that of {output}: {other}; give summaries in the order of the files")
        )
    return told


def _summarized(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What a summary says of its run, and its lines by label."""
    run, metrics = document["run"], document["metrics"]
    told = {name: run[name] for name in ("server_version", "place", "notes") if run.get(name)}
    there = {label: found["line"] for label, found in metrics.items()}
    return {"gradewire_version": document["gradewire_version"], **told}, _current(there)


def _current(lines: Mapping[str, str]) -> dict[str, str]:
    """Lines by label, with the names that metrics have now."""
    return {current(label): current(line) for label, line in lines.items()}
