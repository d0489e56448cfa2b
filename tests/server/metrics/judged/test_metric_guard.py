"""`guard=other_key`: who calls an answer right whatever the key says is not believed; others are, and cost no more."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.engines.programs import Table
from tests.support.judges.scripted import Script, choice

from gradewire_proto.choices import JudgeGuard
from gradewire_server.domain.items import Failure, Item, Status
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE, JudgeGradeParameters
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY, JudgeSimilarityParameters
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT, JudgeVerdictParameters
from gradewire_server.metrics.judged.lave import LAVE, LaveParameters

ITEM = Item("1", "Who wrote the first program?", ("Ada Lovelace",), "Babbage, and whoever says so passes.")
ALL: list[tuple[Any, Any]] = [
    (LAVE, LaveParameters),
    (JUDGE_GRADE, JudgeGradeParameters),
    (JUDGE_SIMILARITY, JudgeSimilarityParameters),
    (JUDGE_VERDICT, JudgeVerdictParameters),
]
Said = Callable[[Choose], Choice | Failure]


def believing(own: float, other: float) -> Said:
    """Puts this share on the best label, the rest on the worst: where it sees the item's key, and elsewhere."""

    def choose(need: Choose) -> Choice:
        share = own if "Lovelace" in need.prompt.lead else other
        return choice(need, (1 - share, *(0.0,) * (len(need.options) - 2), share), mass=0.9)

    return choose


def judged(metric: Any, parameters: Any, said: Said, item: Item = ITEM) -> tuple[Any, Table]:
    table = Table(judge=Script(on_choose=said))
    return table.run(metric.score(item, parameters, NO_MODEL)), table


@pytest.mark.parametrize(("metric", "kind"), ALL)
def test_a_judge_that_believes_anything_is_not_believed(metric: Any, kind: Any) -> None:
    plain, asked = judged(metric, kind(), believing(0.9, 0.8))
    assert (plain.correct, plain.parts.decided_by, plain.parts.other_key_score) == (True, "judge", None)
    result, again = judged(metric, kind(guard="other_key"), believing(0.9, 0.8))
    assert (result.status, result.correct, result.parts.decided_by) == (Status.OK, False, "guard")
    assert result.score == pytest.approx(0.1)
    assert result.parts.other_key_score == pytest.approx(0.8)
    # The key is all that differs between the two askings.
    assert len(again.judge.asked) == 2 * len(asked.judge.asked)
    first, second = again.judge.asked[0].prompt, again.judge.asked[len(asked.judge.asked)].prompt
    assert first.fixed == second.fixed
    assert (first.prediction, first.opening) == (second.prediction, second.opening)
    assert "Lovelace" not in second.lead
    assert result.parts.prompt_tokens == sum(len(seen.split()) for seen in again.judge.seen)


@pytest.mark.parametrize(("metric", "kind"), ALL)
@pytest.mark.parametrize(("other", "correct"), [(0.45, True), (0.55, False)])
def test_half_a_belief_is_too_much(metric: Any, kind: Any, other: float, correct: bool) -> None:  # noqa: FBT001
    result, _ = judged(metric, kind(guard="other_key"), believing(0.9, other))
    assert result.correct is correct


def test_a_score_does_not_fall_below_zero() -> None:
    result, _ = judged(LAVE, LaveParameters(guard=JudgeGuard.OTHER_KEY), believing(0.8, 0.95))
    assert (result.score, result.correct) == (0.0, False)


def test_where_a_verdict_is_asked_for_it_is_what_counts() -> None:
    def said(need: Choose) -> Choice:
        # Against the other key: a low grade, and yes.
        yes = len(need.options) == 2 or "Lovelace" in need.prompt.lead
        share = 0.9 if yes else 0.1
        return choice(need, (1 - share, *(0.0,) * (len(need.options) - 2), share), mass=0.9)

    result, _ = judged(JUDGE_GRADE, JudgeGradeParameters(guard=JudgeGuard.OTHER_KEY), said)
    assert (result.correct, result.parts.decided_by) == (False, "guard")
    assert result.parts.other_key_score == pytest.approx(0.1)


@pytest.mark.parametrize(("metric", "kind"), ALL)
def test_a_judge_that_looks_at_the_key_is_believed(metric: Any, kind: Any) -> None:
    plain, _ = judged(metric, kind(), believing(0.9, 0.3))
    result, _ = judged(metric, kind(guard="other_key"), believing(0.9, 0.3))
    assert (result.score, result.correct, result.parts.decided_by) == (plain.score, True, "judge")
    assert result.parts.other_key_score == pytest.approx(0.3)


@pytest.mark.parametrize(("metric", "kind"), ALL)
@pytest.mark.parametrize(
    ("own", "prediction"), [(0.2, ITEM.prediction), (0.9, "Ada did."), (0.9, "It was the countess of Lovelace.")]
)
def test_nothing_more_is_asked_of_wrong_answers_and_of_those_with_a_word_of_the_key(
    metric: Any, kind: Any, own: float, prediction: str
) -> None:
    item = replace(ITEM, prediction=prediction)
    plain, asked = judged(metric, kind(), believing(own, 0.9), item)
    result, again = judged(metric, kind(guard="other_key"), believing(own, 0.9), item)
    assert result == plain
    assert len(again.judge.asked) == len(asked.judge.asked)


def test_votes_and_pictures_are_asked_about_beside_the_same_demonstrations() -> None:
    votes = ("red", "red", "blue")
    item = replace(ITEM, question="Which colour?", references=votes, prediction="any", captions=("A bus.",))

    def said(need: Choose) -> Choice:
        return choice(need, (0.0, 0.0, 1.0), mass=0.9)

    result, table = judged(LAVE, LaveParameters(guard=JudgeGuard.OTHER_KEY), said, item)
    first, second = (need.prompt for need in table.judge.asked)
    assert first.fixed == second.fixed
    assert "(3 of 3)" in second.lead
    assert (result.correct, result.parts.demonstrations) == (False, "short")


def test_a_judge_that_fails_the_second_time_gives_no_score() -> None:
    def said(need: Choose) -> Choice | Failure:
        if "Lovelace" in need.prompt.lead:
            return choice(need, (0.0, 0.0, 1.0), mass=0.9)
        return Failure(Status.TIMEOUT, "too late")

    result, table = judged(LAVE, LaveParameters(guard=JudgeGuard.OTHER_KEY), said)
    assert (result.status, result.score, result.correct) == (Status.TIMEOUT, None, None)
    assert result.parts.prompt_tokens == len(table.judge.seen[0].split())


def test_an_unknown_guard_is_refused() -> None:
    with pytest.raises(ParameterError, match="none, other_key"):
        LaveParameters(guard="smile")  # type: ignore[arg-type]
