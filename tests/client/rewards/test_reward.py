"""What becomes of samples without a score."""

import pickle
from typing import Any

import pytest

from gradewire.errors import InvalidRequest
from gradewire.results import Status
from gradewire.rewards import FailureHandling, Reward, RewardFailed, RewardFailureRate
from gradewire.rewards.reward import FailureWindow

OK = Reward(0.25, Status.OK)
EMPTY = Reward(None, Status.EMPTY_PREDICTION, "the completion is empty")
LATE = Reward(None, Status.TIMEOUT, "not scored in time")
BROKEN = Reward(None, Status.INTERNAL, "a defect")
ALL = [OK, EMPTY, LATE, BROKEN]


def values(handling: FailureHandling, rewards: list[Reward] = ALL) -> list[float | None]:
    return [reward.value for reward in handling.settle(rewards)]


def test_failures_are_left_out_unless_something_else_is_said() -> None:
    assert values(FailureHandling()) == [0.25, None, None, None]


def test_a_value_is_given_only_where_it_was_asked_for() -> None:
    assert values(FailureHandling(policy="value", value=-1.0)) == [0.25, None, -1.0, -1.0]
    assert values(FailureHandling(empty_value=-0.5)) == [0.25, -0.5, None, None]


def test_a_settled_reward_still_says_that_it_is_no_score() -> None:
    settled = FailureHandling(policy="value", value=0.5).settle([LATE])[0]
    assert (settled.value, settled.status, settled.scored) == (0.5, Status.TIMEOUT, False)


DOUBTFUL = Reward(0.9, Status.OK, uncertain=True)
DOUBTFUL_AND_WRONG = Reward(0.2, Status.OK, uncertain=True)


@pytest.mark.parametrize(
    ("handling", "expected"),
    [
        (FailureHandling(), [0.25, 0.5, 0.2]),
        (FailureHandling(uncertain_value=0.1), [0.25, 0.1, 0.1]),
        (FailureHandling(uncertain="exclude"), [0.25, None, None]),
        (FailureHandling(uncertain="judge"), [0.25, 0.9, 0.2]),  # the judge has spoken by then
    ],
)
def test_an_uncertain_score_has_a_policy_of_its_own(handling: FailureHandling, expected: list[float | None]) -> None:
    settled = handling.settle([OK, DOUBTFUL, DOUBTFUL_AND_WRONG])
    assert [reward.value for reward in settled] == expected
    assert all(reward.scored for reward in settled)
    changed = [reward.value != before for reward, before in zip(settled, (0.25, 0.9, 0.2), strict=True)]
    assert ["UNCERTAIN (score" in reward.reason for reward in settled] == changed


def test_an_uncertain_sample_that_is_left_out_is_no_failure() -> None:
    window = FailureWindow(FailureHandling(uncertain="exclude", max_failure_rate=0.1))
    window.check([DOUBTFUL] * 600)
    assert FailureHandling(uncertain="exclude", policy="raise").settle([DOUBTFUL])[0].value is None


def test_raise_says_what_failed_and_how_often() -> None:
    with pytest.raises(RewardFailed, match="not scored in time") as raised:
        FailureHandling(policy="raise").settle(ALL)
    assert raised.value.counts[Status.TIMEOUT] == 1
    assert FailureHandling(policy="raise").settle([OK, EMPTY])[1].value is None


def test_hold_raises_for_what_might_have_passed_and_leaves_out_the_rest() -> None:
    assert values(FailureHandling(policy="hold"), [OK, BROKEN]) == [0.25, None]
    with pytest.raises(RewardFailed):
        FailureHandling(policy="hold").settle([OK, LATE])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"policy": "zero"}, "policy='zero'"),
        ({"policy": "value"}, "value=None"),
        ({"value": 0.0}, "value=0.0"),
        ({"policy": "value", "value": float("nan")}, "value=nan"),
        ({"empty_value": "0"}, "empty_value='0'"),
        ({"uncertain": "drop"}, "uncertain='drop'"),
        ({"uncertain_value": None}, "uncertain_value=None"),
        ({"uncertain_value": float("inf")}, "uncertain_value=inf"),
        ({"max_failure_rate": 0}, "max_failure_rate=0"),
        ({"max_failure_rate": 1.5}, "max_failure_rate=1.5"),
        ({"hold_s": 0}, "hold_s=0"),
        ({"window": 3}, "window=3"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        FailureHandling(**arguments)


def test_too_many_failures_stop_the_run_with_their_counts() -> None:
    window = FailureWindow(FailureHandling(max_failure_rate=0.2, window=100))
    window.check([OK] * 80 + [LATE] * 20)
    with pytest.raises(RewardFailureRate, match=r"max_failure_rate=0\.2") as raised:
        window.check([BROKEN] * 5)
    assert raised.value.counts == {Status.OK: 75, Status.TIMEOUT: 20, Status.INTERNAL: 5}


def test_few_rewards_and_empty_answers_make_no_failure_rate() -> None:
    window = FailureWindow(FailureHandling(max_failure_rate=0.2))
    window.check([LATE] * 31)
    window.check([EMPTY] * 200)
    with pytest.raises(RewardFailureRate):
        window.check([LATE] * 31)


def test_a_rate_of_one_never_stops() -> None:
    FailureWindow(FailureHandling(max_failure_rate=1)).check(rewards := [LATE] * 600)
    assert len(rewards) == 600


def test_the_window_forgets_old_failures() -> None:
    window = FailureWindow(FailureHandling(max_failure_rate=0.5, window=32))
    window.check([LATE] * 20)
    window.check([OK] * 32)
    window.check([LATE] * 16)
    with pytest.raises(RewardFailureRate):
        window.check([LATE])


def test_errors_survive_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(RewardFailureRate("stop", {Status.TIMEOUT: 3})))  # noqa: S301 - the test's own
    assert (str(error), error.counts) == ("stop", {Status.TIMEOUT: 3})
