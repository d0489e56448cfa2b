"""What an interval and a p value say, and when they say nothing."""

import math

import numpy as np
import pytest

from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.agreement.statistics import ALL_STATISTICS
from gradewire_stats.annotators import annotator_agreement
from gradewire_stats.ave import AveRows, ave_properties
from gradewire_stats.bootstrap import LEAST_QUESTIONS, difference, estimate, free_clusters
from gradewire_stats.preferences import JudgedPairs, preference_agreement

NAN = math.nan


def noisy(questions: list[str], datasets: list[str] | None = None) -> JudgedRows:
    count = len(questions)
    random = np.random.default_rng(4)
    labels = (np.arange(count) % 2).astype(float)
    scores = {name: labels * 0.3 + random.random(count) * noise for name, noise in (("a", 1.0), ("b", 3.0))}
    verdicts = {name: (column > 0.6).astype(float) for name, column in scores.items()}
    return JudgedRows(scores, verdicts, labels, datasets or [""] * count, [""] * count, questions)


def test_rows_of_one_question_have_values_but_no_interval_and_no_p() -> None:
    # Every draw takes the only question once: its bootstrap would be sure of whatever the rows happen to say.
    report = agreement(
        noisy(["What colour is the car?"] * 100),
        compare=[("a", "b")],
        compare_statistics=["pearson", "accuracy"],
        resamples=50,
    )
    for metric in report.metrics:
        for found in (*metric.cells[-1].estimates.values(), *metric.headline.values()):
            assert math.isnan(found.low)
            assert math.isnan(found.high)
            assert found.resamples == 0
        assert metric.cells[-1].questions == 1
        assert metric.cells[-1].estimates["pearson"].value > 0
    for compared in report.comparisons:
        assert not math.isnan(compared.all_rows.value)
        assert math.isnan(compared.all_rows.low)
        assert math.isnan(compared.all_rows.p_value)
        assert math.isnan(compared.mean_of_cells.p_value)


@pytest.mark.parametrize(("questions", "has_interval"), [(LEAST_QUESTIONS - 1, False), (LEAST_QUESTIONS, True)])
def test_ten_questions_make_an_interval(questions: int, *, has_interval: bool) -> None:
    line = agreement(noisy([f"q{row * questions // 90}" for row in range(90)]), resamples=50).metrics[0].cells[-1]
    assert line.questions == questions
    assert {not math.isnan(line.estimates[name].low) for name in ALL_STATISTICS} == {has_interval}


def test_the_only_question_of_a_data_set_never_varies() -> None:
    datasets = [f"data {row % 20}" for row in range(100)]
    line = agreement(noisy(["the prompt"] * 100, datasets), resamples=50).metrics[0].cells[-1]
    assert (line.level, line.questions) == ("all", 1)
    assert math.isnan(line.estimates["accuracy"].low)
    # Two data sets of six and of five questions: eleven, one of them to hold the second data set.
    assert free_clusters(np.arange(11), np.array([0] * 6 + [1] * 5)) == 10
    assert free_clusters(np.array([], dtype=np.intp), np.array([0])) == 0


def test_one_small_cell_takes_the_interval_of_the_mean_and_leaves_those_of_the_others() -> None:
    rows = noisy([f"q{row // 2}" for row in range(90)], ["small" if row < 8 else "large" for row in range(90)])
    report = agreement(rows, compare=[("a", "b")], compare_statistics=["pearson"], resamples=50)
    metric, compared = report.metrics[0], report.comparisons[0]
    small, large = (next(cell for cell in metric.cells if cell.dataset == name) for name in ("small", "large"))
    assert math.isnan(small.estimates["pearson"].low)
    assert not math.isnan(large.estimates["pearson"].low)
    assert math.isnan(metric.headline["pearson"].low)
    assert not math.isnan(metric.headline["pearson"].value)
    assert not math.isnan(metric.cells[-1].estimates["pearson"].low)
    assert math.isnan(compared.mean_of_cells.p_value)
    assert not math.isnan(compared.mean_of_cells.value)
    assert not math.isnan(compared.all_rows.p_value)


def test_statistics_of_pairs_and_verdicts_need_questions_of_their_own() -> None:
    # 40 questions; only the first 5 have two answers, and the metric judges 9 rows.
    rows = noisy([*(f"q{row // 2}" for row in range(10)), *(f"single {row}" for row in range(35))])
    rows.verdicts["a"][9:] = NAN
    found = agreement(rows, resamples=50).metrics[0].cells[-1].estimates
    assert not math.isnan(found["pearson"].low)
    for statistic in ("pairwise", "accuracy", "deviation"):
        assert not math.isnan(found[statistic].value)
        assert math.isnan(found[statistic].low), statistic


def test_few_items_leave_annotators_pairs_and_samples_without_an_interval() -> None:
    random = np.random.default_rng(0)
    for count, has_interval in ((LEAST_QUESTIONS - 1, False), (30, True)):
        ratings = random.integers(0, 2, size=(count, 3)).astype(float)
        ratings[0], ratings[1] = 0, 1
        annotators = annotator_agreement(ratings, resamples=100)
        votes = [["A", "A", "B"] if row % 2 else ["B", "B", "B"] for row in range(count)]
        pairs = preference_agreement(JudgedPairs(votes, {"e": ["A"] * count}), resamples=100)  # type: ignore[arg-type]
        samples = AveRows(random.random((count, 2)), random.random(count), ["d"] * count)
        found = [
            annotators.alpha["nominal"],
            annotators.pairs[0].kappa,
            pairs.evaluators[0].strata[-1].reproduced,
            *ave_properties(samples, resamples=100).parts,
        ]
        assert not any(math.isnan(each.value) for each in found)
        assert {not math.isnan(each.low) for each in found} == {has_interval}
    # The stratum of one pair out of many has none of its own.
    votes = [["A", "A", "A"] if row else ["A", "A", "B"] for row in range(30)]
    report = preference_agreement(JudgedPairs(votes, {"e": ["A"] * 30}), resamples=100)  # type: ignore[arg-type]
    of_one = next(each for each in report.evaluators[0].strata if each.stratum == "2/3")
    assert (of_one.reproduced.value, math.isnan(of_one.reproduced.low)) == (1.0, True)


def test_undefined_draws_are_counted_apart() -> None:
    resampled = np.full(5000, NAN)
    resampled[:2600] = np.random.default_rng(0).normal(1, 0.1, 2600)
    found = estimate(1.0, resampled, questions=100)
    assert (found.resamples, found.undefined) == (2600, 2400)
    assert found.low < 1 < found.high
    none = estimate(1.0, np.array([1.0, NAN, NAN]), questions=100)
    assert (none.resamples, none.undefined, math.isnan(none.low)) == (0, 2, True)


@pytest.mark.parametrize(("undefined", "has_p"), [(50, True), (51, False)])
def test_a_difference_that_many_draws_leave_undefined_has_no_p(undefined: int, *, has_p: bool) -> None:
    resampled = np.random.default_rng(0).normal(1, 1, 1000)
    resampled[:undefined] = NAN
    found = difference(1.0, resampled, questions=100)
    assert (found.resamples, found.undefined) == (1000 - undefined, undefined)
    assert math.isnan(found.p_value) != has_p
    assert found.low < found.high


def test_a_p_value_knows_that_so_many_draws_can_say_no_less() -> None:
    above = np.random.default_rng(0).random(1000) + 1
    assert difference(1.5, above, questions=100).p_value == pytest.approx(2 / 1001)
    assert difference(1.5, above, questions=100).at_floor
    above[0] = -1
    assert difference(1.5, above, questions=100).p_value == pytest.approx(4 / 1001)
    assert not difference(1.5, above, questions=100).at_floor
    assert not difference(1.5, above, questions=3).at_floor, "there is no p"


def test_means_say_how_many_cells_they_cover() -> None:
    # In the third data set `a` never tells anything apart.
    names = [f"data {row // 40}" for row in range(120)]
    rows = noisy([f"q{row}" for row in range(120)], names)
    rows.scores["a"][80:] = 0.0
    report = agreement(rows, compare=[("a", "b")], compare_statistics=["pearson", "accuracy"], resamples=100)
    first, second = (metric.headline["pearson"] for metric in report.metrics)
    assert (first.cells, first.cells_in_all) == (2, 3)
    assert (second.cells, second.cells_in_all) == (3, 3)
    of_cells = [cell.estimates["pearson"].value for cell in report.metrics[0].cells[:2]]
    assert first.value == pytest.approx(np.mean(of_cells))
    assert [(each.cells, each.cells_in_all) for each in report.comparisons] == [(2, 3), (3, 3)]
