"""What `agree` says of the draws behind its intervals, of those that are missing, and of means over fewer cells."""

import json
import math
from pathlib import Path
from typing import Any

from tests.cli.conftest import Command, length_score, write_rows
from tests.cli.judged import CUT_LETTERS, judging_stub, rows_of

from gradewire.testing import StubTransport, echo_scores
from gradewire_cli.results.interval_notes import NamedEstimate, draws_line, undefined_draws, without_interval
from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_stats.bootstrap import Estimate

NAN = math.nan
_KEPT = {f"question {number}" for number in range(5)}


def outputs(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> tuple[str, str, Any]:
    """Terminal, Markdown and JSON."""
    file = write_rows(tmp_path / "rows.jsonl", rows)
    page, figures = tmp_path / "tables.md", tmp_path / "figures.json"
    options = ("--metrics", "rouge_l,sbert", "--json", str(figures), "--markdown", str(page), *options)
    done = command("agree", file, *options, stub=judging_stub())
    assert done.exit_code == 0, done.output
    return done.stdout, page.read_text(), json.loads(figures.read_text())


def test_every_output_says_how_many_draws_made_which_interval(command: Command, tmp_path: Path) -> None:
    options = ("--resamples", "1100", "--statistics", "pearson,kendall,auc,accuracy", "--compare-all")
    screen, page, document = outputs(command, tmp_path, rows_of(120), *options)
    said = "intervals: draws of whole questions, 1100 for Pearson, accuracy; 1000 for tau-b, AUC"
    assert screen.count(said) == page.count(said) == 1
    draws = document["bootstrap"]["draws"]
    assert (draws["pearson"], draws["auc"], draws["spearman"]) == ([1100], [1000], [1000])
    report = tmp_path / "report.html"
    outputs(command, tmp_path, rows_of(120), *options, "--html", str(report))
    assert "draws of whole questions, 1100 for Pearson, accuracy" in report.read_text()
    # From graded labels of many levels tau-b has fewer.
    graded = [{**row, "label": index % 37} for index, row in enumerate(rows_of(120))]
    screen, _, document = outputs(command, tmp_path, graded, *options)
    assert "1100 for Pearson; 200 for tau-b" in screen
    assert document["bootstrap"]["draws"]["kendall"] == [200]


def test_one_question_gives_no_interval_in_any_output_and_is_told(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "question": "the prompt", "dataset": "", "model": ""} for row in rows_of(60)]
    screen, page, document = outputs(command, tmp_path, rows, "--resamples", "100", "--compare-all")
    for text in (screen, page):
        assert "intervals: none" in text
        assert "fewer than 10 questions" in text
        assert "to tell questions apart): all rows" in text
        assert "p < " not in text
        assert "p <= " not in text
        assert " [" not in text
    assert document["bootstrap"]["draws"] == {}
    assert document["comparisons"][0]["all_rows"]["p_value"] is None


def test_a_mean_over_fewer_cells_says_so_in_every_output(command: Command, tmp_path: Path) -> None:
    # In one of four cells all predictions are equally long: the stub's scores tell nothing apart there.
    rows = [
        {**row, "prediction": "xxx"} if (row["dataset"], row["model"]) == ("nq", "big") else row for row in rows_of(160)
    ]
    screen, page, document = outputs(command, tmp_path, rows, "--resamples", "100", "--details", "--compare-all")
    for text in (screen, page):
        mean = text.partition("Mean of 4 cells")[2].partition("Pearson by data set and model")[0]
        # Pearson and tau-b of both metrics; scores that are all alike still have an area under the curve, of a half.
        assert mean.count("(3 of 4)") == 2 * 2
        assert "cells' mean" in text
    headline = document["metrics"]["sbert"]["headline"]["pearson"]
    assert (headline["cells"], headline["cells_in_all"]) == (3, 4)
    whole = document["metrics"]["rouge_l"]["headline"]["accuracy"]
    assert (whole["cells"], whole["cells_in_all"]) == (4, 4)
    compared = next(each for each in document["comparisons"] if each["statistic"] == "pearson")
    assert (compared["cells"], compared["cells_in_all"]) == (3, 4)


def test_draws_that_differ_are_a_range_and_missing_ones_are_named() -> None:
    full, fewer = Estimate(0.5, 0.4, 0.6, 1000), Estimate(0.5, 0.4, 0.6, 150, undefined=50)
    bare = Estimate(0.5, NAN, NAN, 0, undefined=120)
    assert draws_line({"tau-b": [full, fewer, bare], "AUC": [bare]}).endswith("questions, 200 to 1000 for tau-b")
    named = [
        NamedEstimate("sbert", "tau-b", "a", full),
        NamedEstimate("sbert", "tau-b", "b", fewer),
        NamedEstimate("sbert", "AUC", "c", bare),
        NamedEstimate("sbert", "F1", "d", Estimate(NAN, NAN, NAN, 0)),
    ]
    assert next(undefined_draws(named)).endswith("the statistic is undefined: sbert, tau-b of b (50 of 200)")
    assert next(without_interval(named)).endswith("questions apart): c")
    assert not [*undefined_draws(named[:1]), *without_interval(named[:2])]
    many = [NamedEstimate("sbert", "AUC", str(place), bare) for place in range(1000)]
    assert len(next(without_interval(many))) < 400, "a file has as many cells as it likes"


def test_a_place_stands_alone_only_where_nobody_has_an_interval_each_reason_apart() -> None:
    full, few = Estimate(0.5, 0.4, 0.6, 100, questions=30), Estimate(0.5, NAN, NAN, 0, questions=9)
    undefined = Estimate(0.5, NAN, NAN, 0, undefined=51, questions=30)
    figures = [
        NamedEstimate("sbert", "AUC", "all rows", full),
        NamedEstimate("sbert", "F1", "all rows", full),
        NamedEstimate("vqa", "AUC", "all rows", few),
        NamedEstimate("vqa", "F1", "all rows", undefined),
        NamedEstimate("sbert", "AUC", "nq", few),
        NamedEstimate("sbert", "F1", "nq", full),
        NamedEstimate("vqa", "AUC", "nq", few),
        NamedEstimate("sbert", "AUC", "tq", few),
        NamedEstimate("vqa", "AUC", "tq", few),
    ]
    too_few, too_undefined = without_interval(figures)
    assert "fewer than 10 questions" in too_few
    assert "draws" not in too_few
    # In nq nobody has an interval of the AUC, but of F1.
    assert too_few.endswith("): nq (AUC); tq; vqa, all rows (AUC)")
    assert too_undefined.endswith("the statistic is undefined in more than half of the draws: vqa, all rows (F1)")


def test_a_metric_that_fails_on_most_rows_is_named_and_the_others_keep_their_intervals(
    command: Command, tmp_path: Path
) -> None:
    rows = [{**row, "dataset": "", "model": ""} for row in rows_of(60)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    for arguments in (("agree", file), ("bench", "knvqa", file, "--cut", "0.5"), ("bench", "accuracy", file)):
        options = ("--metrics", "rouge_l,vqa_accuracy", "--resamples", "100")
        done = command(*arguments, *options, stub=_mostly_failing("vqa_accuracy"))
        assert done.exit_code == 0, done.output
        [line] = [line for line in done.stdout.splitlines() if line.startswith("no interval")]
        # The mean size of a deviation is a mean of cells, of which there is one.
        assert line.partition("to tell questions apart): ")[2] in {
            "vqa_accuracy, all rows",
            "vqa_accuracy, all rows; vqa_accuracy, cells' mean",
        }


def _mostly_failing(metric: str) -> StubTransport:
    """A stub whose named metric scores only five questions."""

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = echo_scores(request, score=length_score)
        for item, given in zip(reply.items, request.items, strict=True):
            for result in item.results:
                result.correct = len(given.prediction) >= CUT_LETTERS
                if request.metrics[result.metric_index].WhichOneof("metric") == metric and given.question not in _KEPT:
                    result.ClearField("score")
                    result.ClearField("correct")
                    result.status = types_pb2.STATUS_INVALID_INPUT
        return reply

    return StubTransport(answer)


def test_a_long_name_is_cut_where_places_are_listed() -> None:
    bare = Estimate(0.5, NAN, NAN, 0)
    figures = [NamedEstimate("sbert", "AUC", place, bare) for place in ("nq gpt4", "x" * 1_000_000)]
    assert next(without_interval(figures)).endswith(f": nq gpt4; {'x' * 79}…")
