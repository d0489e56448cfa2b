"""Earlier outputs of `gradewire score` with their manifests, and the differences between two runs."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from gradewire_cli.compare.sides import Collected, Side
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.manifest import InputDigest, ManifestError, RunManifest, read_manifest
from gradewire_cli.results.manifest_entries import file_digest, manifest_path
from gradewire_cli.results.resumable_output import line_parts, lines_of, output_files, read_results
from gradewire_cli.rows.cells import CellReading
from gradewire_cli.rows.columns import Layouts, RowOptions
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.formats import Record, is_output, with_paths
from gradewire_cli.rows.row import Row, read_rows
from gradewire_cli.scoring.pair_engine import Answer, Result, results_of
from gradewire_proto.wire_rules import current

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.rows.input_file import InputFile


INPUTS: Final = "inputs"
"""Key of the input files in `SideManifest.run`."""
PARAMETERS: Final = "parameters"
"""Key of the options in `SideManifest.run`."""
_MOST_INPUTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SideManifest:
    """A description of one side's run.

    Attributes:
        files: The side's files. Empty if one file contains the rows of all sides.
        words_per_answer: Mean number of words in non-empty answers, or None if all answers are empty.
        lines: Metric identifiers by label.
        statuses: Number of results by metric label and status.
        warnings: Number of results by metric label and warning.
    """

    files: Sequence[str]
    rows: int
    words_per_answer: float | None
    lines: Mapping[str, str]
    statuses: Mapping[str, Mapping[str, int]]
    warnings: Mapping[str, Mapping[str, int]]
    run: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield all properties as pairs of a name and a value."""
        if self.files:
            yield "file", ", ".join(self.files)
        yield "rows", str(self.rows)
        if self.words_per_answer is not None:
            yield "words per answer", f"{self.words_per_answer:.1f}"
        for label, line in self.lines.items():
            yield from ((f"{label}: {name}", value) for name, value in line_parts(line).items() if value)
        for kind in (self.statuses, self.warnings):
            for label, counts in kind.items():
                yield from ((f"{label}: {name}", str(count)) for name, count in sorted(counts.items()))
        for name, value in self.run.items():
            if name == PARAMETERS:
                yield from ((f"parameter {option}", told) for option, told in value.items())
            elif name != INPUTS:
                yield name.replace("_", " "), "; ".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True, slots=True)
class ManifestDifference:
    """A property that differs between two sides. A side without the property has the value ""."""

    fact: str
    baseline: str
    candidate: str


def manifest_of(side: Side, collected: Collected, run: Mapping[str, Any]) -> SideManifest:
    """Return a side's manifest. `run` contains the properties of the scoring run."""
    answers: list[Answer] = [collected.answer(row) for row in side.rows]
    statuses: dict[str, Counter[str]] = {}
    warnings: dict[str, Counter[str]] = {}
    for answer in answers:
        for label, result in answer.results.items():
            statuses.setdefault(label, Counter())[result.status] += 1
            warnings.setdefault(label, Counter()).update(result.warnings)
    words = [len(text.split()) for answer in answers if (text := answer.text("prediction"))]
    return SideManifest(
        files=side.files,
        rows=len(side.rows),
        words_per_answer=fmean(words) if words else None,
        lines=collected.lines_of(side.rows[0]),
        statuses=statuses,
        warnings=warnings,
        run=run,
    )


def differences(baseline: SideManifest, candidate: SideManifest) -> list[ManifestDifference]:
    """Return the properties that differ between two manifests, with inputs last."""
    before, after = dict(baseline.facts()), dict(candidate.facts())
    found = [
        ManifestDifference(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
    inputs = [list(side.run.get(INPUTS, ())) for side in (baseline, candidate)]
    own = [_listed([each for each in mine if each not in others]) for mine, others in (inputs, inputs[::-1])]
    return [*found, ManifestDifference(INPUTS, *own)] if any(own) else found


def _listed(inputs: Sequence[str]) -> str:
    more = len(inputs) - _MOST_INPUTS
    return ", ".join(inputs[:_MOST_INPUTS]) + (f" and {more} more" if more > 0 else "")


def differing_metrics(baseline: SideManifest, candidate: SideManifest) -> list[str]:
    """Return the labels of metrics with different definitions on the two sides, so that scores are not comparable."""
    shared = [label for label in baseline.lines if label in candidate.lines]
    return [label for label in shared if baseline.lines[label] != candidate.lines[label]]


_LEFT_OUT: Final = "the comparison omits this run's properties"
_DIGEST_CHARACTERS: Final = 12
_MOST_CHARACTERS: Final = 150


def runs_of_outputs(
    lines_by_output: Mapping[str, Mapping[str, str]], rows_by_output: Mapping[str, int]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return each output's run properties from its manifest, and notes on manifests that cannot be used."""
    runs: dict[str, dict[str, Any]] = {}
    missing, notes = [], []
    for output, lines in lines_by_output.items():
        runs[output] = {}
        path = manifest_path(Path(output))
        if not path.exists():
            missing.append(f"{output} has no manifest ({path.name}), perhaps because its run did not finish")
            continue
        try:
            manifest = read_manifest(path)
            other = _other_content(output, manifest)
        except (ManifestError, OSError) as error:
            notes.append(f"{error}; {_LEFT_OUT}")
            continue
        if _with_current_names(manifest.metrics) != dict(lines):
            notes.append(f"{path} does not belong to {output}, because the metrics differ; {_LEFT_OUT}")
        elif (rows := rows_by_output.get(output, manifest.counts.rows)) != manifest.counts.rows:
            notes.append(f"{path} is for {manifest.counts.rows} rows, but {output} has {rows}; {_LEFT_OUT}")
        elif other:
            notes.append(f"{path} does not belong to {output}: {other}; {_LEFT_OUT}")
        else:
            runs[output] = _run_of(manifest)
    # Report missing manifests only if other outputs have a manifest.
    notes += [f"{lack}; {_LEFT_OUT}" for lack in missing] if any(runs.values()) else []
    return runs, [_plain(note) for note in notes]


def _other_content(output: str, manifest: RunManifest) -> str:
    """Return the reason why the manifest cannot belong to the output's present content, or ""."""
    written = manifest.output
    if written is None or not written.sha256 or not Path(output).is_file():
        return ""
    there = file_digest(output)
    if not there.sha256 or there.sha256 == written.sha256:
        return ""
    return (
        f"the manifest was written for {_input_text(written)}, but {output} has SHA-256 "
        f"{there.sha256[:_DIGEST_CHARACTERS]}, so {output} is a different output or has changed"
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
        INPUTS: [_input_text(each) for each in manifest.inputs],
        "notes": list(manifest.notes),
    }
    return {name: value for name, value in told.items() if value}


def _input_text(each: InputDigest) -> str:
    return _cut(each.path) + (f" (SHA-256 {each.sha256[:_DIGEST_CHARACTERS]})" if each.sha256 else "")


def _short(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    try:
        return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
    except RecursionError:
        # A value that json.loads accepted may be too deep for json.dumps.
        return "nested too deeply to show"


def _cut(text: str) -> str:
    """Cut a long text and append its digest, so that different texts still look different."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_MOST_CHARACTERS]}… (SHA-256 of the full text {digest[:_DIGEST_CHARACTERS]})"


def _plain(text: str) -> str:
    """Replace control characters and lone surrogates, which foreign manifests may contain."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def read_summary(path: Path, output: str, lines: Mapping[str, str]) -> dict[str, Any]:
    """Return the run properties of `output` from a summary of gradewire score or from a manifest.

    Raises:
        InputError: The file is neither a summary nor a manifest, or belongs to a different output.
    """
    with named_errors(path):
        text = path.read_bytes()
    try:
        document = json.loads(text)
        if "format" in document:
            manifest = read_manifest(path)
            told, there = _run_of(manifest), _with_current_names(manifest.metrics)
            with named_errors(output):
                other = _other_content(output, manifest)
        else:
            told, there = _summarized(document)
            other = ""
    except ManifestError as error:
        raise InputError(_plain(f"--summary {error}")) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"--summary {path}: the file is neither a summary (gradewire score --summary-json) nor a manifest"
        ) from error
    if unlike := [label for label in lines if there.get(label) != lines[label]]:
        other = f"{unlike[0]} is {there.get(unlike[0])} in the summary, but {lines[unlike[0]]} in the output"
    if other:
        raise InputError(
            _plain(
                f"--summary {path} does not belong to {output}: {other}. Name the summaries in the order of the files"
            )
        )
    return told


def _summarized(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    run, metrics = document["run"], document["metrics"]
    told = {name: run[name] for name in ("server_version", "place", "notes") if run.get(name)}
    there = {label: found["line"] for label, found in metrics.items()}
    return {"gradewire_version": document["gradewire_version"], **told}, _with_current_names(there)


def _with_current_names(lines: Mapping[str, str]) -> dict[str, str]:
    return {current(label): current(line) for label, line in lines.items()}


_PEEK_BYTES = 1 << 22


def are_outputs(paths: Sequence[str]) -> bool:
    """Return True if the files' first lines look like outputs of `gradewire score`.

    Raises:
        InputError: Some files are outputs, and others are not.
    """
    outputs = [path for path in paths if path != STDIN and _is_output(path)]
    if 0 < len(outputs) < len(paths):
        output, other = outputs[0], next(path for path in paths if path not in outputs)
        raise InputError(
            f"{output} is an output of gradewire score, but {other} is not. Score {other} with the same --metrics "
            "first, or name a file of answers in place of each output"
        )
    return bool(outputs)


def _is_output(path: str) -> bool:
    if not (files := output_files(Path(path))):
        raise InputError(f"{path} is a folder, but contains no parts of gradewire bulk. Name a file")
    with named_errors(path), files[0].open("rb") as stream:
        first = stream.readline(_PEEK_BYTES)
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return is_output(row)


def read_outputs(source: InputFile) -> Collected:
    """Return the rows and results in outputs, with the columns that --keep-columns kept.

    Raises:
        InputError: A line is not an output row, a score is not a number, or the file lacks a column that an option
            names.
    """
    rows: list[Row] = []
    found = Collected(rows)
    for path in source.paths:
        labels: list[str] = []
        for row, output in _rows_and_outputs(path, source.options):
            results = _results(f"{path} {row.position}", output)
            labels = labels or list(results)
            if list(results) != labels:
                raise InputError(
                    f"{path}: the metrics at {row.position} differ from the first row's. Score the rows again"
                )
            _check_same_metrics(
                f"{path} {row.position}", found.lines.setdefault(path, lines_of(output)), lines_of(output)
            )
            found.results[len(rows)] = results
            rows.append(replace(row, index=len(rows), position=f"{path} {row.position}", file=path))
        if not labels:
            raise InputError(f"{path} has no rows{' that match --where' if source.options.where else ''}")
        if unknown := [label for label in labels if label not in found.lines[path]]:
            found.notes.append(
                f"{path}: the first row, which defines the metrics, is missing, so the scores of "
                f"{', '.join(unknown)} may not be comparable with those in other files"
            )
    if not any(row.kept_columns for row in rows):
        found.notes.append("the outputs lack questions and answers. Keep them with gradewire score --keep-columns all")
    return found


def _rows_and_outputs(path: str, options: RowOptions) -> Iterator[tuple[Row, dict[str, Any]]]:
    options = replace(options, file=path, needed=())
    layouts = Layouts(options)
    results = itertools.chain.from_iterable(map(read_results, output_files(Path(path))))
    for number, (_, output) in enumerate(results, 1):
        columns = output.get("input", {})
        records = list(with_paths([Record(output["index"], f"line {number}", columns)], options.named_columns))
        if number == 1:
            _check_columns(path, records[0].fields or {}, options)
        for row in read_rows(records, layouts, CellReading()):
            identifier = str(output.get("id", row.id))
            kept = replace(
                row,
                id=identifier,
                # If the input had no id, `score` wrote the row's index as the id.
                has_id=identifier != str(output["index"]),
                digest=str(output["digest"]),
                picture_digest=str(output.get("picture_digest", "")),
                kept_columns=columns,
            )
            yield kept, output


def _check_columns(path: str, columns: Mapping[str, Any], options: RowOptions) -> None:
    mapped = [("--map", column) for column in options.columns.values()]
    mapped += [("--where", column) for column in options.where]
    for option, column in mapped:
        if column not in columns:
            raise InputError(
                f"{option} {column}: {path} lacks this column. Score the rows again with --keep-columns "
                f"{column} to keep it"
            )


def _check_same_metrics(place: str, first: Mapping[str, str], own: Mapping[str, str]) -> None:
    if other := [label for label, line in own.items() if first.get(label) != line]:
        raise InputError(
            f"{place} was scored by {own[other[0]]}, but the first row by {first.get(other[0], 'an unknown metric')}. "
            "Split the file, or score all rows again"
        )


def _results(place: str, output: Mapping[str, Any]) -> dict[str, Result]:
    try:
        return results_of(output)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place} is not a result of gradewire score ({error}). Score the file again") from error
