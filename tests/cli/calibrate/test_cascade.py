"""`gradewire calibrate --metric auto`: bands printed with how they held, the judge's table, and the stored fit."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import answer, write_rows
from tests.support.models.tiny_models import make_package

from gradewire.testing import StubTransport
from gradewire_cli.group import gradewire
from gradewire_models.build.fitted import store_calibration
from gradewire_models.build.install import build_model
from gradewire_models.catalog.calibration import StoredCalibration
from gradewire_models.repository.built import load_built
from gradewire_server.metrics.judged.auto_fit import AutoFit, read_auto_fit
from gradewire_stats.calibration.labelled_rows import half_of

NAME = "tiny-bert"
JUDGE = "j@777777777777"
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cascade")
    package = make_package(root / "package", "bert")
    build_model(package.model, root / "models", wheels=package.wheels)
    return root / "models"


@pytest.fixture
def run(models: Path) -> Run:
    def call(*arguments: str | Path) -> Result:
        places = ["--model", NAME, "--model-repository", models]
        scored = [] if "--show" in arguments or "--undo" in arguments else ["--resamples", "200", "--quiet"]
        given = ["calibrate", *arguments, *places, *scored]
        return CliRunner().invoke(gradewire, list(map(str, given)))

    return call


def scored_rows(
    models: Path, directory: Path, *, judge: float, count: int = 600, label: str = "lave", reference: str = "B"
) -> tuple[Path, Path]:
    """Labelled rows whose probabilities are true, and their scores; the judge is right with the probability `judge`."""
    digest = load_built(models, NAME, graph=False).digest[:12]
    lines = {
        "exact_match": "exact_match/1",
        "correctness?confidence=0.5": f"correctness/2?confidence=0.5&fit={'1' * 12}&model={NAME}@{digest}",
        label: f"lave:v1/3?binary=rule&caption=false&model={JUDGE}&prompt=lave/2@888888888888",
    }
    random = np.random.default_rng(1)
    rows, outputs = [], []
    for number in range(count):
        probability = float(random.beta(0.6, 0.4))
        right = bool(random.random() < probability)
        said = right if random.random() < judge else not right
        result = {"score": probability, "status": "OK", "fit": "1" * 12, "correct": probability >= 0.5}
        scores: dict[str, dict[str, Any]] = {
            "exact_match": {"score": 0.0, "status": "OK", "correct": False},
            "correctness?confidence=0.5": result,
            label: {"score": float(said), "status": "OK", "correct": said},
        }
        if number == 0:
            scores = {name: {**scores[name], "line": lines[name]} for name in scores}
        if number == 1:
            scores[label] = {"score": None, "status": "TIMEOUT", "message": "too late"}
        item = {
            "question": f"question {number}",
            "references": ["a", f"{reference} {number}"],
            "prediction": f"b {number}",
        }
        rows.append({"id": str(number), **item, "label": int(right)})
        outputs.append({"id": str(number), "index": number, "scores": scores})
    file = write_rows(directory / "rows.jsonl", rows)
    # Digests are those of a run, whose scores are put aside.
    named = ["score", file, "--metrics", "exact_match", "--out", directory / "run.jsonl", "--quiet", "--overwrite"]
    CliRunner().invoke(gradewire, list(map(str, named)), obj=StubTransport(answer))
    digests = [json.loads(line)["digest"] for line in (directory / "run.jsonl").read_text("utf-8").splitlines()]
    scored = [{**output, "digest": digest} for output, digest in zip(outputs, digests, strict=True)]
    return file, write_rows(directory / "scores.jsonl", scored)


def test_a_good_judge_is_taken_and_the_fit_is_stored(run: Run, models: Path, tmp_path: Path) -> None:
    rows, scores = scored_rows(models, tmp_path, judge=0.98)
    done = run(rows, "--metric", "auto", "--scores", scores, "--json", tmp_path / "fit.json", "--delta", "0.2")
    assert done.exit_code == 0, done.output
    assert "Bands, each valid with probability 0.8" in done.stdout
    assert "Held-out check: fitted on half a, measured on half b" in done.stdout
    assert "Held-out check: fitted on half b, measured on half a" in done.stdout
    assert "lave is called below confidence" in done.stdout
    assert "rows without a judge's verdict count only for the bands: TIMEOUT 1" in done.stderr
    (stored,) = [each for each in load_built(models, NAME, graph=False).calibrations if each.metric == "auto"]
    assert dict(stored.parameters) == {"caption": "false", "judge": "lave", "judge_model": "j"}
    assert stored.summary.startswith(
        "fitted for auto/1 (caption=false,judge=lave,judge_model=j): bands; user: fitted on"
    )
    fit = read_auto_fit(stored.fit)
    assert isinstance(fit, AutoFit), fit
    assert fit.form.judge_digest == "777777777777"
    assert fit.form.prompt_digest == "888888888888"
    assert (fit.form.correctness_fit, fit.form.delta) == ("1" * 12, 0.2)
    assert fit.form.asked_below is not None
    written = json.loads((tmp_path / "fit.json").read_text("utf-8"))
    assert written["rows"]["count"] == 600
    assert "bands" in run("--show").stdout
    assert "removed: fitted for auto/1" in run("--undo", "--metric", "auto").stdout


def test_a_judge_that_adds_nothing_is_refused_with_the_figures(run: Run, models: Path, tmp_path: Path) -> None:
    rows, scores = scored_rows(models, tmp_path, judge=0.5)
    done = run(rows, "--metric", "auto", "--scores", scores, "--fit-half", "a", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "auto never uses the verdicts of lave" in done.stdout
    assert "measured on half b" in done.stdout
    assert "measured on half a" not in done.stdout
    assert "because --dry-run was given" in done.stdout
    table = done.stdout.partition("The judge compared with exact_match")[2]
    assert [row for row in table.splitlines() if row.strip().startswith("100%")]


def test_added_labels_have_a_learning_curve_of_the_bands(run: Run, models: Path, tmp_path: Path) -> None:
    """Labels of 400 of the 600 rows are added: more labels let more rows be decided without a judge."""
    rows, scores = scored_rows(models, tmp_path, judge=0.9)
    labels, out = tmp_path / "labels.csv", tmp_path / "fit.json"
    given = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    labels.write_text("".join(["id,ann\n", *(f"{row['id']},{row['label']}\n" for row in given[200:])]))
    bare = write_rows(rows, [row if place < 200 else {**row, "label": None} for place, row in enumerate(given)])
    options = ("--metric", "auto", "--scores", scores, "--delta", "0.2", "--dry-run")
    done = run(bare, *options, "--add", labels, "--json", out)
    assert done.exit_code == 0, done.output
    assert "Gain from 400 added labels" in done.stdout
    assert "decided without a judge" in done.stdout
    curve = json.loads(out.read_text("utf-8"))["learning_curve"]
    points = curve["points"]
    assert [point["labels"] for point in points] == [0, 50, 100, 200, 400]
    decided = [point["values"]["decided without a judge"]["mean"] for point in points]
    assert all(0 <= value <= 1 for value in decided)
    assert decided[-1] > decided[0]
    assert points[-1]["values"]["wrong among these"]["mean"] < 0.1
    half = run(bare, *options, "--add", labels, "--fit-half", "a")
    assert half.exit_code == 0, half.output
    in_half = sum(half_of(row["question"]) == "a" for row in given[200:])
    assert f"Gain from {in_half} added labels" in half.stdout
    assert "Gain from" not in run(bare, *options).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--metric", "auto?judge=judge_verdict"),
            "the scores lack judge_verdict. Score with --metrics 'exact_match,correctness",
        ),
        (("--metric", "auto?risk=0.1"), "a fit is valid for every risk. Leave risk out"),
        (("--metric", "auto?sample=0.1"), "a fit is valid for every sample. Leave sample out"),
        (("--metric", "auto", "--fit", "both"), "--fit both works only for smile, because auto has no weight"),
        (("--metric", "auto", "--delta", "1"), "--delta"),
        (("--metric", "lave"), "--metric lave cannot be calibrated"),
    ],
)
def test_what_cannot_be_fitted_is_told(
    run: Run, models: Path, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    rows, scores = scored_rows(models, tmp_path, judge=0.9, count=60)
    done = run(rows, "--scores", scores, *arguments)
    assert done.exit_code != 0
    assert told in done.output


def test_exact_matches_are_the_surest_and_denials_the_least_sure(run: Run, models: Path, tmp_path: Path) -> None:
    rows, scores = scored_rows(models, tmp_path, judge=0.9)
    outputs = [json.loads(line) for line in scores.read_text("utf-8").splitlines()]
    for number, output in enumerate(outputs):
        if number % 10 == 2:
            output["scores"]["exact_match"] |= {"score": 1.0, "correct": True, "matched_reference": 1}
        if number % 10 == 3:
            output["scores"]["correctness?confidence=0.5"] |= {"score": 0.99, "warnings": ["UNCERTAIN"]}
    write_rows(scores, outputs)
    fit = tmp_path / "fit.json"
    done = run(rows, "--metric", "auto", "--scores", scores, "--dry-run", "--json", fit)
    assert done.exit_code == 0, done.output
    budgets = {each["share"]: each["accepts_from"] for each in json.loads(fit.read_text("utf-8"))["budgets"]}
    assert (budgets[0.05], budgets[0.95]) == (0.5, 2.0)
    assert 0.5 < budgets[0.15] < budgets[0.85] < 2


def test_an_exact_match_that_is_not_literal_has_the_confidence_of_correctness(
    run: Run, models: Path, tmp_path: Path
) -> None:
    """The server leaves such a match to `correctness`, and the fit does the same."""
    rows, scores = scored_rows(models, tmp_path, judge=0.9, reference="-B")
    outputs = [json.loads(line) for line in scores.read_text("utf-8").splitlines()]
    for output in outputs:
        output["scores"]["exact_match"] |= {"score": 1.0, "correct": True, "matched_reference": 0}
    write_rows(scores, outputs)
    fit = tmp_path / "fit.json"
    assert run(rows, "--metric", "auto", "--scores", scores, "--dry-run", "--json", fit).exit_code == 0
    budgets = {each["share"]: each["accepts_from"] for each in json.loads(fit.read_text("utf-8"))["budgets"]}
    assert 0.5 < budgets[0.5] < budgets[0.95] < 2


def test_of_a_half_its_own_rows_are_counted(run: Run, models: Path, tmp_path: Path) -> None:
    rows, scores = scored_rows(models, tmp_path, judge=0.9)
    counts = {}
    for half in ("a", "b"):
        fit, wanted = tmp_path / f"{half}.json", ("--metric", "auto", "--scores", scores, "--fit-half", half)
        assert run(rows, *wanted, "--dry-run", "--json", fit).exit_code == 0
        counts[half] = json.loads(fit.read_text("utf-8"))["rows"]["count"]
    assert 0 < counts["a"] < 600
    assert counts["a"] + counts["b"] == 600
    run(rows, "--metric", "auto", "--scores", scores, "--fit-half", "a")
    assert f"fitted on {counts['a']} rows, half a of the questions" in run("--show").stdout
    run("--undo", "--metric", "auto")


def test_a_half_that_correctness_was_fitted_on_is_told(run: Run, models: Path, tmp_path: Path) -> None:
    rows, scores = scored_rows(models, tmp_path, judge=0.9)
    half = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    half = [row for row in half if half_of(row["question"]) == "a"]
    said = [[row["question"], row["references"], row["prediction"], float(row["label"])] for row in half]
    digest = sha256(b"".join(json.dumps(each).encode("ascii") + b"\n" for each in said)).hexdigest()
    stored = StoredCalibration(
        "correctness", 1, load_built(models, NAME, graph=False).digest, "user", fit='{"a": 1}', rows_sha256=digest
    )
    store_calibration(models, NAME, stored)
    try:
        done = run(rows, "--metric", "auto", "--scores", scores, "--dry-run")
    finally:
        run("--undo", "--metric", "correctness")
    assert "correctness was fitted on half a of these rows" in done.stderr
    assert "Fit auto with --fit-half b" in done.stderr


def test_rows_that_correctness_was_fitted_on_are_told(run: Run, models: Path, tmp_path: Path) -> None:
    rows, scores = scored_rows(models, tmp_path, judge=0.9)
    run(rows, "--metric", "auto", "--scores", scores, "--dry-run", "--json", tmp_path / "fit.json")
    digest = json.loads((tmp_path / "fit.json").read_text("utf-8"))["rows"]["sha256"]
    stored = StoredCalibration(
        "correctness", 1, load_built(models, NAME, graph=False).digest, "user", fit='{"a": 1}', rows_sha256=digest
    )
    store_calibration(models, NAME, stored)
    try:
        done = run(rows, "--metric", "auto", "--scores", scores, "--dry-run")
    finally:
        run("--undo", "--metric", "correctness")
    assert "correctness was fitted on these very rows" in done.stderr
