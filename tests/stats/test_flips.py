"""Pairs with one changed place, and edits: values computed by hand, shares that add up, and failures."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_stats.flips import EditStatistics, FlipStatistics, TwoForms, edit_statistics, flip_statistics

NAN = math.nan


def forms(*answers: tuple[float, float, bool, float, float, bool], questions: Any = ()) -> TwoForms:
    """Score, verdict and certainty of each answer, then the same of its other form."""
    table = np.array(answers, dtype=np.float64).reshape(-1, 2, 3)
    return TwoForms(
        scores=table[:, :, 0], verdicts=table[:, :, 1], certain=table[:, :, 2].astype(bool), questions=questions
    )


# Four changes that make the answer wrong, then two that keep it right.
PAIRS = forms(
    (0.9, 1, True, 0.2, 0, True),  # as it should be
    (0.9, 1, True, 0.9, 1, True),  # a tie, silently wrong
    (0.4, 0, True, 0.8, 1, False),  # the right answer called wrong, the wrong one scores higher but is UNCERTAIN
    (0.8, 1, False, 0.7, 0, False),  # noticed, nothing certain
    (0.9, 1, True, 0.3, 0, True),  # the harmless change turns the verdict
    (0.9, 1, False, NAN, NAN, True),  # the harmless change cannot be scored
)
STILL_RIGHT = np.array([False, False, False, False, True, True])


def test_pairs_by_hand() -> None:
    found = flip_statistics(PAIRS, STILL_RIGHT, resamples=100)
    assert (found.pairs, found.right, found.wrong) == (6, 8, 4)
    assert (found.without_score, found.without_verdict) == (1, 1)
    assert found.decided_right.value == pytest.approx(4 / 12), "pair 1 both, the answers of pairs 2 and 5"
    assert found.wrong_called_right.value == pytest.approx(1 / 4)
    assert found.right_called_wrong.value == pytest.approx(2 / 8)
    assert found.uncertain_right.value == pytest.approx(2 / 8)
    assert found.uncertain_wrong.value == pytest.approx(2 / 4)
    assert (found.noticed.value, found.noticed_pairs) == (pytest.approx(2 / 4), 4)
    assert (found.kept.value, found.kept_pairs) == (0.0, 1)


def test_edits_by_hand() -> None:
    found = edit_statistics(PAIRS, resamples=100)
    assert (found.answers, found.scored, found.judged) == (6, 5, 5)
    assert found.verdicts_changed.value == pytest.approx(4 / 5), "all but the tie"
    # Certain before: pairs 1, 2, 3 and 5.
    assert found.certain_changed.value == pytest.approx(3 / 4)
    assert found.score_change.value == pytest.approx((0.7 + 0 + 0.4 + 0.1 + 0.6) / 5)


def test_a_certain_verdict_that_becomes_uncertain_has_changed() -> None:
    found = edit_statistics(forms((0.9, 1, True, 0.7, 1, False), (0.6, 1, False, 0.9, 1, True)), resamples=100)
    assert found.verdicts_changed.value == 0.0
    assert found.certain_changed.value == 1.0


def test_a_metric_without_verdicts_has_only_what_scores_say() -> None:
    scores = forms((0.9, NAN, True, 0.2, NAN, True), (0.9, NAN, True, 0.9, NAN, True))
    found = flip_statistics(scores, np.array([False, False]), resamples=100)
    shares = found.decided_right, found.wrong_called_right, found.right_called_wrong, found.uncertain_right, found.kept
    assert all(math.isnan(share.value) for share in shares)
    assert found.noticed.value == 0.5
    assert (found.without_score, found.without_verdict) == (0, 4)
    assert math.isnan(edit_statistics(scores, resamples=100).certain_changed.value)


def test_without_answers_everything_is_undefined() -> None:
    nothing = forms()
    assert math.isnan(flip_statistics(nothing, np.array([], dtype=bool)).noticed.value)
    assert math.isnan(edit_statistics(nothing).score_change.value)


def test_whole_questions_are_drawn() -> None:
    random = np.random.default_rng(0)
    noticed = np.repeat(random.random(20) < 0.5, 20)
    table = [(0.9, 1, True, 0.1 if each else 0.9, 1, True) for each in noticed]
    wrong = np.zeros(400, dtype=bool)
    apart = flip_statistics(forms(*table), wrong, resamples=300).noticed
    together = flip_statistics(
        forms(*table, questions=[f"q{row // 20}" for row in range(400)]), wrong, resamples=300
    ).noticed
    assert apart.value == together.value
    assert together.high - together.low > 2 * (apart.high - apart.low)
    assert (apart.questions, together.questions) == (400, 20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": np.zeros((6, 3))}, r"scores have the shape \(6, 3\). Use \(6, 2\)"),
        ({"certain": np.ones((5, 2), dtype=bool)}, r"certain have the shape \(5, 2\)"),
        ({"verdicts": np.full((6, 2), 0.5)}, "a verdict is not 0 or 1"),
        ({"questions": ["a"]}, "6 answers and 1 questions"),
    ],
)
def test_columns_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    given = {name: getattr(PAIRS, name) for name in ("scores", "verdicts", "certain", "questions")} | changes
    with pytest.raises(ValueError, match=message):
        edit_statistics(TwoForms(**given))
    with pytest.raises(ValueError, match=message):
        flip_statistics(TwoForms(**given), STILL_RIGHT)


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="6 answers and 2 labels"):
        flip_statistics(PAIRS, STILL_RIGHT[:2])


SCORES = st.sampled_from([NAN, 0.0, 0.25, 0.5, 1.0])
VERDICTS = st.sampled_from([NAN, 0.0, 1.0])
ANSWERS = st.tuples(SCORES, VERDICTS, st.booleans(), SCORES, VERDICTS, st.booleans())
TABLES = st.lists(st.tuples(ANSWERS, st.booleans(), st.sampled_from("abc")), min_size=1, max_size=12)


def measured(table: list[Any]) -> tuple[FlipStatistics, EditStatistics]:
    answers, labels, questions = zip(*table, strict=True)
    given = forms(*answers, questions=questions)
    return flip_statistics(given, np.array(labels), resamples=1), edit_statistics(given, resamples=1)


@given(TABLES)
@settings(max_examples=example_count(100))
def test_shares_of_verdicts_add_up_and_the_order_of_pairs_does_not_matter(table: list[Any]) -> None:
    found, edits = measured(table)
    verdicts = [(row[0][1 + 3 * form], row[0][2 + 3 * form], form == 0 or row[1]) for row in table for form in (0, 1)]
    for is_right, silent, unsure in (
        (True, found.right_called_wrong, found.uncertain_right),
        (False, found.wrong_called_right, found.uncertain_wrong),
    ):
        mine = [(verdict, certain) for verdict, certain, right in verdicts if right == is_right]
        if not mine or found.without_verdict == 2 * found.pairs:
            assert math.isnan(silent.value)
            continue
        decided = sum(certain and verdict == is_right for verdict, certain in mine) / len(mine)
        missing = sum(math.isnan(verdict) for verdict, _ in mine) / len(mine)
        assert decided + silent.value + unsure.value + missing == pytest.approx(1.0)
    again, edits_again = measured(table[::-1])
    for one, other in ((found, again), (edits, edits_again)):
        for name in type(one).__slots__:
            mine_, theirs = (getattr(getattr(each, name), "value", getattr(each, name)) for each in (one, other))
            assert mine_ == pytest.approx(theirs, nan_ok=True), name
