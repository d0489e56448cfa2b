"""`gradewire calibrate` on a tiny encoder: fitted, stored, read by the engine, taken away."""

import asyncio
import hashlib
import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import Command, write_rows
from tests.cli.judged import judging_stub, rows_of
from tests.support.models.grader_adapter import build_tiny_grader
from tests.support.models.tiny_models import make_package

from gradewire import AsyncClient, ScoreWarning, Status
from gradewire.api import embedded_transport
from gradewire_cli import server_fits
from gradewire_cli.group import gradewire
from gradewire_models.build.install import build_model
from gradewire_models.repository.built import load_built
from gradewire_stats.calibration import fit_correctness as correctness_fit

NAME = "tiny-bert"
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("calibrate")
    package = make_package(root / "package", "bert")
    build_model(package.model, root / "models", wheels=package.wheels)
    return root


@pytest.fixture
def run(built: Path) -> Iterator[Run]:
    """Runs the command with the engine in this process, over the tiny encoder; nothing is stored in the end."""

    def call(*arguments: str | Path, quiet: bool = True) -> Result:
        places = ["--model", NAME, "--model-repository", built / "models"]
        scored = ["--disk-directory", built / "cache", "--resamples", "100", *(["--quiet"] if quiet else [])]
        given = [*arguments, *places, *([] if "--undo" in arguments or "--show" in arguments else scored)]
        return CliRunner().invoke(gradewire, ["calibrate", *map(str, given)])

    yield call
    call("--undo")
    call("--undo")  # of the fits that the first ones had replaced


def answers(count: int) -> list[dict[str, Any]]:
    """Right answers say the reference, wrong ones half of it or none; the tiny encoder finds all texts alike."""
    found = []
    for number in range(count):
        words = [f"w{number % 50}", f"w{(number * 7 + 3) % 50}"]
        said = [words, [f"w{(number + 11) % 50}", words[1]], [f"w{(number + 13) % 50}", f"w{(number + 17) % 50}"]]
        found.append(
            {
                "question": f"question {number // 2}",
                "references": [" ".join(words)],
                "prediction": " ".join(said[number % 3]),
                "label": int(number % 3 == 0),
            }
        )
    return found


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", answers(60))


def scored(built: Path, metrics: str) -> Any:
    """An answer that says half of its reference, by an engine that is started now; and the model's remarks."""

    async def ask() -> Any:
        settings = {
            "model_repository": built / "models",
            "disk_directory": built / "cache",
            "window_choice": "fp32",  # the model's remarks name another choice
        }
        async with AsyncClient(transport=embedded_transport(**settings)) as client:
            item = {"references": ["w1 w10"], "prediction": "w12 w10"}
            (answer,) = await client.score([item], metrics=metrics, model=NAME)
            (score,) = answer.scores.values()
            models = {model.name: model for model in (await client.models()).models}
            return score, models[NAME].remarks

    return asyncio.run(ask())


def test_a_fitted_threshold_changes_the_verdict(built: Path, run: Run, rows: Path) -> None:
    before, remarks = scored(built, "smile")
    assert (before.correct, before.warnings) == (True, ())
    assert not [remark for remark in remarks if "fitted" in remark]
    digest = load_built(built / "models", NAME).digest
    done = run(rows)
    assert done.exit_code == 0, done.output
    assert "fitted on 60 rows, 20 of them right" in done.stdout
    assert "60 rows are too few for a good fit" in done.stderr
    # The same fit again gains nothing.
    again = run(rows)
    assert again.exit_code == 5, again.output
    said = "the new fit is not better than the one that it would replace (accuracy +0.0000 [+0.0000, +0.0000])"
    assert f"Error: {said}, so it was not stored. Use --force to store it anyway" in again.stderr
    assert f"{said}. Without --dry-run, it would be refused" in run(rows, "--dry-run").stderr
    after, remarks = scored(built, "smile")
    assert (after.score, after.correct, after.warnings) == (before.score, False, ())
    (stored,) = load_built(built / "models", NAME).calibrations
    assert f"threshold={stored.threshold}" in after.provenance.line
    assert after.provenance.calibration == stored.described
    (remark,) = [remark for remark in remarks if "fitted" in remark]
    assert "user: fitted on 60 rows, rows.jsonl, SHA-256" in remark
    assert load_built(built / "models", NAME).digest == digest
    assert dict(stored.figures)["accuracy_after"] == 1.0
    # Whoever wants the old verdict says so; other presets have not been calibrated.
    assert scored(built, "smile?threshold=0.6")[0].correct is True
    assert "threshold=" not in scored(built, "smile:paper")[0].provenance.line
    assert scored(built, "smile?sentence_weight=0.2")[0].warnings == (ScoreWarning.UNCALIBRATED,)
    shown = run("--show")
    assert stored.summary in shown.stdout
    tried = run("--undo", "--metric", "smile", "--dry-run").stdout
    assert f"would be removed without --dry-run: {stored.summary}" in tried
    assert load_built(built / "models", NAME).calibrations == (stored,)
    assert "\nremoved: fitted for smile/1" in f"\n{run('--undo').stdout}"
    assert "threshold=" not in scored(built, "smile")[0].provenance.line


def test_a_metric_without_verdict_gets_one(built: Path, run: Run, rows: Path) -> None:
    assert scored(built, "sbert")[0].correct is None
    assert run(rows, "--metric", "sbert", "--objective", "balanced_accuracy").exit_code == 0
    score, _ = scored(built, "sbert")
    assert score.correct in {True, False}
    # Of another metric nothing is taken away.
    assert "there was no fit of yours to remove" in run("--undo", "--metric", "smile").stdout
    assert scored(built, "sbert")[0].correct is not None


def test_a_fitted_weight_is_used_and_named(built: Path, run: Run, rows: Path) -> None:
    before, _ = scored(built, "smile")
    assert run(rows, "--fit", "both", "--fit-half", "a").exit_code == 0
    (stored,) = load_built(built / "models", NAME).calibrations
    after, _ = scored(built, "smile")
    assert f"sentence_weight={stored.sentence_weight}" in after.provenance.line
    terms = after.parts
    expected = stored.sentence_weight * terms.sentence + (1 - stored.sentence_weight) * terms.lexical
    assert after.score == pytest.approx(expected, abs=1e-6)
    usual, _ = scored(built, "smile?sentence_weight=0.3")
    assert (usual.score, usual.warnings, usual.provenance.calibration) == (before.score, (), "")


def test_a_probability_is_fitted_and_served(
    built: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(correctness_fit.TREES, "max_iter", 8)  # enough to tell these answers apart, and quick
    monkeypatch.setitem(correctness_fit.TREES, "max_bins", 32)
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(built / "models"))
    fit, again, out = (tmp_path / name for name in ("fit.json", "again.json", "scores.jsonl"))
    rows = write_rows(tmp_path / "rows.jsonl", answers(240))
    before, _ = scored(built, "correctness")
    assert "gradewire calibrate FILE --metric correctness" in before.message
    done = run(rows, "--metric", "correctness", "--fit-half", "a", "--json", fit)
    assert done.exit_code == 0, done.output
    assert "there are only 138 rows" in done.stderr
    assert "new fit minus smile" in done.stdout
    (stored,) = load_built(built / "models", NAME).calibrations
    assert json.loads(stored.fit) == json.loads(fit.read_text())
    assert json.loads(stored.fit)["model_digest"] == stored.model_digest
    after, remarks = scored(built, "correctness")
    assert after.correct is False
    assert after.score < 0.1
    assert after.provenance.line.endswith(f"&model={NAME}@{stored.model_digest[:12]}")
    assert after.provenance.calibration == stored.described
    assert any("fitted for correctness/3: a probability; user: fitted on" in remark for remark in remarks)
    assert "threshold=" not in scored(built, "smile")[0].provenance.line
    # Scores with the probability have the features and SMILE's score, too.
    arguments = ["score", rows, "--metrics", "smile,correctness", "--model", NAME, "--disk-directory", built / "cache"]
    assert CliRunner().invoke(gradewire, [*map(str, arguments), "--out", str(out), "--quiet"]).exit_code == 0
    more = ["--metric", "correctness", "--fit-half", "a", "--scores", out, "--json", again, "--dry-run"]
    refitted = run(rows, *more)
    assert json.loads(again.read_text()) == json.loads(fit.read_text())
    (tables, measured), (expected, _) = (each.stdout.split("Measured on") for each in (refitted, done))
    assert tables == expected
    # The fit that would be replaced stands beside the new one.
    stored_fit = f"fit {hashlib.sha256(stored.fit.encode()).hexdigest()[:12]}"
    assert f"new fit minus {stored_fit}" in measured
    assert f"warning: {stored_fit} was made from these rows, so its values here are too good" in refitted.stderr
    assert "the new fit is not better than the one that it would replace (Brier score +0.0000" in refitted.stderr
    other = run(rows, "--metric", "correctness", "--scores", out, "--dry-run")
    assert f"{stored_fit}: {stored.described}. If your rows are among these, its values here are too good" in (
        other.stdout + other.stderr
    )
    assert "was made from these rows" not in other.stderr


def test_a_level_of_the_stored_probability_is_fitted_and_served(
    built: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(correctness_fit.TREES, "max_iter", 8)
    monkeypatch.setitem(correctness_fit.TREES, "max_bins", 32)
    own = write_rows(tmp_path / "own.jsonl", [{**row, "label": 1 - row["label"]} for row in answers(60)[:50]])
    level = ("--metric", "correctness", "--level")
    without = run(own, *level, quiet=False)
    assert "rows scored" not in without.stderr
    said = f"{NAME} lacks a fit for correctness. Fit the probability first: gradewire calibrate FILE --metric"
    assert (without.exit_code, said in " ".join(without.stderr.split())) == (2, True), without.stderr
    assert run(write_rows(tmp_path / "rows.jsonl", answers(240)), "--metric", "correctness").exit_code == 0
    (fitted,) = load_built(built / "models", NAME).calibrations
    before, _ = scored(built, "correctness")
    few = run(write_rows(tmp_path / "few.jsonl", answers(19)), *level)
    assert (few.exit_code, "19 rows are too few for a level. Label at least 20" in few.stderr) == (2, True)
    alike = run(write_rows(tmp_path / "alike.jsonl", [{**row, "label": 0} for row in answers(60)]), *level)
    assert "all rows are wrong, but a level needs right and wrong answers" in alike.stderr
    tried = run(own, *level, "--dry-run", "--json", tmp_path / "tried.json")
    assert tried.exit_code == 0, tried.output
    assert "the new fit is better than the one that it would replace (Brier score -" in tried.stderr
    assert f"{fitted.described}. If your rows are among these, its values here are too good" in " ".join(
        (tried.stdout + tried.stderr).split()
    )
    assert load_built(built / "models", NAME).calibrations == (fitted,)
    half = run(write_rows(tmp_path / "more.jsonl", answers(120)), *level, "--fit-half", "a", "--dry-run")
    assert half.exit_code == 0, half.output
    assert "rows: the other half of the questions" in half.stdout
    done = run(own, *level, "--json", tmp_path / "level.json")
    assert done.exit_code == 0, done.output
    assert "Measured on 50 rows: the same rows, each at a level fitted on other questions" in done.stdout
    assert "ECE, 5 bins" in done.stdout
    (stored,) = load_built(built / "models", NAME).calibrations
    form, base = json.loads(stored.fit), json.loads(fitted.fit)
    assert (
        form == json.loads((tmp_path / "level.json").read_text()) == json.loads((tmp_path / "tried.json").read_text())
    )
    assert {name for name in form if form[name] != base.get(name)} == {"map", "conformal", "figures", "level"} | (
        {"far"} if "far" in base else set()
    )
    # The labels are turned around: right answers are called wrong, and the probability falls where it was high.
    offset, slope = form["level"]["offset"], form["level"]["slope"]
    assert slope > 0
    log_odds = math.log(before.score / (1 - before.score))
    after, remarks = scored(built, "correctness")
    assert after.score == pytest.approx(1 / (1 + math.exp(-(offset + slope * log_odds))), abs=1e-3)
    assert after.provenance.line != before.provenance.line
    assert f"level: offset {offset:+.3f}, slope {slope:.3f}, of fit {form['level']['fit']}" in remarks[0]
    assert form["level"]["rows"]["count"] == stored.rows == 50
    assert set(dict(stored.figures)) == {
        f"{name}_{when}" for name in ("accuracy", "ece", "brier") for when in ("before", "after")
    }
    assert "slope" in run("--show").stdout


@pytest.mark.timeout(300)  # twenty learning curves, beside other tests
def test_added_labels_go_into_a_fit_and_the_report_says_what_they_bring(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(correctness_fit.TREES, "max_iter", 8)
    monkeypatch.setitem(correctness_fit.TREES, "max_bins", 32)
    rows = [{**row, "id": f"r{number}"} for number, row in enumerate(answers(240))]
    assert run(write_rows(tmp_path / "first.jsonl", rows), "--metric", "correctness").exit_code == 0
    bare = write_rows(tmp_path / "bare.jsonl", [{k: v for k, v in row.items() if k != "label"} for row in rows])
    labels = tmp_path / "bare.labels.csv"
    # The annotator calls right what the first one called wrong.
    labels.write_text("".join(["id,ann\n", *(f"{row['id']},{1 - row['label']}\n" for row in rows)]))
    added = (bare, "--add", labels, "--metric", "correctness", "--dry-run")
    level = run(*added, "--level", "--json", tmp_path / "level.json")
    assert level.exit_code == 0, level.output
    document = json.loads((tmp_path / "level.json").read_text())["learning_curve"]
    assert [(point["labels"], point["draws"]) for point in document["points"]] == [
        (size, 20) for size in (50, 100, 200, 240)
    ]
    assert document["present"].keys() == document["points"][0]["values"].keys() == {"Brier", "ECE", "accuracy"}
    assert f"{document['present']['Brier']:.3f}" in level.stdout
    assert "fitted on 240 rows, 160 of them right" in level.stdout
    assert "Gain from 240 added labels" in level.stdout
    curve = curve_of(level.stdout)
    assert list(curve) == ["present", "50", "100", "200", "240"]
    assert [curve[size][0] for size in ("50", "100", "200", "240")] == ["20"] * 4
    brier = [float(curve["present"][1]), *(float(curve[size][1]) for size in ("50", "100", "200", "240"))]
    assert brier == sorted(brier, reverse=True)
    assert brier[-1] < brier[0]
    assert "the last 40 of 240 labels changed Brier -" in level.stdout
    probability = run(*added)
    assert probability.exit_code == 0, probability.output
    curve = curve_of(probability.stdout)
    # With 40 of 60 wrong rows and more, a fit is possible.
    assert [(size, found[0]) for size, found in curve.items()] == [
        ("50", "0"),
        ("100", "0"),
        ("200", "3"),
        ("240", "3"),
    ]
    assert float(curve["240"][1]) > 0.9
    assert "Gain from" not in run(write_rows(tmp_path / "again.jsonl", rows), "--metric", "smile", "--dry-run").stdout


def curve_of(printed: str) -> dict[str, list[str]]:
    """The cells of a learning curve by the first one, without brackets."""
    lines = printed.partition("Gain from")[2].splitlines()[1:]
    cells = [re.sub(r"\[.*?\]", "", line).split() for line in lines]
    return {first: rest for first, *rest in filter(None, cells) if first.isdigit() or first == "present"}


def test_a_level_without_its_fit_costs_no_scoring_and_a_second_one_starts_from_the_same_fit(
    built: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(correctness_fit.TREES, "max_iter", 8)
    monkeypatch.setitem(correctness_fit.TREES, "max_bins", 32)
    monkeypatch.setenv("GRADEWIRE_DEFAULT_MODEL", NAME)
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(built / "models"))
    own, others = (write_rows(tmp_path / f"{count}.jsonl", answers(count)) for count in (50, 60))
    level = ("--metric", "correctness", "--level")
    for refused in (run(own, *level, quiet=False), CliRunner().invoke(gradewire, ["calibrate", str(own), *level])):
        assert (refused.exit_code, "rows scored" in refused.stderr) == (2, False)
        assert f"{NAME} lacks a fit for correctness" in refused.stderr
    assert run(write_rows(tmp_path / "rows.jsonl", answers(240)), "--metric", "correctness").exit_code == 0
    (fitted,) = load_built(built / "models", NAME).calibrations
    assert "rows scored" in run(own, *level, quiet=False).stderr
    (levelled,) = load_built(built / "models", NAME).calibrations
    first, fit_id = json.loads(levelled.fit)["level"], hashlib.sha256(fitted.fit.encode()).hexdigest()[:12]
    # Only the catalog keeps a fit that a level replaced, and this encoder is not in it.
    refused = run(others, *level, quiet=False)
    assert (refused.exit_code, "rows scored" in refused.stderr) == (2, False)
    said = " ".join(refused.stderr.split())
    assert f"{NAME} no longer has fit {fit_id}, which its level for correctness was made from" in said
    assert (
        f"Go back to the fit before the level: gradewire calibrate --undo --metric correctness --model {NAME}" in said
    )
    listed = {NAME: SimpleNamespace(digest=fitted.model_digest, calibrations=(fitted,))}
    monkeypatch.setattr(server_fits, "load_catalog", lambda: listed)
    again = run(others, *level)
    assert again.exit_code == 0, again.output
    numbers = f"(offset {first['offset']:+.3f}, slope {first['slope']:.3f}, 50 rows)"
    assert f"{numbers}. Both start from fit {fit_id}" in again.stdout
    (stored,) = load_built(built / "models", NAME).calibrations
    second = json.loads(stored.fit)["level"]
    assert (second["fit"], second["rows"]["count"]) == (fit_id, 60)
    assert second["offset"] != first["offset"]


def test_a_probability_with_a_grader_is_fitted_beside_the_one_without_and_served(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(correctness_fit.TREES, "max_iter", 8)
    monkeypatch.setitem(correctness_fit.TREES, "max_bins", 32)
    grader, models = "tiny-grader", tmp_path / "models"
    shutil.copytree(built / "models", models)
    shutil.copytree(build_tiny_grader(tmp_path / "grader") / grader, models / grader)
    file, out = write_rows(tmp_path / "rows.jsonl", answers(240)), tmp_path / "scores.jsonl"

    def command(*arguments: str | Path) -> Result:
        return CliRunner().invoke(gradewire, [*map(str, arguments), "--disk-directory", str(tmp_path / "cache")])

    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(models))
    fitting = ["--model", NAME, "--model-repository", models, "--resamples", "100", "--quiet"]
    done = command("calibrate", file, "--metric", f"correctness?grader={grader}", *fitting)
    assert done.exit_code == 0, done.output
    (stored,) = load_built(models, NAME).calibrations
    assert stored.parameters == (("grader", grader),)
    digest = load_built(models, grader).digest
    assert json.loads(stored.fit)["grader_digest"] == digest
    assert json.loads(stored.fit)["features"][-1]["name"] == "grader"
    metric = f"correctness?grader={grader}"
    scored = command("score", file, "--metrics", metric, "--model", NAME, "--out", out, "--quiet")
    assert scored.exit_code == 0, scored.output
    (result,) = json.loads(out.read_text().splitlines()[0])["scores"].values()
    assert result["status"] == "OK"
    assert f"grader={grader}@{digest[:12]}" in result["line"]
    # Scores name the grader with its digest; who asks need not.
    again = command("calibrate", file, "--metric", metric, "--scores", out, *fitting, "--dry-run")
    assert again.exit_code == 0, again.output
    without = command("calibrate", file, "--metric", "correctness?grader=none", *fitting)
    assert without.exit_code == 0, without.output
    kept = {each.parameters for each in load_built(models, NAME).calibrations}
    assert kept == {(), (("grader", grader),)}


def test_a_fit_of_votes_is_stored_beside_the_usual_one_and_served(
    built: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(correctness_fit.TREES, "max_iter", 8)
    monkeypatch.setitem(correctness_fit.TREES, "max_bins", 32)
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(built / "models"))
    # An answer that three of four annotators gave is right, and one that a single annotator gave is wrong.
    rows = [
        {
            "question": f"question {number}",
            "references": [f"w{number % 50}"] * (said := 1 if number % 2 else 3)
            + [f"w{number % 50 + 50}"] * (4 - said),
            "prediction": f"w{number % 50}",
            "label": 1 - number % 2,
        }
        for number in range(120)
    ]
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "scores.jsonl"
    done = run(file, "--metric", "correctness?fit=votes")
    assert done.exit_code == 0, done.output
    (stored,) = load_built(built / "models", NAME).calibrations
    assert stored.parameters == (("fit", "votes"),)
    names = [feature["name"] for feature in json.loads(stored.fit)["features"]]
    assert names[-2:] == ["votes", "votes_top"]
    arguments = ["score", file, "--metrics", "correctness?fit=votes", "--model", NAME, "--out", out, "--quiet"]
    scoring = CliRunner().invoke(gradewire, [*map(str, arguments), "--disk-directory", str(built / "cache")])
    assert scoring.exit_code == 0, scoring.output
    results = [next(iter(json.loads(line)["scores"].values())) for line in out.read_text().splitlines()]
    assert [result["correct"] for result in results[:6]] == [True, False] * 3
    # The fit is compared with its predecessor, which is the fit of votes, not the usual one.
    again = run(file, "--metric", "correctness?fit=votes", "--scores", out, "--dry-run")
    assert f"new fit minus fit {hashlib.sha256(stored.fit.encode()).hexdigest()[:12]}" in again.stdout
    assert server_fits.stored_fit(built / "models", NAME) is None
    # Scores of another fit also name it by digits, but lack the features of votes.
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    for line in lines:
        (result,) = line["scores"].values()
        result["features"] = {name: value for name, value in result["features"].items() if "votes" not in name}
    other = run(file, "--metric", "correctness?fit=votes", "--scores", write_rows(out, lines), "--dry-run")
    assert other.exit_code != 0
    assert "the scores have no feature votes. Score with --metrics 'correctness?features_only=true" in other.output


def test_without_its_extra_a_probability_says_what_to_install(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    done = run(write_rows(tmp_path / "rows.jsonl", answers(150)), "--metric", "correctness")
    assert done.exit_code == 2
    assert "needs sklearn.ensemble, which is not installed. Run: pip install 'gradewire[calibrate]'" in done.stderr


def test_the_same_rows_give_the_same_record_from_a_run_and_from_scores(
    built: Path, run: Run, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(built / "models"))
    out = tmp_path / "scores.jsonl"
    arguments = ["score", rows, "--model", NAME, "--disk-directory", built / "cache", "--out", out, "--quiet"]
    assert CliRunner().invoke(gradewire, list(map(str, arguments))).exit_code == 0
    records = []
    for more in ([], ["--scores", out]):
        assert run(rows, *more).exit_code == 0
        records.append(load_built(built / "models", NAME).calibrations)
        run("--undo")
    assert records[0] == records[1]
    assert records[0][0].rows == 60


def test_of_scores_of_several_metrics_that_of_metric_is_taken(
    built: Path, run: Run, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(built / "models"))
    out = tmp_path / "scores.jsonl"
    arguments = [
        "score",
        rows,
        "--metrics",
        "smile,smile:paper,sbert",
        "--model",
        NAME,
        "--disk-directory",
        built / "cache",
    ]
    assert CliRunner().invoke(gradewire, [*map(str, arguments), "--out", str(out), "--quiet"]).exit_code == 0
    for line in ("sbert", "smile:paper"):
        alone, among = tmp_path / "alone.json", tmp_path / "among.json"
        assert run(rows, "--metric", line, "--json", alone, "--dry-run").exit_code == 0
        done = run(rows, "--metric", line, "--scores", out, "--json", among, "--dry-run")
        assert done.exit_code == 0, done.stderr
        assert json.loads(alone.read_text()) == json.loads(among.read_text())
    for line, said in (("smile", "matches 2 of the scored metrics"), ("sfve", "matches none of the scored metrics")):
        done = run(rows, "--metric", line, "--scores", out)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_a_record_that_cannot_be_read_fails_its_metric_alone(built: Path, run: Run, rows: Path) -> None:
    assert run(rows).exit_code == 0
    path = built / "models" / NAME / "config.pbtxt"
    path.write_text(path.read_text().replace('\\"format\\":1', '\\"format\\":2'))
    failed, remarks = scored(built, "smile")
    assert (failed.status, failed.score) == (Status.INVALID_PARAMETER, None)
    assert "the format is 2, but this gradewire reads 1). Fit it again, or remove it:" in failed.message
    assert remarks == (failed.message.partition("model: ")[2],)
    assert scored(built, "sbert")[0].status is Status.OK
    assert scored(built, "smile?threshold=0.6&sentence_weight=0.3")[0].status is Status.OK
    assert remarks[0] in run("--show").stdout
    assert f"removed: {remarks[0]}" in run("--undo").stdout
    assert scored(built, "smile")[0].status is Status.OK


def test_a_dry_run_stores_nothing(built: Path, run: Run, rows: Path) -> None:
    before = (built / "models" / NAME / "config.pbtxt").read_text()
    done = run(rows, "--dry-run", quiet=False)
    assert "because --dry-run was given" in done.stdout
    assert "60 rows scored" in done.stderr
    assert (built / "models" / NAME / "config.pbtxt").read_text() == before


def test_scores_of_another_model_are_refused(built: Path, tmp_path: Path, command: Command) -> None:
    file = write_rows(tmp_path / "a.jsonl", rows_of(40))
    done = command("calibrate", file, "--model-repository", built / "models", "--quiet", stub=judging_stub())
    assert done.exit_code == 2
    assert "is not built in" in done.stderr or "Score with that model" in done.stderr
    assert load_built(built / "models", NAME).calibrations == ()


def labelled(*labels: float) -> list[dict[str, Any]]:
    return [
        {"question": f"q {number}", "references": ["a"], "prediction": "x" * (number + 1), "label": label}
        for number, label in enumerate(labels)
    ]


@pytest.mark.parametrize(
    ("rows", "arguments", "says"),
    [
        (labelled(1, 1, 1), [], "all answers are right, but a threshold needs right and wrong answers"),
        (labelled(0, 0), [], "no answer is right"),
        (labelled(1, 5), [], "line 2: the label 5 is outside [0, 1]"),
        ([{"references": ["a"], "prediction": "b"}], [], "looked for label"),
        ([{"references": ["a"], "prediction": "", "label": 1}], [], "no row has a score for smile: EMPTY_PREDICTION 1"),
        (labelled(0, 1), ["--metric", "correctness?fit=votes&grader=grader-mini"], "Leave grader out"),
        (labelled(0, 1), ["--metric", "correctness?fit=votes", "--level"], "the usual fit, not of votes"),
        (
            labelled(0, 1),
            ["--metric", "exact_match"],
            "cannot be calibrated. Choose one of smile, sbert, sfve, bertscore, correctness, auto",
        ),
        (labelled(0, 1), ["--metric", "smile?colour=1"], "no parameter"),
        (labelled(0, 1), ["--metric", "sbert", "--fit", "both"], "Only smile has a sentence_weight"),
        (labelled(0, 1)[:1] * 2, ["--fit-half", "a"], "all rows belong to one half"),
        (labelled(0, 1), ["--level"], "--level works only with --metric correctness"),
        (labelled(0, 1), ["--scores", "nowhere.jsonl"], "does not exist"),
        (labelled(0, 1), ["--scores", "x.jsonl", "--fit", "both"], "cannot be used with --scores"),
    ],
)
def test_what_cannot_be_fitted_is_said_and_exits_2(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], arguments: list[str], says: str
) -> None:
    done = command("calibrate", write_rows(tmp_path / "a.jsonl", rows), "--quiet", *arguments, stub=judging_stub())
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_file_is_needed_unless_nothing_is_fitted(command: Command) -> None:
    done = command("calibrate")
    assert done.exit_code == 2
    assert "name a FILE with labelled answers" in done.stderr


def test_the_figures_are_those_of_rows_held_out(command: Command, tmp_path: Path) -> None:
    rows = rows_of(400)
    done = command(
        "calibrate", write_rows(tmp_path / "a.jsonl", rows), "--dry-run", "--resamples", "100", stub=judging_stub()
    )
    assert done.exit_code == 0, done.stderr
    assert "each with a threshold fitted on other questions (5 folds)" in done.stdout
    # The stub scores by length, and calls right what has 8 letters: by hand, on the rows themselves.
    before = sum((len(row["prediction"]) >= 8) == bool(row["label"]) for row in rows) / len(rows)
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith("accuracy"))
    assert f"{before:.3f}" in line
