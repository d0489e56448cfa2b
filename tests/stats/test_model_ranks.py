"""Means by model and system-level ranks: against scipy and by hand, with failures and several data sets."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from tests.support.examples import example_count

from gradewire_stats import model_ranks
from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.model_ranks import MOST_MODELS, kendall_of, pearson_of, spearman_of, system_tables

NAN = math.nan
FloatArray = NDArray[np.float64]


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
    assert (table[0].questions, table[0].common_questions) == (questions, questions)


def test_questions_that_some_models_did_not_answer_are_counted() -> None:
    rows = replace(
        judged({"smile": [0.5] * 6}, [1.0, 0.0] * 3, ["a", "b"] * 3, [""] * 6), questions=["1", "1", "2", "3", "4", "5"]
    )
    (table,) = system_tables(rows, resamples=10)
    assert (table.questions, table.common_questions) == (5, 1)


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


def test_a_data_set_ranks_the_models_that_answered_it() -> None:
    labels = [0.9, 0.5, 0.1, 0.7, 0.8, 0.2, 0.6, 0.3]
    rows = judged({"m": labels}, labels, list("bbcdabcx"), ["", *["nq"] * 3, *["tq"] * 4])
    tables = {table.dataset: table for table in system_tables(rows, resamples=100)}
    assert list(tables) == ["nq", "tq", ""], "rows without a data set stand with all rows, which are the last"
    assert tables["nq"].models == ["b", "c", "d"]
    assert tables["tq"].models == ["a", "b", "c", "x"]
    assert tables["tq"].lines[0].kendall.value == 1, "d answered no question of tq"
    assert [mean.value for mean in tables["tq"].people] == pytest.approx(labels[4:])


def test_people_stand_over_all_rows_whatever_the_first_metric_scored() -> None:
    labels = [1.0, 0, 0, 1, 1, 0]
    scores = {"failing": [0.9, NAN, 0.1, NAN, 0.8, NAN], "whole": labels}
    table = system_tables(judged(scores, labels, ["a", "b", "c"] * 2, [""] * 6), resamples=100)[0]
    assert [mean.value for mean in table.people] == [1, 0.5, 0]
    assert [line.failed for line in table.lines] == [3, 0]


def test_means_that_differ_by_rounding_are_equal() -> None:
    labels = [0.1, 0.3, 0.9, 0.2, 0.2, 0.8, 0.3, 0.1, 0.7]
    assert math.fsum(labels[::3]) == math.fsum(labels[1::3])
    assert sum(labels[::3]) != sum(labels[1::3])
    scores = [0.5, 0.5, 0.9] * 3
    line = system_tables(judged({"m": scores}, labels, ["a", "b", "c"] * 3, [""] * 9), resamples=100)[0].lines[0]
    assert line.people[0].value == line.people[1].value
    assert (line.kendall.value, line.spearman.value) == pytest.approx((1, 1))


def test_many_models_take_little_memory_and_still_more_have_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"m{number:03}" for number in range(MOST_MODELS + 1)]
    labels = [float(number) for number in range(len(names))]
    assert system_tables(judged({"m": labels}, labels, names, [""] * len(names)), resamples=100) == []
    compared = []

    def counted(x: FloatArray, y: FloatArray) -> FloatArray:
        compared.append(x.size * x.shape[1])
        return kendall_of(x, y)

    monkeypatch.setattr(model_ranks, "kendall_of", counted)
    few = judged({"m": labels[1:]}, labels[1:], names[1:], [""] * MOST_MODELS)
    assert system_tables(few, resamples=1000)[0].lines[0].kendall.value == 1
    assert max(compared) <= 4_000_000, "pairs of models at a time, over all draws"


def test_a_data_set_of_one_model_has_no_table() -> None:
    labels = [0.9, 0.5, 0.1]
    tables = system_tables(judged({"m": labels}, labels, ["a", "b", "a"], ["nq", "nq", "tq"]), resamples=100)
    assert [table.dataset for table in tables] == ["nq", ""]


def test_a_model_with_few_questions_has_no_interval_beside_one_with_many() -> None:
    models = ["a", "b"] * 12 + ["a"] * 20
    labels = list(np.random.default_rng(2).uniform(size=len(models)))
    scores = [NAN if model == "b" and place > 8 else 0.5 for place, model in enumerate(models)]
    means = system_tables(judged({"m": scores}, labels, models, [""] * len(models)), resamples=100)[0].lines[0].means
    assert [mean.bare for mean in means] == [False, True]
