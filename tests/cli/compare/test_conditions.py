import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.compare.conditions import (
    MAX_CHARACTERS,
    VALUE_NAMES,
    Condition,
    condition_value,
    parse_condition,
)
from gradewire_stats.comparison import PairedRows, compare_pairs, preferences

METRICS = st.text(min_size=1, max_size=60).filter(lambda text: text == text.strip() and text.isprintable())
NUMBERS = st.floats(-1e6, 1e6).filter(lambda number: number == 0 or abs(number) > 1e-9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("smile.mean < -0.01", Condition("smile", "mean", "<", -0.01)),
        ("smile.mean.low<0", Condition("smile", "mean.low", "<", 0.0)),
        ("  smile:fast.p <= .05 ", Condition("smile:fast", "p", "<=", 0.05)),
        ("bleu?max_ngram=2.share_right.p >= 1e-3", Condition("bleu?max_ngram=2", "share_right.p", ">=", 0.001)),
        ("sbert?model=bge-small-en-v1.5.losses > +1.", Condition("sbert?model=bge-small-en-v1.5", "losses", ">", 1.0)),
        ("a.mean.mean.high > 0", Condition("a.mean", "mean.high", ">", 0.0)),
    ],
)
def test_conditions_are_read(text: str, expected: Condition) -> None:
    assert parse_condition(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "use METRIC.VALUE"),
        ("smile.mean", "use METRIC.VALUE"),
        ("smile.mean == 0", "use METRIC.VALUE|unknown value"),
        ("smile.mean < nan", "use METRIC.VALUE"),
        ("smile.mean < inf", "use METRIC.VALUE"),
        ("smile.mean < 0x10", "use METRIC.VALUE"),
        ("smile.mean < 1_0", "use METRIC.VALUE"),
        ("smile.mean < \N{ARABIC-INDIC DIGIT ONE}", "use METRIC.VALUE"),
        ("smile.mean < __import__('os')", "use METRIC.VALUE"),
        ("smile.mean < 1e400", "1e400 is too large"),
        ("smile < 0", "unknown value 'smile'"),
        (".mean < 0", "unknown value"),
        ("smile.median < 0", "unknown value 'median'. Choose one of mean, mean.low"),
        ("x" * MAX_CHARACTERS + ".mean < 0", "the condition has 1009 characters"),
        ("<" * MAX_CHARACTERS, "use METRIC.VALUE"),
        (" " * (MAX_CHARACTERS - 1) + "<", "use METRIC.VALUE"),
    ],
)
def test_what_is_no_condition_is_refused_with_a_way_out(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_condition(text)


@given(METRICS, st.sampled_from(VALUE_NAMES), st.sampled_from(["<", "<=", ">", ">="]), NUMBERS)
def test_a_condition_is_read_as_it_was_written(metric: str, figure: str, sign: str, number: float) -> None:
    written = parse_condition(f"{metric}.{figure} {sign} {number!r}")
    assert (written.sign, written.number) == (sign, number)
    # A metric may end like a figure itself: together they are what was written.
    assert f"{written.metric}.{written.value_name}" == f"{metric}.{figure}"
    assert parse_condition(str(written)).value_name == written.value_name


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        found = parse_condition(text)
        assert found.value_name in VALUE_NAMES
        assert math.isfinite(found.number)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_signs_mean_what_they_say(value: float, number: float) -> None:
    held = {sign: Condition("m", "mean", sign, number).holds(value) for sign in ("<", "<=", ">", ">=")}
    assert held == {"<": value < number, "<=": value <= number, ">": value > number, ">=": value >= number}


def test_every_figure_is_that_of_the_comparison() -> None:
    random = np.random.default_rng(0)
    scores = random.random((50, 2))
    verdicts = (scores > 0.4).astype(np.float64)
    failed = np.zeros((50, 2), dtype=np.bool_)
    failed[:3, 1] = True
    empty = np.zeros((50, 2), dtype=np.bool_)
    empty[3, 1] = True
    scores[3, 1] = verdicts[3, 1] = math.nan
    scores[:3, 1] = verdicts[:3, 1] = math.nan
    rows = PairedRows(
        scores={"m": scores},
        verdicts={"m": verdicts},
        empty={"m": empty},
        failed={"m": failed},
        preferred={"m": preferences(scores, verdicts, 0.2), "judge": np.ones(50)},
        questions=np.arange(50),
        strata=np.zeros(50, dtype=np.intp),
    )
    found = compare_pairs(rows)
    metric, outcomes = found.metrics["m"], found.outcomes["m"]
    of_scores, of_verdicts = metric.empty_as_wrong.difference, metric.empty_as_wrong.verdicts
    assert of_verdicts is not None
    assert of_scores.value == pytest.approx(np.nan_to_num(scores[3:]).mean(axis=0) @ [-1, 1])
    assert of_verdicts.difference.value == pytest.approx(np.nan_to_num(verdicts[3:]).mean(axis=0) @ [-1, 1])
    assert {figure: condition_value(found, "m", figure) for figure in VALUE_NAMES} == {
        "mean": of_scores.value,
        "mean.low": of_scores.low,
        "mean.high": of_scores.high,
        "p": of_scores.p_value,
        "share_right": of_verdicts.difference.value,
        "share_right.low": of_verdicts.difference.low,
        "share_right.high": of_verdicts.difference.high,
        "share_right.p": of_verdicts.p_value,
        "wins": outcomes.win_share.value,
        "wins.low": outcomes.win_share.low,
        "wins.high": outcomes.win_share.high,
        "wins.p": outcomes.p_value,
        "ties": outcomes.tie_share.value,
        "ties.low": outcomes.tie_share.low,
        "ties.high": outcomes.tie_share.high,
        "losses": outcomes.loss_share.value,
        "losses.low": outcomes.loss_share.low,
        "losses.high": outcomes.loss_share.high,
    }
    assert condition_value(found, "judge", "wins") == 1.0
    with pytest.raises(KeyError):
        condition_value(found, "judge", "mean")
