"""`agree --against`: an evaluator in the place of people, for rows that nobody labelled."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from scipy import stats
from tests.cli.conftest import Command, answer, write_rows
from tests.cli.judged import rows_of

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2, types_pb2

Agree = Callable[..., tuple[Result, dict[str, Any]]]


def evaluating_stub() -> StubTransport:
    """lave: length / 20, right from 12 letters; exact_match: half of it, right from 8; sbert: no verdicts.

    lave fails on answers of 3 letters, and has a score without a verdict on those of 5.
    """

    def judge(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        for item, sent in zip(reply.items, request.items, strict=True):
            for result in item.results:
                name = request.metrics[result.metric_index].WhichOneof("metric")
                letters = len(sent.prediction)
                if name == "lave" and letters == 3:
                    result.ClearField("score")
                    result.status, result.message = types_pb2.STATUS_TIMEOUT, "too slow"
                    continue
                result.score = letters / 20 / (1 if name == "lave" else 2)
                if name == "exact_match" or (name == "lave" and letters != 5):
                    result.correct = letters >= (12 if name == "lave" else 8)
        return reply

    return StubTransport(judge)


@pytest.fixture
def agree(command: Command, tmp_path: Path) -> Agree:
    def run(rows: list[dict[str, Any]], *options: str | Path, name: str = "agree") -> tuple[Result, dict[str, Any]]:
        file, figures = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "figures.json"
        figures.unlink(missing_ok=True)
        done = command(*name.split(), file, "--resamples", "100", "--json", figures, *options, stub=evaluating_stub())
        return done, json.loads(figures.read_text()) if figures.exists() else {}

    return run


def unlabelled(count: int = 120) -> list[dict[str, Any]]:
    rows = rows_of(count)
    for place, row in enumerate(rows):
        row.pop("label")
        row["model"] = ("small", "big", "huge")[place % 3]
        row["question"] = f"question {place // 3}"
    return rows


def counted(rows: list[dict[str, Any]]) -> list[int]:
    """Letters of the rows that lave scores with a verdict."""
    return [letters for row in rows if (letters := len(row["prediction"])) not in {3, 5}]


def test_scores_are_held_against_scores_and_verdicts_against_verdicts(agree: Agree) -> None:
    rows = unlabelled()
    done, document = agree(rows, "--metrics", "exact_match,sbert", "--against", "lave", "--statistics", "all")
    assert done.exit_code == 0, done.output
    letters = np.array(counted(rows))
    assert set(document["metrics"]) == {"exact_match", "sbert"}, "lave stands beside itself nowhere"
    every = document["metrics"]["exact_match"]["cells"][-1]
    assert every["rows"] == len(letters)
    assert every["pearson"]["value"] == pytest.approx(1)
    assert every["accuracy"]["value"] == pytest.approx(np.mean((letters >= 12) == (letters >= 8)))
    assert every["deviation"]["value"] == pytest.approx(np.mean(letters >= 8) - np.mean(letters >= 12))
    assert document["metrics"]["sbert"]["cells"][-1]["accuracy"]["value"] is None
    assert document["metrics"]["sbert"]["cells"][-1]["auc"]["value"] == pytest.approx(1)
    assert document["against"]["metric"] == "lave"
    assert document["against"]["left_out"] == len(rows) - len(letters)
    assert document["against"]["statuses"]["TIMEOUT"] == sum(len(row["prediction"]) == 3 for row in rows)
    assert "without a score or verdict from lave" in done.stderr
    assert "lave: " in done.stdout
    assert "replaces annotators" in done.stdout


def test_the_deviation_from_an_evaluator_is_told_by_cell(agree: Agree) -> None:
    rows = unlabelled()
    done, document = agree(rows, "--metrics", "exact_match", "--against", "lave")
    every = agree(rows, "--metrics", "exact_match", "--against", "lave", "--all-tables")[0].stdout
    assert "\nlave's accuracy, over all rows that it judged" in every, "a metric keeps its small letters"
    assert "Deviation from lave's accuracy: mean size over 6 cells" in " ".join(done.stdout.split())
    cells = document["accuracies"]["evaluators"][0]["cells"]
    sizes = []
    for cell in cells:
        own = [row for row in rows if (row["dataset"], row["model"]) == (cell["dataset"], cell["model"])]
        letters = np.array(counted(own))
        deviation = np.mean(letters >= 8) - np.mean(letters >= 12)
        assert cell["deviation"]["value"] == pytest.approx(deviation)
        sizes.append(abs(deviation))
    found = document["accuracies"]["evaluators"][0]["mean_absolute_deviation"]["value"]
    assert found == pytest.approx(np.mean(sizes))


def test_models_with_equal_means_share_the_better_rank(agree: Agree) -> None:
    rows = unlabelled()
    for place, row in enumerate(rows):
        row["model"], row["prediction"] = (("low", 6), ("one", 9), ("two", 9))[place % 3][0], "x" * (6, 9, 9)[place % 3]
    done, _ = agree(rows, "--metrics", "sbert", "--against", "lave")
    said = next(line for line in done.stdout.splitlines() if line.strip().startswith("sbert") and "(1)" in line)
    assert [part for part in said.split() if part.startswith("(")] == ["(3)", "(1)", "(1)"]


def test_the_evaluator_may_be_one_of_all_metrics(agree: Agree) -> None:
    done, document = agree(unlabelled(12), "--metrics", "all", "--against", "sbert")
    assert done.exit_code == 0, done.output
    assert set(document["metrics"]) == {"smile"}, "all that the stub has, and not the evaluator"


@pytest.mark.parametrize(
    ("models", "told"), [(2, "it needs 3 models, but there are 2"), (120, "106 models exceed the limit of 100")]
)
def test_why_there_is_no_rank_correlation_is_told_beside_the_tables(agree: Agree, models: int, told: str) -> None:
    rows = unlabelled(120)
    for place, row in enumerate(rows):
        row["model"] = f"model {place % models}"
    done, _ = agree(rows, "--metrics", "sbert", "--against", "lave")
    assert told in " ".join(done.stdout.split())


def test_labels_of_people_are_called_so_in_the_table_of_models(agree: Agree) -> None:
    rows = [{**row, "label": place % 2} for place, row in enumerate(unlabelled())]
    done, _ = agree(rows, "--metrics", "sbert", "--all-tables")
    assert "System-level correlation with annotators: means of 3 models" in " ".join(done.stdout.split())


def test_means_by_model_and_their_ranks(agree: Agree) -> None:
    rows = unlabelled()
    done, document = agree(rows, "--metrics", "exact_match", "--against", "lave")
    assert "Mean score by model (rank)" in done.stdout
    assert "System-level correlation with lave: means of 3 models" in done.stdout
    table = document["systems"][-1]
    assert (table["dataset"], table["models"]) == ("", ["big", "huge", "small"])
    line = table["lines"][0]
    means = [
        np.mean([n / 40 for n in counted([row for row in rows if row["model"] == model])]) for model in table["models"]
    ]
    assert [mean["value"] for mean in line["means"]] == pytest.approx(means)
    assert [mean["value"] for mean in line["people"]] == pytest.approx([2 * mean for mean in means])
    assert line["kendall"]["value"] == pytest.approx(stats.kendalltau(means, means).statistic)
    best = " ".join(done.stdout.split()).partition("Mean score by model (rank)")[2]
    place = [f"({1 + sum(other > mean for other in means)})" for mean in means]
    assert re.findall(r"\(\d\)", best)[:6] == place * 2


def test_an_evaluator_without_verdicts_gives_no_figure_of_verdicts(agree: Agree) -> None:
    _, document = agree(unlabelled(), "--metrics", "exact_match", "--against", "sbert", "--statistics", "all")
    every = document["metrics"]["exact_match"]["cells"][-1]
    assert every["pearson"]["value"] == pytest.approx(1)
    assert [every[name]["value"] for name in ("auc", "accuracy", "deviation")] == [None] * 3
    assert (document["accuracies"], document["annotators"]) == (None, None)


def test_annotators_are_not_told_beside_an_evaluator(agree: Agree) -> None:
    rows = [{**row, "labels": [0, 1, 1]} for row in unlabelled()]
    _, document = agree(rows, "--metrics", "exact_match", "--against", "lave")
    assert document["annotators"] is None


def test_the_evaluator_stands_over_all_rows_and_over_those_that_a_metric_scored(agree: Agree) -> None:
    rows = unlabelled()
    done, _ = agree(rows, "--metrics", "lave,sbert", "--against", "exact_match", "--retries", "0")
    shown = " ".join(done.stdout.split()).partition("Mean score by model (rank)")[2]
    for kind, who in (({3}, "exact_match, rows of lave"), (set(), "exact_match")):
        lengths = [len(row["prediction"]) for row in rows if row["model"] == "big"]
        assert f"{who} {np.mean([n / 40 for n in lengths if n not in kind]):.3f} [" in shown
    assert "rows of sbert" not in shown


def test_labels_of_people_are_not_looked_at(agree: Agree) -> None:
    plain, labelled = unlabelled(), unlabelled()
    for row in labelled:
        row["label"] = "what is this"
    assert (
        agree(plain, "--against", "lave", "--metrics", "sbert")[1]["metrics"]
        == (agree(labelled, "--against", "lave", "--metrics", "sbert")[1]["metrics"])
    )


def test_kept_scores_have_the_evaluator_too(command: Command, agree: Agree, tmp_path: Path) -> None:
    rows = unlabelled()
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    scored = command(
        *("score", file, "--metrics", "exact_match,lave", "--out", out, "--fail-on", "never", "--retries", "0"),
        stub=evaluating_stub(),
    )
    assert scored.exit_code == 0, scored.output
    done, document = agree(rows, "--scores", out, "--against", "lave")
    assert done.exit_code == 0, done.output
    _, straight = agree(rows, "--metrics", "exact_match", "--against", "lave")
    assert document["metrics"] == straight["metrics"]
    alone = tmp_path / "alone.jsonl"
    command("score", file, "--metrics", "lave", "--out", alone, "--retries", "0", stub=evaluating_stub())
    lonely, _ = agree(rows, "--scores", alone, "--against", "lave")
    assert lonely.exit_code == 2
    assert "--against lave: the scores have no other metric" in lonely.stderr
    refused, _ = agree(rows, "--scores", out, "--against", "smile")
    assert refused.exit_code == 2
    assert "--against smile: no such metric. Choose one of exact_match, lave" in refused.stderr


def test_bench_accuracy_takes_an_evaluator_too(agree: Agree) -> None:
    rows = unlabelled()
    done, document = agree(rows, "--metrics", "exact_match", "--against", "lave", name="bench accuracy")
    assert done.exit_code == 0, done.output
    letters = np.array(counted([row for row in rows if (row["dataset"], row["model"]) == ("nq", "big")]))
    cell = document["evaluators"][0]["cells"][0]
    assert (cell["dataset"], cell["model"]) == ("nq", "big")
    assert cell["human"]["value"] == pytest.approx(np.mean(letters >= 12))
    assert cell["deviation"]["value"] == pytest.approx(np.mean(letters >= 8) - np.mean(letters >= 12))
    assert "lave, all rows" in done.stdout


def test_an_evaluator_without_verdicts_has_a_cut_in_bench_accuracy(agree: Agree) -> None:
    """The stub gives half of lave's scores: sbert calls right what has 16 letters and more, from 0.4 on."""
    rows = unlabelled()
    letters = np.array([len(row["prediction"]) for row in rows if (row["dataset"], row["model"]) == ("nq", "big")])
    for options, cut in ((("--cut", "sbert=0.4"), 0.4), ((), 2 / 3), (("--cut", "0.3"), 0.3)):
        done, document = agree(rows, "--metrics", "exact_match", "--against", "sbert", *options, name="bench accuracy")
        assert done.exit_code == 0, done.output
        assert document["evaluators"][0]["cells"][0]["human"]["value"] == pytest.approx(np.mean(letters / 40 >= cut))
        assert document["against"]["cut"] == cut
        assert f"(replaces annotators, right from {cut:.4g})" in done.stdout
    _, own = agree(rows, "--metrics", "exact_match", "--against", "lave", name="bench accuracy")
    assert own["against"]["cut"] is None
    _, cut_anew = agree(rows, "--against", "lave", "--metrics", "sbert", "--cut", "lave=0.1", name="bench accuracy")
    kept = np.array(counted([row for row in rows if (row["dataset"], row["model"]) == ("nq", "big")]))
    assert cut_anew["human"][0]["human"]["value"] == pytest.approx(np.mean(kept / 20 >= 0.1))


def test_bench_knvqa_calls_the_evaluator_by_its_name_and_asks_for_its_cut(agree: Agree) -> None:
    rows = unlabelled()
    refused, _ = agree(rows, "--metrics", "exact_match", "--against", "sbert", name="bench knvqa")
    assert refused.exit_code == 2
    assert "--against sbert: this metric returns no verdicts. Set the lowest score" in refused.stderr
    done, document = agree(
        *(rows, "--metrics", "exact_match,lave", "--against", "sbert", "--cut", "sbert=0.3", "--retries", "0"),
        *("--all-tables",),
        name="bench knvqa",
    )
    assert done.exit_code == 0, done.output
    letters = np.array([len(row["prediction"]) for row in rows if row["model"] == "big"])
    model = next(model for model in document["models"] if model["model"] == "big")
    assert model["human_rate"]["value"] == pytest.approx(np.mean(letters / 40 >= 0.3))
    assert "sbert, rows of lave" in done.stdout
    assert "Models as sbert judges them, over all labelled rows" in " ".join(done.stdout.split())
    assert "human" not in done.stdout
    assert "annotators judge" not in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--against", "nothing"), "--against nothing:"),
        (("--against", "lave,sbert"), "--against lave,sbert: name one metric only"),
        (("--metrics", "lave", "--against", "lave"), "--against lave: there is no other metric"),
        (("--against", "lave", "--labels", "mean"), "cannot be used with --against"),
        (("--against", "lave", "--html", "page.html"), "cannot be used with --against"),
    ],
)
def test_what_does_not_go_together_is_refused(agree: Agree, options: tuple[str, ...], said: str) -> None:
    done, _ = agree(unlabelled(6), *options)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_an_evaluator_that_fails_everywhere_says_so(agree: Agree) -> None:
    rows = [{**row, "prediction": "xxx"} for row in unlabelled(12)]
    done, _ = agree(rows, "--against", "lave", "--metrics", "sbert", "--retries", "0")
    assert done.exit_code == 1
    assert "no row has a score for lave" in done.stderr
    assert "TIMEOUT 12" in done.stderr
