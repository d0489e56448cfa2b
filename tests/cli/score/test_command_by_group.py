"""`gradewire score --by`: means, sub-scores, statuses and paired differences of groups, without a label anywhere."""

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from tests.cli.conftest import Command, answer, write_rows

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2, types_pb2


def letters_stub() -> StubTransport:
    """smile by length, with parts: its sentence part is the score, its keyword part half of it; right from .08 on."""

    def judge(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        for item in reply.items:
            for result in item.results:
                name = request.metrics[result.metric_index].WhichOneof("metric")
                if result.status == types_pb2.STATUS_OK:
                    result.correct = result.score >= 0.08
                    if name == "correctness":
                        result.correctness.smile = result.score
                        result.correctness.band_lower, result.correctness.band_upper = 0.5, 0.75
                    if name == "smile":
                        result.smile.sentence, result.smile.keyword = result.score, result.score / 2
                        result.smile.correct = result.correct
        return reply

    return StubTransport(judge)


def answers(*, questions: int = 30) -> list[dict[str, Any]]:
    """Two models' answers to the same questions of two data sets; the second model writes two letters more."""
    return [
        {
            "id": f"{model}-{question}",
            "question": f"question {question}?",
            "references": ["a"],
            "prediction": "x" * (1 + question % 10 + more),
            "model": model,
            "dataset": "nq" if question % 3 else "tq",
            "kind": "odd" if question % 2 else "even",
        }
        for question in range(questions)
        for model, more in (("small", 0), ("big", 2))
    ]


def score_of(row: Mapping[str, Any]) -> float:
    return len(row["prediction"]) / 100


class Run:
    """A run of `gradewire score` and what it leaves."""

    def __init__(self, command: Command, folder: Path, rows: list[dict[str, Any]], *options: str | Path) -> None:
        file, self.out, summary = write_rows(folder / "rows.jsonl", rows), folder / "out.jsonl", folder / "summary.json"
        self.done = command(
            *("score", file, "--out", self.out, "--summary-json", summary, *options), stub=letters_stub()
        )
        self.document = json.loads(summary.read_text()) if summary.exists() else {}

    @property
    def by(self) -> dict[str, Any]:
        assert self.done.exit_code == 0, self.done.output
        found: dict[str, Any] = self.document["by"]
        return found


@pytest.fixture
def score(command: Command, tmp_path: Path) -> Any:
    return partial(Run, command, tmp_path)


def test_groups_have_means_parts_shares_and_differences_from_the_first(score: Any) -> None:
    rows = answers()
    run = score(rows, "--metrics", "smile,exact_match", "--group-by", "model")
    assert list(run.by["model"]) == ["small", "big"], "the baseline stands first"
    for model, found in run.by["model"].items():
        own = [row for row in rows if row["model"] == model]
        smile = found["smile"]
        assert (smile["rows"], smile["scored"]) == (30, 30)
        assert smile["mean"] == pytest.approx(fmean(map(score_of, own)))
        assert smile["interval_95"][0] < smile["mean"] < smile["interval_95"][1]
        assert smile["parts"]["sentence"] == pytest.approx(smile["mean"])
        assert smile["parts"]["keyword"] == pytest.approx(smile["mean"] / 2)
        assert not {"matched_reference", "bin", "correct"} & smile["parts"].keys(), "no quantities"
        assert smile["share_right"] == pytest.approx(fmean(score_of(row) >= 0.08 for row in own))
        assert (smile["statuses"], smile["shares_without_score"]) == ({"OK": 30}, {})
    assert run.by["model"]["small"]["smile"]["difference"] is None
    apart = run.by["model"]["big"]["smile"]["difference"]
    assert (apart["baseline"], apart["shared_questions"]) == (["small"], 30)
    assert (apart["value"], apart["low"], apart["high"]) == pytest.approx((0.02, 0.02, 0.02))
    for said in ("smile by model", "exact_match by model", "minus small", "sentence", "+0.0200"):
        assert said in run.done.stderr


def test_rows_without_a_score_are_in_shares_and_in_no_mean(score: Any) -> None:
    rows = answers()
    for row in rows[:6]:
        row["prediction"] = ""
    run = score(rows, "--group-by", "model", "--fail-on", "never")
    smile = run.by["model"]["big"]["smile"]
    assert (smile["rows"], smile["scored"]) == (30, 27)
    assert smile["mean"] == pytest.approx(
        fmean(score_of(row) for row in rows if row["model"] == "big" and row["prediction"])
    )
    assert smile["shares_without_score"] == {"EMPTY_PREDICTION": pytest.approx(0.1)}
    assert smile["mean_empty_as_wrong"] == pytest.approx(smile["mean"] * 27 / 30)
    assert smile["difference"]["shared_questions"] == 27
    assert "10.0% EMPTY_PREDICTION" in run.done.stderr


def test_what_is_the_same_for_every_answer_is_no_part(score: Any) -> None:
    run = score(answers(), "--metrics", "correctness", "--group-by", "model")
    parts = run.by["model"]["big"]["correctness"]["parts"]
    assert "smile" in parts
    assert not {"band_lower", "band_upper"} & set(parts)


def test_too_few_questions_have_no_interval_in_the_document(score: Any) -> None:
    found = score(answers(questions=5), "--group-by", "model").by["model"]["small"]["smile"]
    assert found["interval_95"] is None
    assert found["mean"] is not None


def test_two_columns_together_compare_within_the_second(score: Any) -> None:
    run = score(answers(), "--group-by", "model+dataset,kind", "--baseline", "big")
    assert list(run.by) == ["model+dataset", "kind"]
    assert "by kind: no row has the kind big (--baseline), so the first group is the baseline" in run.done.stderr
    small = run.by["model+dataset"]["small"]
    assert small["nq"]["smile"]["difference"]["baseline"] == ["big", "nq"]
    assert small["tq"]["smile"]["difference"]["value"] == pytest.approx(-0.02)
    assert run.by["model+dataset"]["big"]["nq"]["smile"]["difference"] is None


def test_a_baseline_that_no_group_has_is_refused(score: Any, command: Command, tmp_path: Path) -> None:
    run = score(answers(), "--group-by", "model+dataset,kind", "--baseline", "nope", "--quiet")
    said = "Error: --baseline nope: unknown name. Choose one of small, big, even, odd\n"
    assert (run.done.exit_code, run.done.stdout) == (2, "")
    assert run.done.stderr == said
    assert not run.out.exists()
    # Standard input can be read only once, so its rows are scored first.
    with write_rows(tmp_path / "again.jsonl", answers()).open("rb") as rows:
        done = command("score", "-", "--group-by", "model", "--baseline", "nope", "--quiet", stdin=rows)
    assert (done.exit_code, len(done.stdout.splitlines())) == (2, len(answers()))
    assert done.stderr.startswith("Error: --baseline nope: unknown name. Choose one of ")


def test_models_are_compared_wherever_they_stand(score: Any) -> None:
    run = score(answers(), "--group-by", "dataset+model", "--baseline", "big")
    found = run.by["dataset+model"]
    assert [list(found), *(list(models) for models in found.values())] == [
        ["nq", "tq"],
        ["big", "small"],
        ["big", "small"],
    ]
    apart = found["nq"]["small"]["smile"]["difference"]
    assert (apart["baseline"], apart["value"]) == (["nq", "big"], pytest.approx(-0.02))
    assert "minus big" in run.done.stderr


def test_groups_that_share_no_question_say_so(score: Any) -> None:
    run = score(answers(), "--group-by", "kind")
    assert run.by["kind"]["odd"]["smile"]["difference"] is None
    said = "by kind: no paired differences, because no group shares a scored question with its baseline\n"
    assert said in run.done.stderr
    assert "minus" not in run.done.stderr


def test_a_resumed_run_tells_the_same_as_a_straight_one(score: Any) -> None:
    straight = score(answers(), "--group-by", "model,dataset")
    lines = straight.out.read_text().splitlines(keepends=True)
    straight.out.write_text("".join(lines[:25]))
    resumed = score(answers(), "--group-by", "model,dataset", "--resume")
    assert resumed.document["run"]["scored_rows"] == 35
    assert resumed.by == straight.by
    again = score(answers(), "--group-by", "model,dataset", "--resume")
    assert (again.document["run"]["scored_rows"], again.by) == (0, straight.by)


def test_rows_without_a_value_are_in_no_line_and_are_counted(score: Any) -> None:
    rows = answers()
    rows[0]["model"] = ""
    rows[3].pop("model")
    run = score(rows, "--group-by", "model")
    assert {name: found["smile"]["rows"] for name, found in run.by["model"].items()} == {"small": 29, "big": 29}
    assert "by model: 2 rows have no model and are in no group" in run.done.stderr


def test_files_are_groups_too(command: Command, tmp_path: Path) -> None:
    rows = answers()
    for model in ("small", "big"):
        own = [{name: value for name, value in row.items() if name != "model"} for row in rows if row["model"] == model]
        write_rows(tmp_path / f"{model}.jsonl", own)
    files = [tmp_path / "small.jsonl", tmp_path / "big.jsonl"]
    summary = tmp_path / "summary.json"
    done = command("score", *files, "--group-by", "file", "--summary-json", summary, stub=letters_stub())
    assert done.exit_code == 0, done.output
    found = json.loads(summary.read_text())["by"]["file"]
    assert list(found) == list(map(str, files))
    assert found[str(files[1])]["smile"]["difference"]["value"] == pytest.approx(0.02)


def test_a_row_that_failed_is_no_empty_answer(score: Any) -> None:
    rows = answers()
    rows[1]["prediction"] = ""
    rows[3].pop("references")
    smile = score(rows, "--group-by", "model", "--fail-on", "never").by["model"]["big"]["smile"]
    assert (smile["rows"], smile["scored"]) == (30, 28)
    assert smile["mean_empty_as_wrong"] == pytest.approx(smile["mean"] * 28 / 29), "what failed counts nowhere"


def test_the_same_words_in_two_data_sets_are_two_questions(score: Any) -> None:
    rows = answers(questions=40)
    for row in rows:
        row["dataset"] = {"small": "nq", "big": "tq"}[row["model"]]
    run = score(rows, "--group-by", "model")
    assert run.by["model"]["big"]["smile"]["difference"] is None


def test_questions_are_drawn_within_their_data_set(score: Any) -> None:
    """Answers of a data set are alike here: draws within it have the same mean, draws over all rows do not."""
    rows = answers()
    for row in rows:
        row["prediction"] = "x" * (4 if row["dataset"] == "nq" else 40)
    smile = score(rows, "--group-by", "model").by["model"]["small"]["smile"]
    assert smile["interval_95"] == pytest.approx([smile["mean"]] * 2)


def test_a_single_file_is_a_group_under_its_name(score: Any) -> None:
    run = score(answers(), "--group-by", "file")
    (group,) = run.by["file"].items()
    assert group[0].endswith("rows.jsonl")
    assert group[1]["smile"]["rows"] == 60


def test_notes_say_how_many_draws_there_are_and_why_a_group_has_no_interval(score: Any) -> None:
    rows = answers()
    for row in rows[10:]:
        row["kind"] = "many"
    said = " ".join(score(rows, "--group-by", "kind").done.stderr.split())
    assert "by kind: intervals: draws of whole questions, 2000 for mean" in said
    assert "by kind: no interval and no p value, because there are fewer than 10 questions" in said
    assert "id=COLUMN to tell questions apart): even; odd" in said


def test_a_group_without_scores_is_not_told_to_have_other_questions(score: Any) -> None:
    rows = [{**row, "prediction": ""} if row["model"] == "big" else row for row in answers()]
    run = score(rows, "--group-by", "model", "--fail-on", "never")
    assert "no group shares a scored question with its baseline" in run.done.stderr
    assert "answered" not in run.done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--group-by", "modle"), "no column for --group-by modle (looked for modle)"),
        (("--group-by", "model", "--map", "model=system"), "no column 'system'"),
        (("--group-by", ","), "write COLUMN, COLUMN,COLUMN or COLUMN+COLUMN"),
        (("--group-by", "model+model"), "names a column twice"),
        (("--baseline", "big"), "--baseline needs --group-by"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(score: Any, options: tuple[str, ...], said: str) -> None:
    run = score(answers(), *options)
    assert run.done.exit_code == 2
    assert said in run.done.stderr
    assert not run.out.exists()


def test_many_groups_are_cut_in_the_terminal_and_whole_in_the_document(score: Any) -> None:
    run = score(answers(questions=80), "--group-by", "id")
    assert len(run.by["id"]) == 160
    assert "by id: only 60 of 160 groups are shown. Use --summary-json to get all" in run.done.stderr
    shown = [line.split()[0] for line in run.done.stderr.splitlines() if line.startswith((" small-", " big-"))]
    assert len(set(shown)) == 60


def test_without_numpy_it_says_what_to_install_before_it_scores(score: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    for name in [name for name in sys.modules if name.startswith("gradewire_stats")]:
        monkeypatch.delitem(sys.modules, name)
    run = score(answers(), "--group-by", "model")
    assert run.done.exit_code == 2
    assert "pip install 'gradewire[agree]'" in run.done.stderr
    assert not run.out.exists()


def test_more_groups_than_can_be_compared_have_means_alone(score: Any) -> None:
    run = score(answers(questions=501), "--group-by", "id,model")
    assert len(run.by["id"]) == 1002
    assert "interval_95" not in run.by["id"]["small-7"]["smile"]
    assert run.by["id"]["small-7"]["smile"]["mean"] == pytest.approx(0.08)
    assert run.by["model"]["big"]["smile"]["difference"]["shared_questions"] == 501
    assert "by id: there are more than 1000 groups, so intervals and differences are missing" in run.done.stderr


def test_a_column_without_a_value_has_no_table(score: Any) -> None:
    run = score([{**row, "kind": ""} for row in answers()], "--group-by", "kind")
    assert run.by == {"kind": {}}
    assert "smile by kind" not in run.done.stderr
    assert "by kind: 60 rows have no kind and are in no group" in run.done.stderr


def test_models_need_no_flag_and_the_best_comes_first(command: Command, tmp_path: Path) -> None:
    file, summary = write_rows(tmp_path / "a.jsonl", answers()), tmp_path / "summary.json"
    arguments = ("score", file, "--metrics", "smile,exact_match", "--summary-json", summary)
    done = command(*arguments, stub=letters_stub())
    table = done.stderr.partition("smile by model")[2].partition("exact_match by model")[0].splitlines()
    named = [line.split() for line in table if line.strip().startswith(("big", "small"))]
    assert [line[:4] for line in named] == [["big", "30", "30", "0.075"], ["small", "30", "30", "0.055"]]
    means = json.loads(summary.read_text())["by"]["model"]
    assert list(means) == ["big", "small"]
    low, high = means["big"]["smile"]["interval_95"]
    assert named[0][4:6] == [f"[{low:.3f},".replace("0.", "."), f"{high:.3f}]".replace("0.", ".")]
    assert low < means["big"]["smile"]["mean"] < high
    assert "difference" not in means["big"]["smile"]


@pytest.mark.parametrize("models", [1, 21])
def test_one_model_and_more_than_20_have_no_table(command: Command, tmp_path: Path, models: int) -> None:
    found = [{**row, "model": f"model {place % models}"} for place, row in enumerate(answers())]
    done = command("score", write_rows(tmp_path / "a.jsonl", found), "--metrics", "smile", stub=letters_stub())
    assert "by model" not in done.stderr


def test_rows_without_a_model_are_counted_beside_the_table(command: Command, tmp_path: Path) -> None:
    found = [*answers(), {"references": ["a"], "prediction": "xx"}]
    done = command("score", write_rows(tmp_path / "a.jsonl", found), "--metrics", "smile", stub=letters_stub())
    assert "by model: 1 rows have no model and are in no group" in done.stderr


def test_another_grouping_takes_the_place_of_models(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", answers())
    done = command("score", file, "--metrics", "smile", "--group-by", "dataset", stub=letters_stub())
    assert "smile by dataset" in done.stderr
    assert "by model" not in done.stderr
