import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from tests.cli.conftest import Command, figures_of, write_rows
from tests.cli.judged import CUT_LETTERS, judging_stub, rows_of

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2
from gradewire_stats.agreement.statistics import ALL_STATISTICS

METRICS = "rouge_l,sbert"


def agreed(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str | Path) -> dict[str, Any]:
    """JSON of `agree` on these rows."""
    return figures_of(partial(command, "agree", stub=judging_stub()), tmp_path, rows, *options)


def values(document: dict[str, Any], metric: str) -> dict[str, float | None]:
    """Of all rows: the last cell."""
    cell = document["metrics"][metric]["cells"][-1]
    return {statistic: cell[statistic]["value"] for statistic in ALL_STATISTICS}


def letters_of(rows: list[dict[str, Any]]) -> list[int]:
    return [len(row["prediction"]) for row in rows]


def test_json_has_every_statistic_of_every_cell(command: Command, tmp_path: Path) -> None:
    rows = rows_of(80)
    document = agreed(command, tmp_path, rows, "--metrics", METRICS)
    assert [cell["level"] for cell in document["metrics"]["rouge_l"]["cells"]] == [
        *["cell"] * 4,
        *["dataset"] * 2,
        *["model"] * 2,
        "all",
    ]
    labels, said = [row["label"] for row in rows], [length >= CUT_LETTERS for length in letters_of(rows)]
    right = sum(bool(label) == verdict for label, verdict in zip(labels, said, strict=True))
    both = sum(label and verdict for label, verdict in zip(labels, said, strict=True))
    found = values(document, "rouge_l")
    assert found["pearson"] == pytest.approx(stats.pearsonr(letters_of(rows), labels).statistic)
    assert found["kendall"] == pytest.approx(stats.kendalltau(letters_of(rows), labels).statistic)
    assert found["accuracy"] == pytest.approx(right / 80)
    chance = (sum(said) * sum(labels) + (80 - sum(said)) * (80 - sum(labels))) / 80**2
    assert found["kappa"] == pytest.approx((right / 80 - chance) / (1 - chance))
    assert found["precision"] == pytest.approx(both / sum(said))
    assert found["recall"] == pytest.approx(both / sum(labels))
    assert found["f1"] == pytest.approx(2 * both / (sum(said) + sum(labels)))
    assert found["deviation"] == pytest.approx((sum(said) - sum(labels)) / 80)
    assert values(document, "sbert")["accuracy"] is None, "a metric without verdicts has no accuracy"
    draws = {statistic: [100] for statistic in ALL_STATISTICS}
    assert document["bootstrap"] == {
        "resamples": 100,
        "seed": 0,
        "confidence": 0.95,
        "unit": "question",
        "draws": draws,
        "least_questions": 10,
    }


def test_thirty_percent_of_failed_rows_change_no_figure_and_are_counted(command: Command, tmp_path: Path) -> None:
    rows = rows_of(100)
    failed = [{**row, "prediction": "", "id": f"failed-{row['id']}"} for row in rows_of(43, seed=1)]
    mixed = [row for pair in zip(rows, failed, strict=False) for row in pair] + rows[43:]
    clean = agreed(command, tmp_path, rows, "--metrics", METRICS)
    document = agreed(command, tmp_path, mixed, "--metrics", METRICS)
    for metric in METRICS.split(","):
        for before, after in zip(clean["metrics"][metric]["cells"], document["metrics"][metric]["cells"], strict=True):
            for statistic in ALL_STATISTICS:
                assert after[statistic]["value"] == pytest.approx(before[statistic]["value"], nan_ok=True), statistic
            assert after["rows"] == before["rows"]
        assert document["metrics"][metric]["cells"][-1]["failed"] == 43
        assert document["metrics"][metric]["statuses"] == {"OK": 100, "EMPTY_PREDICTION": 43}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (None, [1.0, 0.0, 3 / 5, 1 / 5, 1.0, 0.0]),
        ("mean", [4 / 5, 2 / 5, 3 / 5, 1 / 5, 2 / 3, 0.0]),
        ("majority", [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
        # LAVE: right from 4 of 5, half from 2 of 5; two of three are .67, which is between.
        ("lave", [1.0, 0.5, 0.5, 0.0, 0.5, 0.0]),
    ],
)
def test_rules_for_several_annotators(
    command: Command, tmp_path: Path, rule: str | None, expected: list[float]
) -> None:
    given: list[dict[str, Any]] = [
        {"label": 1, "labels": [1, 1, 1, 1, 0]},
        {"label": 0, "labels": [1, 1, 0, 0, 0]},
        {"labels": [1, 1, 1, 0, 0]},
        {"labels": [0, 0, 0, 0, 1]},
        {"label": 1, "labels": [1, None, 0, None, 1]},
        {"label": 0},
    ]
    rows = [
        {"question": f"q{index}", "references": ["a"], "prediction": "x" * (3 * index % 7 + 1), **labels}
        for index, labels in enumerate(given)
    ]
    document = agreed(command, tmp_path, rows, "--metrics", "sbert", *(["--labels", rule] if rule else []))
    expected_pearson = stats.pearsonr(letters_of(rows), expected).statistic
    assert values(document, "sbert")["pearson"] == pytest.approx(expected_pearson)
    assert document["labels"]["rows_without_annotators"] == (1 if rule else 0)
    assert document["annotators"]["items"] == 5
    assert set(document["annotators"]["alpha"]) == {"nominal", "ordinal", "interval"}
    pairs = document["annotators"]["pairs"]
    # All five speak to the first four rows; 1, 3 and 5 to one more, whose pairs come first.
    assert [(pair["first"], pair["second"], pair["items"]) for pair in pairs[:4]] == [
        (1, 3, 5),
        (1, 5, 5),
        (3, 5, 5),
        (1, 2, 4),
    ]
    assert len(pairs) == 10
    options = ("--metrics", "sbert", "--all-tables")
    shown = command("agree", tmp_path / "rows.jsonl", *options, stub=judging_stub()).stdout
    line = next(line for line in shown.splitlines() if line.startswith("annotators: "))
    # Annotators 1 and 3 in five rows: 1 1 1 0 1 against 1 0 1 0 0; p_o = 3/5, p_e = (4 * 2 + 1 * 3) / 25.
    assert "Cohen's kappa 0.286 of annotators 1 and 3 (5 rows), " in line
    assert line.endswith("(4 rows) and 4 more")


def test_kappa_stands_beside_pearson_where_a_metric_has_verdicts(command: Command, tmp_path: Path) -> None:
    given = [[1, 0], [0, 0], [0, None], [0, 1], [1, 1], [1, 0], [1, 1], [0, 1]]
    rows = [
        {"question": f"q{index}", "references": ["a"], "prediction": "x" * (index + 5), "labels": labels}
        for index, labels in enumerate(given)
    ]
    said = [index + 5 >= CUT_LETTERS for index in range(len(rows))]
    document = agreed(command, tmp_path, rows, "--metrics", METRICS)
    assert values(document, "sbert")["kappa"] is None
    mean = [sum(label or 0 for label in labels) / (2 - (None in labels)) >= 0.5 for labels in given]
    assert values(document, "rouge_l")["kappa"] == pytest.approx(cohen_kappa_score(mean, said))
    assert document["metrics"]["sbert"]["annotators"] == []
    both = document["metrics"]["rouge_l"]["annotators"]
    second = [index for index, labels in enumerate(given) if labels[1] is not None]
    expected = [
        cohen_kappa_score([labels[0] for labels in given], [int(each) for each in said]),
        cohen_kappa_score([given[index][1] for index in second], [int(said[index]) for index in second]),
    ]
    assert [(each["annotator"], each["items"]) for each in both] == [(1, 8), (2, 7)]
    assert [each["kappa"]["value"] for each in both] == pytest.approx(expected)
    options = ("--resamples", "100", "--all-tables")
    shown = command("agree", tmp_path / "rows.jsonl", "--metrics", METRICS, *options, stub=judging_stub()).stdout
    head = next(line for line in shown.splitlines() if "Pearson" in line)
    assert head.split()[:7] == ["metric", "rows", "failed", "Pearson", "kappa", "tau-b", "AUC"]
    assert f"Cohen's kappa of the verdicts {expected[0]:.3f} with annotator 1 (8 rows), " in shown
    # Without verdicts there is no such column.
    without = command("agree", tmp_path / "rows.jsonl", "--metrics", "sbert", *options, stub=judging_stub()).stdout
    assert "Pearson" in without
    assert "kappa" not in without.partition("annotators: ")[0]


def test_annotators_in_columns_of_their_own(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "label": None, "r1": row["label"], "r2": index % 2} for index, row in enumerate(rows_of(40))]
    document = agreed(command, tmp_path, rows, "--map", "labels=r1,r2", "--metrics", "sbert")
    mean = [(row["r1"] + row["r2"]) / 2 for row in rows]
    assert values(document, "sbert")["pearson"] == pytest.approx(stats.pearsonr(letters_of(rows), mean).statistic)
    file = write_rows(tmp_path / "a.jsonl", rows)
    assert "no column 'r3'" in command("agree", file, "--map", "labels=r1,r3").stderr


def test_cells_by_group(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "kind": "number" if index % 3 else "colour"} for index, row in enumerate(rows_of(60))]
    document = agreed(command, tmp_path, rows, "--map", "group=kind", "--group-by", "group", "--metrics", METRICS)
    cells = {cell["group"]: cell for cell in document["metrics"]["sbert"]["cells"] if cell["level"] == "group"}
    assert set(cells) == {"number", "colour"}
    of_colour = [row for row in rows if row["kind"] == "colour"]
    expected = stats.pearsonr(letters_of(of_colour), [row["label"] for row in of_colour]).statistic
    assert cells["colour"]["pearson"]["value"] == pytest.approx(expected)
    done = command("agree", tmp_path / "rows.jsonl", "--map", "group=kind", "--group-by", "group", "--metrics", METRICS)
    assert "colour" in done.stdout
    assert "big" not in done.stdout, "only the cells that were asked for"


def test_rows_with_a_flag_are_counted_and_left_out_on_request(command: Command, tmp_path: Path) -> None:
    flags = [["time-dependent"], "time-dependent, bad-gold", None, []]
    rows = [{**row, "flags": flags[index % 4]} for index, row in enumerate(rows_of(80))]
    whole = agreed(command, tmp_path, rows, "--metrics", "sbert")
    assert whole["flags"] == {
        "rows": {"bad-gold": 20, "time-dependent": 40},
        "without": [],
        "left_out": 0,
        "proposed": [],
    }
    part = agreed(command, tmp_path, rows, "--metrics", "sbert", "--without-flag", "bad-gold")
    assert part["flags"]["left_out"] == 20
    kept = [row for index, row in enumerate(rows) if index % 4 != 1]
    expected = stats.pearsonr(letters_of(kept), [row["label"] for row in kept]).statistic
    assert values(part, "sbert")["pearson"] == pytest.approx(expected)
    done = command("agree", tmp_path / "rows.jsonl", "--without-flag", "bad-gold", "--without-flag", "time-dependent")
    assert "flagged rows: bad-gold 20, time-dependent 40; 40 of them are left out" in done.stderr


def test_comparisons_of_all_with_the_first(command: Command, tmp_path: Path) -> None:
    document = agreed(
        *(command, tmp_path, rows_of(60)),
        *("--metrics", "rouge_l,sbert,meteor", "--compare-all", "--compare", "meteor", "sbert"),
        *("--compare-statistics", "pearson,auc"),
    )
    found = [(one["metric"], one["baseline"], one["statistic"]) for one in document["comparisons"]]
    pairs = [("meteor", "sbert"), ("sbert", "rouge_l"), ("meteor", "rouge_l")]
    assert sorted(found) == sorted((*pair, statistic) for pair in pairs for statistic in ("pearson", "auc"))
    # The stub scores all metrics alike.
    for one in document["comparisons"]:
        assert one["all_rows"]["value"] == pytest.approx(0)
        assert one["all_rows"]["p_value"] == 1.0


def test_scores_of_several_runs_stand_side_by_side(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows_of(40))
    for metric in ("rouge_l", "sbert"):
        command("score", file, "--metrics", metric, "--out", tmp_path / f"{metric}.jsonl", stub=judging_stub())
    earlier = [f"--scores={tmp_path}/{metric}.jsonl" for metric in ("rouge_l", "sbert")]

    def never(_: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        raise AssertionError("nothing is to be scored")

    options = ("--resamples", "100", "--statistics", "all", "--details")
    joined = command("agree", file, *earlier, *options, stub=StubTransport(never))
    now = command("agree", file, "--metrics", METRICS, *options, stub=judging_stub())
    assert (joined.exit_code, joined.stdout) == (0, now.stdout)
    twice = command("agree", file, earlier[0], earlier[0])
    assert (twice.exit_code, "rouge_l.jsonl and another --scores file both have rouge_l" in twice.stderr) == (2, True)


def test_tables_fit_into_100_columns_with_12_metrics(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradewire_cli.results.tables.columns_of", lambda _: 100)
    metrics = (
        "smile:v1,smile:reference_code,sbert,exact_match,easy_match,lexical_match,vqa_accuracy,soft_vqa_accuracy,"
        "rouge_l,bleu,meteor,bertscore"
    )
    rows = [
        {**row, "dataset": f"data-{index % 2}", "model": f"model-{index % 5}"} for index, row in enumerate(rows_of(200))
    ]
    file, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "tables.md"
    options = ("--resamples", "100", "--all-tables", "--markdown", page)
    done = command("agree", file, "--metrics", metrics, *options, stub=judging_stub())
    assert done.exit_code == 0
    tables, _, lines = done.stdout.partition("\nsmile: ")
    assert lines
    assert max(map(len, tables.splitlines())) <= 100
    for label in metrics.split(","):
        # All rows, mean of cells, and three statistics by cell: ten cells, two data sets, five models in blocks.
        assert tables.count(label.replace("smile:v1", "smile ")) >= 5
    figure = stats.pearsonr(letters_of(rows), [row["label"] for row in rows]).statistic
    assert f"{figure:.3f} [" in tables
    text = page.read_text()
    assert "**Pearson by data set and model**" in text
    header = next(line for line in text.splitlines() if line.startswith("| metric | data-0 model-0"))
    assert header.count("|") == text.splitlines()[text.splitlines().index(header) + 1].count("|")


def test_infinite_labels_are_counted_as_unreadable_and_nan_as_none(command: Command, tmp_path: Path) -> None:
    # 1e400 is beyond what a float holds: JSON gives infinity for it.
    given = ["1e400", "-Infinity", "Infinity", "NaN", "null", '""']
    rows = rows_of(20)
    lines = [json.dumps(row) for row in rows]
    lines += [json.dumps({**row, "label": None}).replace("null", text) for row, text in zip(rows, given, strict=False)]
    file, figures = tmp_path / "rows.jsonl", tmp_path / "figures.json"
    file.write_text("\n".join(lines))
    done = command("agree", file, "--metrics", "sbert", "--resamples", "100", "--json", figures, stub=judging_stub())
    assert done.exit_code == 0, done.output
    labels = json.loads(figures.read_text())["labels"]
    assert (labels["unreadable"], labels["unlabelled_rows"]) == (3, 3)
    assert "3 rows have an unreadable label (first at line 21: inf;" in done.stderr


@pytest.mark.parametrize("option", ["--json", "--markdown", "--csv", "--latex", "--html"])
def test_no_output_takes_the_place_of_the_input(command: Command, tmp_path: Path, option: str) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows_of(10))
    before = file.read_bytes()
    done = command("agree", file, option, file)
    assert (done.exit_code, file.read_bytes()) == (2, before)
    assert f"{option}: {file} is also the input" in done.stderr
    nowhere = command("agree", file, "--resamples", "100", option, tmp_path / "no" / "such")
    assert (nowhere.exit_code, "does not exist. Create it first" in nowhere.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--statistics", "pearson,fame"], "unknown statistic 'fame'. Choose from: pearson, spearman"),
        (["--compare", "smile", "sbert"], "--compare sbert: no such metric. Choose one of smile"),
        (["--labels", "best"], "'best' is not one of 'mean', 'majority', 'lave'"),
        (["--group-by", "size"], "'size' is not one of"),
        (["--without-flag", "odd"], "--without-flag leaves no rows, because all 10 have one"),
    ],
)
def test_wrong_options_say_the_way_out(command: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows_of(10, flags="odd"))
    done = command("agree", file, "--resamples", "100", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_nothing_defined_is_a_dash_and_null(command: Command, tmp_path: Path) -> None:
    rows = rows_of(10, label=1, prediction="same")
    document = agreed(command, tmp_path, rows, "--metrics", METRICS)
    found = values(document, "sbert")
    assert {found[statistic] for statistic in ("pearson", "kendall", "auc", "accuracy")} == {None}
    assert math.isclose(values(document, "rouge_l")["positive_rate"] or 0, float(len("same") >= CUT_LETTERS))


def test_grades_beyond_0_to_1_have_no_verdicts_and_the_command_says_why(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "label": 1 + index % 5} for index, row in enumerate(rows_of(40))]
    found = values(agreed(command, tmp_path, rows, "--metrics", "rouge_l"), "rouge_l")
    assert found["pearson"] is not None
    assert (found["auc"], found["accuracy"], found["deviation"]) == (None, None, None)
    done = command("agree", tmp_path / "rows.jsonl", "--resamples", "100")
    assert "labels range from 1 to 5, so AUC and the statistics of verdicts are missing" in done.stderr
    assert "Use --label-map to map labels to numbers in [0, 1]" in done.stderr
