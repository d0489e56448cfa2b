"""Compare a variant's `correctness` with its base's, both with the base's fit.

`python -m benchmarks.agreement.variant_fits --data .data/evouna_dev.jsonl --model all-MiniLM-L6-v2-fp16-cuda --grader
grader-mini-fp16-cuda` scores the rows in half b, which grader-mini has not read, with both models. It prints a Markdown
table, and the table `compared_fits` for the catalog. Vectors of a GPU variant are computed on this machine's CPU with
the variant's own graph: for fp16, weights are rounded to float16, and so is the result of every operator
(`half_precision`). A GPU sums products in another order, so its last bits differ from these. Features are stored in
--results, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
from benchmarks.agreement.correctness import RESULTS, written
from benchmarks.agreement.correctness_rows import COLUMNS, WITH_GRADER, ScoredRows
from benchmarks.agreement.half_precision import rounding_every_result
from benchmarks.common.rows import DEFAULT_DATA, Row, read_lines, resume_or_overwrite, sample_rows
from benchmarks.common.servers import run_gradewire

from gradewire_models.catalog.loading import find_model
from gradewire_models.repository.built import BuiltModel, default_repository, load_built
from gradewire_models.repository.config import (
    CONFIG_FILE,
    FIRST_VERSION,
    GRAPH_FILE,
    TOKENIZER_FILE,
    files_in,
    make_config,
    read_config,
    write_config,
)
from gradewire_models.repository.digest import record_file
from gradewire_models.repository.serving import Serving, write_warmup
from gradewire_proto.wire_rules import NO_GRADER
from gradewire_server.metrics.correctness.features import features_of
from gradewire_server.metrics.correctness.fit import VERDICT, CorrectnessFit, read_fit
from gradewire_server.metrics.correctness.metric import VERSION
from gradewire_stats.agreement.statistics import auc
from gradewire_stats.bootstrap import draws, interval, numbered
from gradewire_stats.calibration.labelled_rows import half_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_MODEL: Final = "all-MiniLM-L6-v2-fp16-cuda"
SEED: Final = 20261129
RESAMPLES: Final = 1000


def main() -> None:
    """Score the rows with both models, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="labelled rows; default: %(default)s")
    parser.add_argument(
        "--model", default=DEFAULT_MODEL, help="the encoder's variant, built like its base; default: %(default)s"
    )
    parser.add_argument("--grader", default="", help="a grader's variant; default: only the fit without a grader")
    parser.add_argument("--rows", type=int, default=2000, help="use so many rows; default: %(default)s")
    parser.add_argument("--results", type=Path, default=RESULTS, help="directory of the features")
    parser.add_argument("--model-repository", type=Path, default=default_repository())
    options = parser.parse_args()
    rows = drawn_rows(options.data, options.rows)
    encoder, base = (find_model(name) for name in (options.model, find_model(options.model).base))
    graders = ("", find_model(options.grader).base) if options.grader else ("",)
    repository = options.results / "on-cpu"
    options.results.mkdir(parents=True, exist_ok=True)
    data = written(options.results / f"variant-fits-{options.rows}.jsonl", rows)
    variants = [
        on_cpu(load_built(options.model_repository, name), repository)
        for name in (encoder.name, options.grader)
        if name
    ]
    model, grader = (*variants, "")[:2]
    before = features(data, base.name, graders[-1], options.model_repository)
    after = features(data, model, grader, repository)
    found = [Comparison.of(before, after, shipped_fit(base.name, name), name) for name in graders]
    print(table(encoder.name, found))
    print()
    print(catalog_entry(found[-1], before, options))


def drawn_rows(data: Path, count: int) -> list[Row]:
    """Return at most `count` rows of half b, drawn with a fixed seed."""
    rows = [row for row in read_lines(data) if half_of(row["question"]) == "b"]
    return sample_rows(rows, count, SEED) if len(rows) > count else rows


def on_cpu(built: BuiltModel, repository: Path) -> str:
    """Write a copy of a GPU model that the server runs on CPUs in the model's precision; return the copy's name.

    The copy has no fits.
    """
    precision = built.numeric_class.partition("-")[0]
    name = f"{built.name}-on-cpu"
    target = repository / name
    shutil.rmtree(target, ignore_errors=True)
    (target / FIRST_VERSION).mkdir(parents=True)
    graph = target / FIRST_VERSION / GRAPH_FILE
    graph.write_bytes(rounding_every_result(onnx.load(built.onnx_path)).SerializeToString(deterministic=True))
    (target / TOKENIZER_FILE).symlink_to(built.tokenizer_path.resolve())
    write_warmup(target, built.max_tokens)
    files = replace(files_in(read_config(built.directory / CONFIG_FILE)[1]), onnx=record_file(graph))
    metadata = replace(built, name=name, base="", numeric_class=f"{precision}-cpu", calibrations=())
    write_config(target / CONFIG_FILE, make_config(metadata, files, Serving()))
    return name


def features(data: Path, model: str, grader: str, repository: Path) -> ScoredRows:
    """Return the rows with features from a built encoder and grader, after scoring missing rows."""
    out = data.with_name(f"{data.stem}-{model}{'-' * bool(grader)}{grader}.jsonl")
    metric = f"correctness?features_only=true&grader={grader or NO_GRADER}"
    run_gradewire(
        *("score", data, "--embedded", "--model-repository", repository, "--metrics", metric, "--model", model),
        *("--out", out, "--fail-on", "never", "--quiet", resume_or_overwrite(out)),
    )
    return ScoredRows.read(data, out, "evouna", columns=WITH_GRADER if grader else COLUMNS)


def shipped_fit(model: str, grader: str) -> CorrectnessFit:
    """Return a model's fit in the catalog, with a grader or without ("")."""
    parameters = {"grader": grader} if grader else {}
    fits = [each for each in find_model(model).calibrations if each.metric == "correctness"]
    (text,) = (each.fit for each in fits if dict(each.parameters) == parameters)
    return read_fit(text, features_of(grader), version=VERSION)


@dataclass(frozen=True)
class Comparison:
    """A fit's probabilities with the features of a base and of its variant, both float64[rows].

    `questions` is int[rows], each row's question number, from 0 without gaps.
    """

    grader: str
    right: NDArray[np.bool_]
    questions: NDArray[np.intp]
    base: NDArray[np.float64]
    variant: NDArray[np.float64]

    @classmethod
    def of(cls, before: ScoredRows, after: ScoredRows, fit: CorrectnessFit, grader: str) -> Comparison:
        """Compare the same rows' features.

        Raises:
            ValueError: The rows differ.
        """
        if before.rows != after.rows:
            raise ValueError("the rows of the base and of the variant differ")
        found = (probabilities(fit, rows) for rows in (before, after))
        return cls(grader, before.labels > 0, numbered(before.keys), *found)

    @property
    def auc(self) -> float:
        """The variant's AUC."""
        return auc(self.variant, self.right)

    @property
    def auc_change(self) -> float:
        """The variant's AUC minus the base's."""
        return self.auc - auc(self.base, self.right)

    def auc_change_interval(self) -> tuple[float, float] | None:
        """Return a 95 % interval of `auc_change` by bootstrap over questions, or None with too few questions."""
        strata = np.zeros(int(self.questions.max(initial=-1)) + 1, np.intp)
        changes = [
            self._auc_change_of(np.repeat(np.arange(len(self.right)), weights[self.questions].astype(np.intp)))
            for chunk in draws(strata, resamples=RESAMPLES, seed=SEED)
            for weights in chunk
        ]
        return interval(np.array(changes))

    def _auc_change_of(self, rows: NDArray[np.intp]) -> float:
        right = self.right[rows]
        return auc(self.variant[rows], right) - auc(self.base[rows], right)

    @property
    def changes(self) -> NDArray[np.float64]:
        """Absolute changes of the scores."""
        return np.abs(self.variant - self.base)

    @property
    def other_verdicts(self) -> int:
        """The number of rows with another verdict."""
        return int(((self.base >= VERDICT) != (self.variant >= VERDICT)).sum())


def probabilities(fit: CorrectnessFit, rows: ScoredRows) -> NDArray[np.float64]:
    """Return P(right) of every row, float64[rows]."""
    return np.array(
        [fit(values, fit.position_of(shape)) for values, shape in zip(rows.values, rows.shapes, strict=True)]
    )


def table(model: str, found: list[Comparison]) -> str:
    """Return a Markdown table with a line for each fit."""
    columns = (
        "AUC of the base",
        "of the variant",
        "change [95 %]",
        "largest change of a score",
        "mean",
        "other verdicts",
    )
    head = f"| variant | fit | rows | {' | '.join(columns)} |\n|---|---|---:|---:|---:|---:|---:|---:|---:|"
    return "\n".join((head, *(_line(model, each) for each in found)))


def _line(model: str, found: Comparison) -> str:
    bounds = found.auc_change_interval()
    around = "" if bounds is None else f" [{bounds[0]:+.6f}, {bounds[1]:+.6f}]"
    values = (
        f"`{model}`",
        f"with {found.grader}" if found.grader else "without a grader",
        f"{len(found.right)}",
        f"{auc(found.base, found.right):.6f}",
        f"{found.auc:.6f}",
        f"{found.auc_change:+.6f}{around}",
        f"{found.changes.max():.5f}",
        f"{found.changes.mean():.6f}",
        f"{found.other_verdicts}",
    )
    return f"| {' | '.join(values)} |"


def catalog_entry(found: Comparison, rows: ScoredRows, options: argparse.Namespace) -> str:
    """Return the variant's table for the catalog, in TOML."""
    graders = f'{{ {found.grader} = "{options.grader}" }}' if found.grader else "{}"
    precision, *of_grader = (
        find_model(name).numeric_class.partition("-")[0] for name in (options.model, options.grader) if name
    )
    others = "".join(f", the grader in {each}" for each in of_grader if each != precision)
    return "\n".join(
        [
            "[variant.compared_fits]",
            f"graders = {graders}",
            f"rows = {len(rows.rows)}",
            f'rows_sha256 = "{sha256_of(rows.rows)}"',
            f'compared_on = "half b of {options.data.name}"',
            f"auc = {found.auc:.6f}",
            f"auc_change = {found.auc_change:.6f}",
            f"max_change = {np.ceil(found.changes.max() * 1e5) / 1e5:.5f}",
            f'computed = "in {precision}{others}{"," * bool(others)} on a CPU"',
            f'date = "{datetime.now(UTC).date().isoformat()}"',
        ]
    )


def sha256_of(rows: list[Row]) -> str:
    """Return the SHA-256 of the rows' ids, questions, references, predictions and labels, 64 hex characters."""
    digest = hashlib.sha256()
    for row in rows:
        said = [row[name] for name in ("id", "question", "references", "prediction", "label")]
        digest.update(json.dumps(said, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()


if __name__ == "__main__":
    main()
