"""Which rows are disagreements, what that is read from, and which of them are shown."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.pages.cases import FAR, Direction, Disagreements, worst

NONE = np.nan


def found(
    scores: list[float], labels: list[float], verdicts: list[float] | None = None, *, most: int = 25
) -> dict[Direction, Disagreements]:
    called = [NONE] * len(scores) if verdicts is None else verdicts
    return worst(np.array(scores), np.array(called), np.array(labels), most=most)


def test_only_rows_whose_verdict_is_not_the_label_are_disagreements_where_there_is_one() -> None:
    # By rank rows 1 and 4 are out of order, too: a right answer scored less than 0.8, a wrong one more than 0.6.
    scores, labels, verdicts = [0.9, 0.8, 0.1, 0.5, 0.6], [0.0, 0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0, 1.0]
    disagreements = found(scores, labels, verdicts)
    assert disagreements["high"].rows.tolist() == [0]
    assert disagreements["low"].rows.tolist() == [2, 3]
    for direction, count in (("high", 1), ("low", 2)):
        each = disagreements[direction]  # type: ignore[index]  # a literal in a loop
        assert each.by_verdict.all()
        assert each.totals == {"verdict": count}


def test_a_verdict_that_the_ranks_do_not_speak_against_is_a_disagreement_all_the_same() -> None:
    # Ordered rightly, but the threshold lies too high: all right answers are called wrong.
    disagreements = found([0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0])
    assert disagreements["low"].rows.tolist() == [2, 3]
    assert disagreements["high"].totals == {"verdict": 0}


def test_without_a_verdict_a_row_is_one_when_its_rank_is_far_off() -> None:
    disagreements = found([0.9, 0.8, 0.1, 0.2, 0.95, 0.05], [0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    high, low = disagreements["high"], disagreements["low"]
    assert high.rows.tolist() == [0, 1]
    assert low.rows.tolist() == [2, 3]
    assert not high.by_verdict.any()
    # Fifth of six by score; the three wrong answers share the middle of the lower half by label.
    assert (high.score_ranks[0], high.label_ranks[0]) == (4.5 / 6, 1.5 / 6)
    assert high.totals == low.totals == {"rank": 2}


def test_a_rank_that_is_a_little_off_is_no_disagreement() -> None:
    # Of ten graded answers in order two neighbours are exchanged.
    labels = [float(grade) for grade in range(10)]
    scores = [0.0, 0.1, 0.3, 0.2, *(grade / 10 for grade in range(4, 10))]
    assert [each.totals["rank"] for each in found(scores, labels).values()] == [0, 0]


def test_verdicts_do_not_count_where_labels_have_no_sides() -> None:
    disagreements = found([900.0, 1.0, 400.0, 500.0], [0.0, 10.0, 4.0, 5.0], [1.0, 0.0, 1.0, 1.0], most=1)
    assert disagreements["high"].rows.tolist() == [0]
    assert disagreements["low"].rows.tolist() == [1]
    assert disagreements["low"].totals == {"rank": 1}


def test_a_metric_with_verdicts_on_some_rows_is_read_by_both() -> None:
    disagreements = found([0.9, 0.8, 0.2, 0.1], [0.0, 0.0, 1.0, 1.0], [1.0, NONE, NONE, 0.0])
    assert disagreements["high"].rows.tolist() == [0, 1]
    assert disagreements["high"].by_verdict.tolist() == [True, False]
    assert disagreements["low"].totals == {"verdict": 1, "rank": 1}


def test_the_order_is_by_ranks_where_values_would_say_otherwise() -> None:
    # A metric of 0 to 10 whose scores crowd below 1. Ranks of the scores: 8, 9, 1, 2 to 7; of the labels (one 0, two
    # 0.5, six 1): 1, 2.5, 2.5, 6.5. So row 0 is 7 too high and row 1 is 6.5, though 9.5 lie between its score and
    # its label and only 3 between row 0's. Rows 2, 6, 7 and 8 are less than a quarter of nine off.
    scores = [3.0, 10.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    disagreements = found(scores, [0.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert disagreements["high"].rows.tolist() == [0, 1]
    assert disagreements["low"].rows.tolist() == [3, 4, 5]


def test_failed_rows_and_tables_without_a_score_are_left_out() -> None:
    labels = [0.0, 1.0, 1.0]
    assert not len(found([NONE, 0.1, 0.2], labels)["high"].rows)
    assert found([NONE] * 3, labels)["low"].totals == {}


def test_rows_equally_bad_are_spread_over_the_file() -> None:
    # 100 wrong answers with a match, 100 right answers without: all equally bad.
    scores, labels = [1.0] * 100 + [0.0] * 100, [0.0] * 100 + [1.0] * 100
    for verdicts in (None, scores):
        high = found(scores, labels, verdicts, most=5)["high"]
        assert sum(high.totals.values()) == 100
        assert high.rows.tolist() == [0, 25, 50, 74, 99]


ROWS = st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([0.0, 1.0, NONE]))


@given(st.lists(ROWS, min_size=1, max_size=30), st.sampled_from([1, 3]))
def test_every_row_shown_is_a_disagreement_and_every_disagreement_is_shown(
    rows: list[tuple[int, int, float]], best: int
) -> None:
    scores, grades, verdicts = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    labels = grades / 3 * best  # up to 1: labels with sides; up to 3: without, unless all are small
    disagreements = worst(scores, verdicts, labels, most=100)
    places = range(len(rows))

    def place(column: np.ndarray, row: int) -> float:
        return float(sum(column < column[row]) + sum(column == column[row]) / 2) / len(rows)

    expected: dict[str, set[int]] = {"high": set(), "low": set()}
    for row in places:
        if labels.max() <= 1 and not np.isnan(verdicts[row]):
            if (verdicts[row] == 1) != (labels[row] >= 0.5):
                expected["high" if verdicts[row] == 1 else "low"].add(row)
            continue
        gap = place(scores, row) - place(labels, row)
        if gap >= FAR and any(labels[j] > labels[row] and scores[j] < scores[row] for j in places):
            expected["high"].add(row)
        if gap <= -FAR and any(labels[j] < labels[row] and scores[j] > scores[row] for j in places):
            expected["low"].add(row)
    assert set(disagreements["high"].rows.tolist()) == expected["high"]
    assert set(disagreements["low"].rows.tolist()) == expected["low"]
