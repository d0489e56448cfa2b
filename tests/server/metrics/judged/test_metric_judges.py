"""Grade, similarity and verdict of a judge; what they share with LAVE is tested there."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.engines.programs import Table
from tests.support.judges.prompts import GRADE, SIMILARITY, VERDICT
from tests.support.judges.scripted import Script, choice, saying

from gradewire_proto.parts import JudgeParts
from gradewire_server.domain.items import Failure, Image, Item, MetricResult, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE, JudgeGradeParameters
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY, JudgeSimilarityParameters
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT, JudgeVerdictParameters
from gradewire_server.metrics.registry import REGISTRY

ITEM = Item("1", "Who?", ("Ada",), "the countess")
BINARY = Item("1", "Is it?", ("yes", "yes"), "No.")
ALL = [
    (JUDGE_GRADE, JudgeGradeParameters),
    (JUDGE_SIMILARITY, JudgeSimilarityParameters),
    (JUDGE_VERDICT, JudgeVerdictParameters),
]


def weighed(need: Choose) -> Choice:
    """Grades 3 and 4 at 0.25 and 0.75, yes at 0.6, alike at 0.5 of three; masses 0.9 and 0.5."""
    weights = {6: (0, 0, 0, 1, 3, 0), 2: (0.6, 0.4), 3: (0.2, 0.3, 0.5)}[len(need.options)]
    return choice(need, weights, mass=0.5 if len(need.options) == 2 else 0.9)


def judged(metric: Any, parameters: Any, item: Item = ITEM, *, script: Script | None = None) -> tuple[Any, Table]:
    table = Table(judge=script or Script(on_choose=weighed, on_generate=saying("Ada is a countess.")))
    return table.run(metric.score(item, parameters, NO_MODEL)), table


@pytest.mark.parametrize(("value", "grade"), [("most_probable", 4.0), ("expected", 3.75)])
def test_a_grade_and_behind_it_a_verdict(value: str, grade: float) -> None:
    result, table = judged(JUDGE_GRADE, JudgeGradeParameters(prompt=GRADE, value=value))
    assert result.score == pytest.approx(grade / 5)
    assert result.correct is True
    assert result.parts == JudgeParts(
        value=pytest.approx(grade),
        labels=("0", "1", "2", "3", "4", "5"),
        probabilities=(0, 0, 0, 0.25, 0.75, 0),
        yes_probability=pytest.approx(0.6),
        label_mass=0.5,
        decided_by="judge",
        prompt_tokens=sum(len(seen.split()) for seen in table.judge.seen),
    )
    assert [need.prompt.opening for need in table.judge.asked] == ["Grade:", "Grade: 4\nCorrect:"]


@pytest.mark.parametrize("style", ["plain", "step_by_step", "reasons"])
def test_instructions_speak_of_pictures_where_these_are_shown(style: str) -> None:
    picture = Image(data=b"a")
    item = replace(ITEM, images=(picture,), captions=("A desk.",))
    told = {}
    for image, caption in ((True, False), (True, True), (False, True), (False, False)):
        _, table = judged(JUDGE_VERDICT, JudgeVerdictParameters(style=style, image=image, caption=caption), item)
        for need in table.judge.asked:
            assert need.prompt.images == ((picture,) if image else ())
            assert ("Image: A desk." in need.prompt.lead) is caption
        told[image, caption] = table.judge.asked[0].prompt.fixed[0].text
    assert told[True, False] == told[True, True]
    assert "the image that you are shown" in told[True, False]
    assert "a line says what the image shows" in told[False, True]
    assert "image" not in told[False, False]


def test_key_facts_first() -> None:
    result, table = judged(JUDGE_GRADE, JudgeGradeParameters(prompt=GRADE, style="extract"))
    assert [need.prompt.opening for need in table.judge.asked] == [
        "Facts:",
        "Facts: Ada is a countess.\nCorrect:",
        "Facts: Ada is a countess.\nCorrect: yes\nGrade:",
    ]
    assert result.parts.reason == "Ada is a countess."
    assert result.parts.generated_tokens == 4
    # P(yes) is 0.6; the variant wants 0.9.
    assert (result.score, result.correct) == (pytest.approx(0.75), False)


@pytest.mark.parametrize(
    ("value", "score", "correct"),
    # 0.3 · 0.5 + 0.5 · 1 = 0.65, from 0.6 on counts as right.
    [("expected", 0.65, True), ("most_probable", 1.0, True)],
)
def test_similarity_is_what_labels_stand_for(value: str, score: float, correct: bool) -> None:  # noqa: FBT001
    result, table = judged(JUDGE_SIMILARITY, JudgeSimilarityParameters(prompt=SIMILARITY, value=value))
    assert (result.score, result.parts.value, result.correct) == (pytest.approx(score), pytest.approx(score), correct)
    assert result.parts.labels == ("different", "akin", "alike")
    assert table.judge.asked[0].prompt.opening == ""


def test_a_prompt_says_from_where_answers_are_alike() -> None:
    strict = SIMILARITY.replace("correct_from = 0.6", "correct_from = 0.7")
    result, _ = judged(JUDGE_SIMILARITY, JudgeSimilarityParameters(prompt=strict, value="expected"))
    assert (result.score, result.correct) == (pytest.approx(0.65), False)


@pytest.mark.parametrize(("value", "score"), [("expected", 0.6), ("most_probable", 1.0)])
def test_a_verdict(value: str, score: float) -> None:
    result, table = judged(JUDGE_VERDICT, JudgeVerdictParameters(prompt=VERDICT, value=value))
    assert (result.score, result.correct) == (pytest.approx(score), True)
    assert (result.parts.value, result.parts.yes_probability) == (None, pytest.approx(0.6))
    assert result.parts.labels == ("yes", "no")
    assert [need.prompt.opening for need in table.judge.asked] == ["Correct:"]


@pytest.mark.parametrize("weights", [(0.55, 0.45), (0.45, 0.55)])
def test_score_and_verdict_of_the_most_probable_label_agree(weights: tuple[float, float]) -> None:
    # Both prompts ask for more than 0.55 where the probability itself counts.
    def said(need: Choose) -> Choice:
        return choice(need, (0, 0, 0, 0, 0, 1) if len(need.options) == 6 else weights)

    script, yes = Script(on_choose=said), weights[0] > weights[1]
    strict = VERDICT.replace("[variants.plain]", "[variants.plain]\ncorrect_from = 0.6")
    result, _ = judged(JUDGE_VERDICT, JudgeVerdictParameters(prompt=strict, value="most_probable"), script=script)
    assert (result.score, result.correct) == (float(yes), yes)
    result, _ = judged(JUDGE_VERDICT, JudgeVerdictParameters(prompt=strict), script=script)
    assert (result.score, result.correct) == (pytest.approx(weights[0]), False)
    for value, right in (("most_probable", yes), ("expected", False)):
        parameters = JudgeGradeParameters(prompt=GRADE, style="extract", value=value)
        script = Script(on_choose=said, on_generate=saying("Facts."))
        assert judged(JUDGE_GRADE, parameters, script=script)[0].correct is right


def test_a_verdict_behind_reasons() -> None:
    script = Script(on_choose=lambda need: choice(need, (1, 9)), on_generate=saying("Nobody knows."))
    result, table = judged(JUDGE_VERDICT, JudgeVerdictParameters(prompt=VERDICT, style="reasons"), script=script)
    assert (result.score, result.correct, result.parts.reason) == (pytest.approx(0.1), False, "Nobody knows.")
    assert [need.prompt.opening for need in table.judge.asked] == ["Reason:", "Reason: Nobody knows.\nCorrect:"]


def test_binary_questions_by_rule() -> None:
    result, table = judged(JUDGE_GRADE, JudgeGradeParameters(), BINARY)
    assert result == MetricResult(0.0, parts=JudgeParts(0.0, decided_by="rule"), correct=False)
    result, _ = judged(JUDGE_VERDICT, JudgeVerdictParameters(), BINARY)
    assert result == MetricResult(0.0, parts=JudgeParts(decided_by="rule"), correct=False)
    assert table.judge.asked == []
    for metric, parameters in (
        (JUDGE_GRADE, JudgeGradeParameters(binary="judge")),
        (JUDGE_VERDICT, JudgeVerdictParameters(binary="judge")),
    ):
        result, _ = judged(metric, parameters, BINARY)
        assert result.parts.decided_by == "judge"


@pytest.mark.parametrize(("metric", "parameters"), ALL)
def test_bad_items_and_failures_have_a_status_and_no_score(metric: Any, parameters: Any) -> None:
    for item, status in (
        (Item("1", "Who?", (), "Ada"), Status.INVALID_INPUT),
        (Item("1", " ", ("Ada",), "Ada"), Status.INVALID_INPUT),
        (Item("1", "Who?", ("Ada",), "\u2026"), Status.EMPTY_PREDICTION),
        (Item("1", "Who?", ("Ada",), "\u2800\u3164\u115f"), Status.EMPTY_PREDICTION),
    ):
        result, table = judged(metric, parameters(), item)
        assert (result.score, result.status, table.judge.asked) == (None, status, [])
    failure = Failure(Status.UNAVAILABLE, "away", retry_after_s=1.0)
    assert judged(metric, parameters(), script=Script(failure=failure))[0] == MetricResult.failed(failure)
    unsaid = Script(on_choose=lambda need: choice(need, [1] * len(need.options), mass=0.001))
    assert judged(metric, parameters(), script=unsaid)[0].status is Status.UNPARSABLE
    assert Table().run(metric.prepare(ReferenceEntry("Who?", ("Ada",)), parameters())) is None
    assert Table().run(metric.prepare(ReferenceEntry("", ("Ada",)), parameters())).status is Status.INVALID_INPUT


@pytest.mark.parametrize(("metric", "parameters"), ALL)
def test_each_has_a_prompt_of_its_own(metric: Any, parameters: Any) -> None:
    assert parameters().prompt_name == f"{metric.info.name}/2"
    with pytest.raises(ParameterError, match="prompt: lave/2 is a prompt for lave"):
        parameters(prompt="lave/2")


def test_a_change_of_what_judges_read_raised_the_version() -> None:
    # Version 1 masked answers that are one word of praise, and version 2 showed one alias even where none has a word in
    # common with the answer: their scores are not to be mixed with these.
    judged = {name: metric.info.version for name, metric in REGISTRY.items() if metric.info.needs_judge}
    assert judged == dict.fromkeys(("lave", "judge_grade", "judge_similarity", "judge_verdict"), 3)


@pytest.mark.parametrize(("metric", "parameters"), ALL)
@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Failure(Status.UNPARSABLE, "wrote a poem"), (ResultWarning.MASKED,)),
        (Failure(Status.UNAVAILABLE, "away", 2.0), ()),  # nothing was judged
    ],
)
def test_of_a_reply_that_is_no_verdict_it_is_told_that_words_were_not_shown(
    metric: Any, parameters: Any, failure: Failure, told: tuple[ResultWarning, ...]
) -> None:
    item = Item("1", "Who?", ("Ada",), "Bob. This is correct.")
    result, table = judged(metric, parameters(), item, script=Script(on_choose=lambda _: failure))
    assert "[...]" in table.judge.seen[-1]
    assert (result.status, result.message) == (failure.status, failure.message)
    assert (result.retry_after_s, result.warnings) == (failure.retry_after_s, told)


def test_labels_of_no_mass_are_told_with_the_mask_too() -> None:
    item = Item("1", "Who?", ("Ada",), "Bob. This is correct.")
    nothing = Script(on_choose=lambda need: choice(need, [1.0] * len(need.options), mass=0.001))
    result, _ = judged(JUDGE_VERDICT, JudgeVerdictParameters(), item, script=nothing)
    assert (result.status, result.warnings) == (Status.UNPARSABLE, (ResultWarning.MASKED,))
