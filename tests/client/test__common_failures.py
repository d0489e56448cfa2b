"""One warning for steps that fail as a whole, at the first, the tenth, the hundredth of them."""

import logging
import pickle
from collections.abc import Sequence

import pytest

from gradewire._common_failures import FailureNotices, Outcome, common_failure, item_fields
from gradewire.results import Status

_log = logging.getLogger("gradewire.test")
BAD = (Status.INVALID_INPUT, "items[3].references is missing (found: gold)")
OK = (Status.OK, "")


@pytest.mark.parametrize(
    ("outcomes", "found"),
    [
        ([], None),
        ([OK, OK], None),
        ([BAD, OK], None),
        ([OK, BAD], None),
        ([BAD, (Status.INVALID_INPUT, "items[4].references is missing (found: gold)")], BAD),
        ([BAD, (Status.INVALID_INPUT, "items[4].prediction is missing (found: gold)")], None),
        ([BAD, (Status.INTERNAL, BAD[1])], None),
        ([(Status.EMPTY_PREDICTION, "")] * 3, (Status.EMPTY_PREDICTION, "")),
    ],
)
def test_a_common_failure_is_one_of_all_items(outcomes: Sequence[Outcome], found: Outcome | None) -> None:
    assert common_failure(outcomes) == found


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_ten_thousand_steps_that_fail_alike_warn_five_times(caplog: pytest.LogCaptureFixture) -> None:
    notices = FailureNotices(_log)
    for step in range(10_000):
        notices.take(f"answers of step {step}", {"smile": [BAD] * 2}, lambda: "The fields are gold")
    first, second, *rest = warned(caplog)
    assert first == f"all 2 answers of step 0 failed for smile: INVALID_INPUT: {BAD[1]}. The fields are gold"
    assert second.startswith(
        "all 2 answers of step 9 failed for smile (for the 10th time; the next warning comes at 100): INVALID_INPUT"
    )
    assert len(rest) == 3


def test_only_what_fields_can_cause_names_them(caplog: pytest.LogCaptureFixture) -> None:
    notices = FailureNotices(_log)
    notices.take("answers", {"smile": [(Status.MODEL_UNAVAILABLE, "no model")], "bleu": [OK]}, lambda: "unused")
    assert warned(caplog) == ["all 1 answers failed for smile: MODEL_UNAVAILABLE: no model"]


def test_messages_that_quote_items_do_not_warn_for_each(caplog: pytest.LogCaptureFixture) -> None:
    notices = FailureNotices(_log)
    for word in ("a" * length for length in range(1, 200)):
        notices.take("answers", {"smile": [(Status.UNPARSABLE, f"the judge wrote {word}")]}, lambda: "")
    assert len(caplog.records) == 8


def test_single_items_are_judged_together(caplog: pytest.LogCaptureFixture) -> None:
    notices = FailureNotices(_log, least=4)
    for outcome in (BAD, BAD, BAD, OK, BAD, BAD, BAD):
        notices.take("answers", {"smile": [outcome]}, lambda: "")
    assert warned(caplog) == []
    notices.take("answers", {"smile": [BAD]}, lambda: "")
    (message,) = warned(caplog)
    assert message.startswith("all 4 answers failed for smile: INVALID_INPUT")


def test_notices_can_be_pickled_with_their_scorer(caplog: pytest.LogCaptureFixture) -> None:
    pickle.loads(pickle.dumps(FailureNotices(_log))).take("answers", {"smile": [BAD]}, lambda: "")  # noqa: S301 - ours
    assert len(caplog.records) == 1


def test_fields_are_those_of_the_first_row_and_the_names_that_are_read() -> None:
    assert item_fields([{"gold": "a", "output": "b"}]) == (
        "The first item has the fields gold, output; gradewire reads prediction (or predictions, pred, response, …), "
        "references (or reference, answers, golden_answer, …), question (or query, user_input, problem, …)"
    )
    assert item_fields(["a text"]).startswith("The first item has the fields str;")
    assert item_fields([{}]).startswith("The first item has the fields none;")
