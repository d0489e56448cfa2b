"""Means by model and system-level ranks: against scipy and by hand, with failures and several data sets."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.support.examples import example_count

from gradewire.agreement import JudgedRows
from gradewire.agreement.papers.systems import (
    MOST_MODELS,
    kendall_of,
    pearson_of,
    spearman_of,
    system_tables,
)

NAN = math.nan


def judged(scores: dict[str, list[float]], labels: list[float], models: list[str], datasets: list[str]) -> JudgedRows:
    columns = {metric: np.array(column) for metric, column in scores.items()}
    return JudgedRows(
        scores=columns,
        verdicts={metric: np.full(len(labels), NAN) for metric in columns},
        labels=np.array(labels),
        datasets=datasets,
        models=models,
        questions=[str(row // len(set(models))) for row in range(len(labels))],
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=9))
@settings(max_examples=example_count(200), deadline=None)
def test_correlations_over_models_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(side, dtype=np.float64) / 5 for side in zip(*pairs, strict=True))
    alike = len(set(x)) == 1 or len(set(y)) == 1
    for ours, theirs in ((kendall_of, stats.kendalltau), (spearman_of, stats.spearmanr), (pearson_of, stats.pearsonr)):
        value = float(ours(x[None], y[None])[0])
        if alike:
            assert math.isnan(value)
        else:
            assert value == pytest.approx(float(theirs(x, y).statistic), abs=1e-9)


def test_means_and_ranks_of_four_models() -> None:
    random = np.random.default_rng(3)
    models, questions = ["a", "b", "c", "d"], 80
    right = {"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.3}
    labels = [float(random.uniform() < right[model]) for _ in range(questions) for model in models]
    scores = [0.5 * label + 0.1 * float(random.uniform()) for label in labels]
    upside_down = [-score for score in scores]
    table = system_tables(
        judged({"good": scores, "bad": upside_down}, labels, models * questions, [""] * len(labels)), resamples=300
    )
    assert [(found.dataset, found.models) for found in table] == [("", models)]
    good, bad = table[0].lines
    for place, model in enumerate(models):
        rows = [row for row in range(len(labels)) if (models * questions)[row] == model]
        assert good.means[place].value == pytest.approx(np.mean([scores[row] for row in rows]))
        assert good.people[place].value == pytest.approx(np.mean([labels[row] for row in rows]))
        assert good.means[place].low < good.means[place].value < good.means[place].high
    assert (good.kendall.value, good.spearman.value) == (1, 1)
    assert (bad.kendall.value, bad.spearman.value) == (-1, -1)
    assert good.kendall.low <= 1 == good.kendall.high
    assert good.pearson.value == pytest.approx(-bad.pearson.value)


def test_a_failed_row_leaves_the_label_beside_it_out_too() -> None:
    labels = [1.0, 0, 0, 1, 1, 0]
    table = system_tables(
        judged({"m": [0.9, NAN, 0.1, 0.9, 0.8, 0.2]}, labels, ["a", "b", "c"] * 2, [""] * 6), resamples=100
    )
    line = table[0].lines[0]
    assert [mean.value for mean in line.means] == pytest.approx([0.9, 0.8, 0.15])
    assert [mean.value for mean in line.people] == pytest.approx([1, 1, 0])
    assert line.kendall.bare, "two questions: no interval"


def test_every_data_set_has_a_table_and_all_rows_the_last() -> None:
    labels = [1.0, 0, 1, 0, 1, 0]
    rows = judged({"m": labels}, labels, ["a", "b"] * 3, ["nq", "nq", "tq", "tq", "tq", "tq"])
    tables = system_tables(rows, resamples=100)
    assert [table.dataset for table in tables] == ["nq", "tq", ""]
    assert all(math.isnan(line.kendall.value) for table in tables for line in table.lines), "two models have no ranks"


def test_one_model_has_no_table_and_rows_without_a_model_are_in_none() -> None:
    assert system_tables(judged({"m": [1.0, 0]}, [1.0, 0], ["a", "a"], ["", ""]), resamples=100) == []
    tables = system_tables(judged({"m": [1.0, 0.5, 0.0]}, [1.0, 0.5, 0.0], ["a", "b", ""], [""] * 3), resamples=100)
    assert tables[0].models == ["a", "b"]
    assert [mean.value for mean in tables[0].lines[0].means] == [1, 0.5]


def test_a_model_that_answered_no_row_of_a_data_set_does_not_cost_it_its_ranks() -> None:
    labels = [0.9, 0.5, 0.1] * 2 + [0.2, 0.4]
    rows = judged({"m": labels}, labels, ["a", "b", "c"] * 2 + ["a", "d"], ["nq"] * 6 + ["tq"] * 2)
    tables = {table.dataset: table for table in system_tables(rows, resamples=100)}
    assert {dataset: table.models for dataset, table in tables.items()} == {
        "nq": ["a", "b", "c"],
        "tq": ["a", "d"],
        "": ["a", "b", "c", "d"],
    }
    assert tables["nq"].lines[0].kendall.value == 1


def test_a_data_set_of_one_model_has_no_table() -> None:
    labels = [0.9, 0.5, 0.1]
    tables = system_tables(judged({"m": labels}, labels, ["a", "b", "a"], ["nq", "nq", "tq"]), resamples=100)
    assert [table.dataset for table in tables] == ["nq", ""]


def test_a_model_with_few_questions_has_no_interval_beside_one_with_many() -> None:
    models = ["a", "b"] * 12 + ["a"] * 20
    labels = list(np.random.default_rng(2).uniform(size=len(models)))
    rows = judged(
        {"m": [NAN if model == "b" and place > 8 else 0.5 for place, model in enumerate(models)]},
        labels,
        models,
        [""] * len(models),
    )
    means = system_tables(rows, resamples=100)[0].lines[0].means
    assert [mean.bare for mean in means] == [False, True]


def test_people_of_the_table_are_those_of_all_rows_whichever_metric_failed() -> None:
    labels = [1.0, 0, 0, 1]
    table = system_tables(judged({"m": [0.9, NAN, NAN, 0.9]}, labels, ["a", "b"] * 2, [""] * 4), resamples=100)[0]
    assert [mean.value for mean in table.people] == pytest.approx([0.5, 0.5])
    assert [mean.value for mean in table.lines[0].people] == pytest.approx([1, 1])


def test_a_hundred_models_take_no_more_memory_than_their_draws() -> None:
    models = [f"m{model}" for model in range(100)]
    labels = list(np.random.default_rng(1).uniform(size=300))
    rows = judged({"m": labels}, labels, models * 3, [""] * 300)
    tracemalloc.start()
    table = system_tables(rows, resamples=500)[0]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table.lines[0].kendall.value == 1
    assert peak_bytes < 40_000_000, "all pairs in all draws at a time are three times that"


def test_more_models_than_there_can_be_have_no_table() -> None:
    labels = [1.0] * (MOST_MODELS + 1)
    rows = judged({"m": labels}, labels, [f"m{place}" for place in range(len(labels))], [""] * len(labels))
    assert system_tables(rows, resamples=100) == []
