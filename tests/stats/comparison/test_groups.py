"""Groups beside a baseline: by hand, against the formula for the error of a mean, and by properties."""

import math
from collections.abc import Iterator
from random import Random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.examples import example_count

from gradewire_stats.bootstrap import draws
from gradewire_stats.comparison import GroupedRows, GroupStatistics, PairedDifference, compare_groups, groups

NAN = math.nan


def rows_of(answers: list[tuple[str, str, float]], *, dataset: str = "") -> GroupedRows:
    """Rows of one data set: (model, question, score)."""
    models = list(dict.fromkeys(model for model, _, _ in answers))
    questions = list(dict.fromkeys(question for _, question, _ in answers))
    return GroupedRows.of(
        {"smile": [score for *_, score in answers]},
        [models.index(model) for model, _, _ in answers],
        [(model,) if not dataset else (model, dataset) for model in models],
        [questions.index(question) for _, question, _ in answers],
        [0] * len(questions),
    )


def found(rows: GroupedRows, **options: int | str) -> dict[tuple[str, ...], GroupStatistics]:
    return {line.group: line for line in compare_groups(rows, **options)["smile"]}  # type: ignore[arg-type]


def test_a_difference_is_the_mean_over_the_questions_that_both_answered() -> None:
    answers = [
        *(("base", "q1", 0.2), ("base", "q2", 0.4), ("base", "q3", 0.9), ("base", "q5", NAN)),
        # q1 twice: its mean counts once. q4 and q5 are not the baseline's, q3 has no score.
        *(("new", "q1", 0.5), ("new", "q1", 0.7), ("new", "q2", 0.3), ("new", "q3", NAN), ("new", "q4", 1.0)),
        *(("new", "q5", 1.0),),
    ]
    lines = found(rows_of(answers))
    base, new = lines["base",], lines["new",]
    assert (base.rows, base.scored, base.mean.value) == (4, 3, pytest.approx(0.5))
    assert (new.rows, new.scored, new.mean.value) == (6, 5, pytest.approx((0.5 + 0.7 + 0.3 + 1 + 1) / 5))
    assert base.paired is None
    assert new.paired is not None
    assert (new.paired.baseline, new.paired.questions) == (("base",), 2)
    assert new.paired.mean.value == pytest.approx(((0.6 - 0.2) + (0.3 - 0.4)) / 2)
    assert new.paired.mean.bare, "no interval for so few questions"


def test_intervals_are_those_of_the_error_of_a_mean() -> None:
    random = np.random.default_rng(1)
    base = random.uniform(size=900)
    apart = random.normal(0.03, 0.2, size=900)
    answers = [("base", str(place), float(score)) for place, score in enumerate(base)]
    answers += [("new", str(place), float(score)) for place, score in enumerate(base + apart)]
    lines = found(rows_of(answers), resamples=4000)
    for estimate, values in ((lines["base",].mean, base), (_paired(lines["new",]).mean, apart)):
        half = 1.96 * values.std(ddof=1) / math.sqrt(900)
        assert estimate.value == pytest.approx(values.mean())
        assert estimate.low == pytest.approx(values.mean() - half, abs=0.1 * half)
        assert estimate.high == pytest.approx(values.mean() + half, abs=0.1 * half)
    assert _paired(lines["new",]).mean.p_value < 0.001


def test_answers_to_one_question_are_drawn_together() -> None:
    """Ten equal answers to each question say no more than one does."""
    random = np.random.default_rng(2)
    scores = random.uniform(size=60)
    once = found(rows_of([("m", str(place), float(score)) for place, score in enumerate(scores)]))
    often = found(rows_of([("m", str(place), float(score)) for place, score in enumerate(scores) for _ in range(10)]))
    assert (often["m",].mean.low, often["m",].mean.high) == pytest.approx((once["m",].mean.low, once["m",].mean.high))


def test_many_small_data_sets_have_intervals_as_wide_as_the_error_of_their_mean() -> None:
    """Whole draws of two questions have half the spread of the mean of two."""
    random = np.random.default_rng(3)
    scores = random.uniform(size=(300, 2))
    rows = GroupedRows.of(
        {"smile": scores.ravel().tolist()}, [0] * 600, [("m",)], list(range(600)), np.repeat(np.arange(300), 2).tolist()
    )
    mean = found(rows, resamples=4000)["m",].mean
    half = 1.96 * math.sqrt(float((scores.var(axis=1, ddof=1) / 2).mean()) / 300)
    assert mean.high - mean.low == pytest.approx(2 * half, rel=0.05)


def test_a_model_on_a_data_set_is_compared_with_the_baseline_on_that_data_set() -> None:
    scores = {("a", "nq"): 0.1, ("b", "nq"): 0.4, ("a", "tq"): 0.8, ("b", "tq"): 0.7, ("b", "hq"): 0.5}
    questions = {"nq": range(20), "tq": range(20, 40), "hq": range(40, 60)}
    names = list(scores)
    cells = [(name, question) for name in names for question in questions[name[1]]]
    rows = GroupedRows.of(
        {"smile": [scores[name] for name, _ in cells]},
        [names.index(name) for name, _ in cells],
        names,
        [question for _, question in cells],
        [0] * 20 + [1] * 20 + [2] * 20,
    )
    lines = found(rows)
    assert _paired(lines["b", "nq"]).mean.value == pytest.approx(0.3)
    assert _paired(lines["b", "tq"]).mean.value == pytest.approx(-0.1)
    assert _paired(lines["b", "tq"]).baseline == ("a", "tq")
    assert lines["b", "hq"].paired is None, "the baseline did not answer that data set"
    other = found(rows, baseline="b")
    assert _paired(other["a", "nq"]).mean.value == pytest.approx(-0.3)
    assert other["b", "nq"].paired is None


def test_groups_too_small_for_an_interval_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def counted(
        strata: NDArray[np.intp], *, resamples: int, seed: int, one_fewer: bool
    ) -> Iterator[NDArray[np.float64]]:
        drawn.append(resamples)
        yield from draws(strata, resamples=resamples, seed=seed, one_fewer=one_fewer)

    monkeypatch.setattr(groups, "draws", counted)
    lines = found(rows_of([(f"row {place}", str(place), place / 30) for place in range(30)]))
    found(rows_of([("m", str(place), place / 30) for place in range(30)]))
    monkeypatch.setattr(groups, "_MOST_DRAWN", 36_000)
    found(rows_of([("m", str(place), place / 30) for place in range(30)]))
    found(rows_of([("m", str(place), place / 60) for place in range(60)]))
    assert drawn[1:] == [2000, 1200, 1000], "many questions need fewer draws, and never so few as to say nothing"
    assert drawn[0] == 0, "a column of ids makes a group of every row"
    assert all(line.mean.bare and line.rows == 1 for line in lines.values())
    assert [line.mean.value for line in lines.values()] == pytest.approx([place / 30 for place in range(30)])


def test_groups_without_a_common_question_have_no_difference() -> None:
    lines = found(rows_of([("a", "q1", 0.5), ("b", "q2", 0.7)]))
    assert lines["b",].paired is None


def test_a_group_without_scores_has_no_mean() -> None:
    lines = found(rows_of([("a", "q1", 0.5), ("b", "q1", NAN)]))
    assert (lines["b",].rows, lines["b",].scored, lines["b",].paired) == (1, 0, None)
    assert math.isnan(lines["b",].mean.value)


def test_an_unknown_baseline_is_refused_and_no_group_is_none() -> None:
    with pytest.raises(ValueError, match="no group has the baseline 'c'"):
        compare_groups(rows_of([("a", "q1", 0.5)]), baseline="c")
    assert compare_groups(GroupedRows.of({"smile": [0.5]}, [-1], [], [0], [0])) == {"smile": []}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["base", "new", "third"]),
            st.integers(0, 14).map(str),
            st.one_of(st.just(NAN), st.floats(0, 1)),
        ),
        min_size=1,
        max_size=60,
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=example_count(60), deadline=None)
def test_the_order_of_rows_changes_nothing(answers: list[tuple[str, str, float]], random: Random) -> None:
    answers = [("base", "0", 0.5), *answers]
    plain = found(rows_of(answers), resamples=100)
    shuffled = answers[1:]
    random.shuffle(shuffled)
    mixed = found(rows_of([answers[0], *shuffled]), resamples=100)
    assert plain.keys() == mixed.keys()
    for name, line in plain.items():
        other = mixed[name]
        assert (line.rows, line.scored) == (other.rows, other.scored)
        assert line.mean.value == pytest.approx(other.mean.value, nan_ok=True)
        by_hand = difference_by_hand(answers, name[0])
        assert (line.paired is None) == (by_hand is None)
        if line.paired is not None and other.paired is not None:
            assert line.paired.questions == other.paired.questions
            assert line.paired.mean.value == pytest.approx(by_hand)
            assert other.paired.mean.value == pytest.approx(by_hand)


def difference_by_hand(answers: list[tuple[str, str, float]], model: str) -> float | None:
    def means(of: str) -> dict[str, float]:
        scored: dict[str, list[float]] = {}
        for name, question, score in answers:
            if name == of and not math.isnan(score):
                scored.setdefault(question, []).append(score)
        return {question: fmean(scores) for question, scores in scored.items()}

    if model == "base":
        return None
    here, there = means(model), means("base")
    shared = here.keys() & there.keys()
    return fmean(here[question] - there[question] for question in sorted(shared)) if shared else None


def _paired(line: GroupStatistics) -> PairedDifference:
    assert line.paired is not None
    return line.paired
