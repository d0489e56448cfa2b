"""Every statistic of a table equals scipy's and scikit-learn's on the rows that have a score, whatever failed."""

import math
import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk
from tests.support.examples import example_count

from gradewire_stats.agreement.joint_bootstrap import JointBootstrap
from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import JudgedRows, parts_of
from gradewire_stats.agreement.statistics import ALL_STATISTICS, VERDICT_STATISTICS, Statistic
from gradewire_stats.bootstrap import draws, question_clusters, strata_of

SCORES = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0])
VERDICTS = st.sampled_from([0.0, 1.0, math.nan])
LABELS = st.sampled_from([0.0, 0.5, 1.0])
QUESTIONS = st.integers(0, 4)
ROWS = st.lists(st.tuples(st.one_of(SCORES, st.just(math.nan)), VERDICTS, LABELS, QUESTIONS), min_size=1, max_size=25)


def table(rows: list[tuple[float, float, float, int]]) -> JudgedRows:
    scores, verdicts, labels, questions = (list(column) for column in zip(*rows, strict=True))
    scores, verdicts, labels = (np.array(column, dtype=float) for column in (scores, verdicts, labels))
    verdicts = np.where(np.isnan(scores), np.nan, verdicts)
    blank = [""] * len(rows)
    return JudgedRows({"m": scores}, {"m": verdicts}, labels, blank, blank, [f"question {each}" for each in questions])


def expected(rows: list[tuple[float, float, float, int]]) -> dict[Statistic, float]:
    """The same figures from scipy, scikit-learn and a loop over all pairs, on the rows that have a score."""
    scored = [row for row in rows if not math.isnan(row[0])]
    found: dict[Statistic, float] = dict.fromkeys(ALL_STATISTICS, math.nan)
    if not scored:
        return found
    scores, verdicts, labels, questions = (np.array(column, dtype=float) for column in zip(*scored, strict=True))
    positive = labels >= 0.5
    if len(set(scores)) > 1 and len(set(labels)) > 1:
        found["pearson"] = stats.pearsonr(scores, labels).statistic
        found["spearman"] = stats.spearmanr(scores, labels).statistic
        found["kendall"] = stats.kendalltau(scores, labels).statistic
    if len(set(positive)) > 1:
        found["auc"] = sk.roc_auc_score(positive, scores)
    pairs = [
        (0.5 if scores[i] == scores[j] else float((scores[i] < scores[j]) == (labels[i] < labels[j])))
        for i, j in combinations(range(len(scores)), 2)
        if questions[i] == questions[j] and labels[i] != labels[j]
    ]
    if pairs:
        found["pairwise"] = sum(pairs) / len(pairs)
    judged = ~np.isnan(verdicts)
    if judged.any():
        said, true, human = verdicts[judged] == 1, positive[judged], labels[judged]
        found["accuracy"] = sk.accuracy_score(true, said)
        found["kappa"] = sk.cohen_kappa_score(true, said) if len({*said, *true}) > 1 else math.nan
        found["positive_rate"] = said.mean()
        found["deviation"] = said.mean() - human.mean()
        if said.any():
            found["precision"] = sk.precision_score(true, said)
        if true.any():
            found["recall"] = sk.recall_score(true, said)
        if said.any() or true.any():
            found["f1"] = sk.f1_score(true, said)
            if not (said.all() and true.all()):
                found["macro_f1"] = sk.f1_score(true, said, average="macro", labels=[False, True], zero_division=0)
    return found


@given(ROWS)
@settings(max_examples=example_count(60), deadline=None)
def test_every_statistic_equals_that_of_the_libraries(rows: list[tuple[float, float, float, int]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = agreement(table(rows), resamples=10).metrics[0].cells[-1]
    scored = [row for row in rows if not math.isnan(row[0])]
    assert (line.rows, line.failed) == (len(scored), len(rows) - len(scored))
    assert line.judged == sum(not math.isnan(row[1]) for row in scored)
    for statistic, value in expected(rows).items():
        assert line.estimates[statistic].value == pytest.approx(value, abs=1e-9, nan_ok=True), statistic


def many(rows: int = 300, *, failed: float = 0.3, seed: int = 0) -> JudgedRows:
    random = np.random.default_rng(seed)
    labels = random.choice([0.0, 0.5, 1.0], size=rows)
    columns = {
        name: np.round(labels * 0.4 + random.random(rows) * noise, 2) for name, noise in [("a", 0.6), ("b", 0.9)]
    }
    for column in columns.values():
        column[random.random(rows) < failed] = np.nan
    return JudgedRows(
        columns,
        {name: np.where(np.isnan(column), np.nan, column >= 0.5) for name, column in columns.items()},
        labels,
        ["nq" if row % 3 else "tq" for row in range(rows)],
        ["x" if row % 2 else "y" for row in range(rows)],
        [f"question {row // 4}" for row in range(rows)],
        ["when" if row % 5 == 0 else "who" if row % 5 == 1 else "" for row in range(rows)],
    )


def only(rows: JudgedRows, kept: np.ndarray) -> JudgedRows:
    return JudgedRows(
        {name: column[kept] for name, column in rows.scores.items()},
        {name: column[kept] for name, column in rows.verdicts.items()},
        rows.labels[kept],
        *([names[row] for row in kept] for names in (rows.datasets, rows.models, rows.questions, rows.groups)),
    )


def test_with_30_percent_failed_every_figure_is_that_of_the_rest() -> None:
    rows = many()
    for metric in ("a", "b"):
        report = agreement(rows, resamples=20)
        found = report.metrics[list(rows.scores).index(metric)]
        rest = only(rows, np.flatnonzero(~np.isnan(rows.scores[metric])))
        alone = agreement(rest, resamples=20).metrics[list(rows.scores).index(metric)]
        assert sum(cell.failed for cell in found.cells if cell.level == "cell") == np.isnan(rows.scores[metric]).sum()
        assert found.cells[-1].failed > 60
        assert [cell.level for cell in found.cells] == [cell.level for cell in alone.cells]
        for cell, of_rest in zip(found.cells, alone.cells, strict=True):
            assert (cell.rows, of_rest.failed) == (of_rest.rows, 0)
            for statistic in ALL_STATISTICS:
                assert cell.estimates[statistic].value == pytest.approx(
                    of_rest.estimates[statistic].value, nan_ok=True, abs=1e-12
                )
        for statistic in ALL_STATISTICS:
            assert found.headline[statistic].value == pytest.approx(
                alone.headline[statistic].value, nan_ok=True, abs=1e-12
            )


def test_draws_with_30_percent_failed_are_those_of_the_rest() -> None:
    # Questions are drawn whether or not their rows failed; so rows that failed are blanked, not removed, to compare.
    rows = many()
    kept = ~np.isnan(rows.scores["a"])
    blanked = JudgedRows(
        {"a": rows.scores["a"]},
        {"a": rows.verdicts["a"]},
        np.where(kept, rows.labels, 1.0),
        rows.datasets,
        rows.models,
        rows.questions,
        rows.groups,
    )
    first, second = (agreement(each, resamples=300).metrics[0].cells[-1] for each in (rows, blanked))
    for statistic in ALL_STATISTICS:
        one, other = first.estimates[statistic], second.estimates[statistic]
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)
        assert one.low < one.value < one.high


def test_comparisons_with_30_percent_failed_are_those_of_rows_that_both_scored() -> None:
    rows = many()
    both = ~np.isnan(rows.scores["a"]) & ~np.isnan(rows.scores["b"])
    rest = only(rows, np.flatnonzero(both))
    compared = [
        agreement(each, compare=[("a", "b")], compare_statistics=ALL_STATISTICS, resamples=50) for each in (rows, rest)
    ]
    assert [each.statistic for each in compared[0].comparisons] == list(ALL_STATISTICS)
    for found, alone in zip(compared[0].comparisons, compared[1].comparisons, strict=True):
        assert found.rows == alone.rows == both.sum()
        assert found.all_rows.value == pytest.approx(alone.all_rows.value, abs=1e-12)
        assert found.mean_of_cells.value == pytest.approx(alone.mean_of_cells.value, nan_ok=True, abs=1e-12)
        values = [metric.cells[-1].estimates[found.statistic].value for metric in compared[1].metrics]
        assert found.all_rows.value == pytest.approx(values[0] - values[1], abs=1e-12)


def test_every_draw_is_the_table_of_the_questions_it_drew() -> None:
    rows = many(120, failed=0.3, seed=3)
    clusters = question_clusters(rows.datasets, rows.questions)
    parts = parts_of(rows)
    bootstrap = JointBootstrap(rows, parts)
    cells = bootstrap.add_metric("a", ALL_STATISTICS)
    bootstrap.run(resamples=3, seed=7)
    (weights,) = draws(strata_of(rows.datasets, clusters), resamples=3, seed=7)
    for draw in range(3):
        for part, cell in zip(parts, cells, strict=True):
            # A question drawn twice is two questions, so its copies make no pairs with each other.
            drawn = [
                (rows.scores["a"][row], rows.verdicts["a"][row], rows.labels[row], copy * 1000 + clusters[row])
                for row in part.rows
                for copy in range(int(weights[draw, clusters[row]]))
            ]
            for statistic, value in expected(drawn).items():
                taken = cell.draws(statistic)
                found = taken[draw] if len(taken) else math.nan
                assert found == pytest.approx(value, abs=1e-9, nan_ok=True), (statistic, part)


def test_p_value_tells_a_better_metric_from_an_equal_one() -> None:
    random = np.random.default_rng(5)
    labels = (random.random(400) < 0.5).astype(float)
    columns = {"good": labels + random.normal(size=400), "same": labels + random.normal(size=400)}
    columns["bad"] = random.normal(size=400)
    blank = [""] * 400
    verdicts = {name: (column >= 0.5).astype(float) for name, column in columns.items()}
    report = agreement(
        JudgedRows(columns, verdicts, labels, blank, blank, blank),
        compare=[("good", "bad"), ("bad", "good"), ("good", "same"), ("good", "good")],
        resamples=500,
    )
    by_pair = {(each.metric, each.baseline, each.statistic): each.all_rows for each in report.comparisons}
    for statistic in ("pearson", "auc", "accuracy"):
        good, turned = by_pair["good", "bad", statistic], by_pair["bad", "good", statistic]
        assert good.p_value == turned.p_value == pytest.approx(2 / 501), "no draw on the other side"
        assert (good.value, good.low, good.high) == pytest.approx((-turned.value, -turned.high, -turned.low))
        assert by_pair["good", "same", statistic].p_value > 0.05
        itself = by_pair["good", "good", statistic]
        assert (itself.value, itself.low, itself.high, itself.p_value) == (0, 0, 0, 1)


def test_groups_are_lines_and_rows_without_one_are_in_none() -> None:
    cells = agreement(many(), resamples=10).metrics[0].cells
    groups = {cell.group: cell for cell in cells if cell.level == "group"}
    assert set(groups) == {"when", "who"}
    assert groups["when"].rows + groups["when"].failed == 60
    assert cells[-1].level == "all"
    assert (cells[-1].group, cells[-1].dataset, cells[-1].model) == ("", "", "")


def test_rank_statistics_say_that_they_use_fewer_draws() -> None:
    estimates = agreement(many(60), resamples=1200).metrics[0].cells[-1].estimates
    ranked = {"spearman", "kendall", "auc"}
    assert {name: each.resamples for name, each in estimates.items()} == {
        name: 1000 if name in ranked else 1200 for name in ALL_STATISTICS
    }


@pytest.mark.parametrize("scores", [[0.5] * 12, [1e308, -1e308] * 6, [5e-324, 0.0] * 6, [1.0, 1.0 + 2**-52] * 6])
@pytest.mark.parametrize("labels", [[0.0, 1.0, 1.0] * 4, [1.0] * 12, [0.0] * 12, [1.0, 5.0, 3.0] * 4])
def test_extreme_columns_warn_of_nothing_and_leave_no_infinity(scores: list[float], labels: list[float]) -> None:
    blank = [""] * 12
    column = np.array(scores)
    rows = JudgedRows(
        {"m": column}, {"m": (column > 0.5).astype(float)}, np.array(labels), blank, blank, ["q", "r"] * 6
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = agreement(rows, compare=[("m", "m")], compare_statistics=ALL_STATISTICS, resamples=30)
    estimates = report.metrics[0].cells[0].estimates
    for estimate in estimates.values():
        assert not any(math.isinf(value) for value in (estimate.value, estimate.low, estimate.high))
    if len(set(labels)) == 1 or len(set(scores)) == 1:
        assert math.isnan(estimates["pearson"].value)
        assert math.isnan(estimates["kendall"].value)
    if max(labels) > 1:
        assert all(math.isnan(estimates[statistic].value) for statistic in (*VERDICT_STATISTICS, "auc"))


def test_many_answers_to_one_question_are_counted_without_all_pairs() -> None:
    # 60 000 rows of one question are 1 800 million pairs.
    random = np.random.default_rng(2)
    labels = (random.random(60_000) < 0.5).astype(float)
    scores = labels + random.normal(size=60_000)
    blank = [""] * 60_000
    rows = JudgedRows({"m": scores}, {"m": np.full(60_000, np.nan)}, labels, blank, blank, ["same"] * 60_000)
    line = agreement(rows, statistics=["pairwise", "auc"], resamples=2).metrics[0].cells[-1]
    # One question and two labels: the pairs are those of the area under the curve.
    assert line.estimates["pairwise"].value == pytest.approx(line.estimates["auc"].value, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0.0, math.nan])}, "a label is not a finite number"),
        ({"labels": np.array([0.0])}, "1 labels and 2 datasets differ"),
        ({"groups": ["a"]}, "2 labels and 1 groups differ"),
        ({"verdicts": {"m": np.array([1.0])}}, "2 labels and 1 verdicts of m differ"),
    ],
)
def test_unequal_columns_and_missing_labels_are_refused(change: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {
        "scores": {"m": np.array([0.1, 0.2])},
        "verdicts": {"m": np.array([1.0, 0.0])},
        "labels": np.array([0.0, 1.0]),
        "datasets": ["", ""],
        "models": ["", ""],
        "questions": ["", ""],
    }
    with pytest.raises(ValueError, match=message):
        agreement(JudgedRows(**(fields | change)), resamples=5)


def test_a_cut_makes_verdicts_of_scores_and_none_of_failures() -> None:
    rows = many().with_cuts({"a": 0.5})
    np.testing.assert_array_equal(
        rows.verdicts["a"][~np.isnan(rows.scores["a"])], rows.scores["a"][~np.isnan(rows.scores["a"])] >= 0.5
    )
    assert np.isnan(rows.verdicts["a"][np.isnan(rows.scores["a"])]).all()
    with pytest.raises(ValueError, match=r"cannot cut c\. Scored metrics are a, b"):
        rows.with_cuts({"c": 0.5})
    with pytest.raises(ValueError, match="Use a finite number"):
        rows.with_cuts({"a": math.nan})
