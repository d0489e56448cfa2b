"""Who decides, why, what is asked of whom, and what happens where the judge fails."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.cascade_fits import JUDGE, auto_fit_text, metadata_with, stored_auto_fit
from tests.support.engines.correctness_fits import DIGEST
from tests.support.engines.programs import Table, at, table_of
from tests.support.judges.scripted import Script, preferring

from gradewire_proto.parts import AutoParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.judge import Choose
from gradewire_server.domain.metric import ModelMetadata
from gradewire_server.domain.needs import Embed
from gradewire_server.metrics.judged.auto import Auto, confidence, is_literal, is_sampled
from gradewire_server.metrics.judged.auto_fit import AutoParameters

METRIC = Auto()
MODEL = f"m@{DIGEST}"
VECTORS = {"red cat": at(0), "cat": at(10), "dog": at(60), "red": at(40)}
ASKED = stored_auto_fit(auto_fit_text())
REFUSED = stored_auto_fit(auto_fit_text(asked_below=None))
TIMEOUT = Failure(Status.TIMEOUT, "the judge took too long", retry_after_s=3.0)


def graded(
    prediction: str = "red cat",
    *references: str,
    script: Script | None = None,
    metadata: ModelMetadata | None = None,
    question: str = "Which?",
    **parameters: Any,
) -> tuple[MetricResult, AutoParts, Table]:
    """Of "red cat" with the reference "dog" `correctness` says 0.66875; of a further reference "cat", 0.95."""
    table = table_of(VECTORS, judge=script or Script(on_choose=preferring("incorrect")))
    asked = AutoParameters(model=MODEL, judge_model=JUDGE, **parameters)
    item = Item("1", question, references or ("dog",), prediction)
    result = table.run(METRIC.score(item, asked, metadata or metadata_with(ASKED)))
    return result, result.parts, table


def test_a_matched_reference_decides_before_anything_is_embedded() -> None:
    result, parts, table = graded("The dog.")
    assert (result.score, result.correct, result.matched_reference, result.warnings) == (1.0, True, 0, ())
    assert (parts.decided_by, parts.reason, parts.probability) == ("exact_match", "certain", None)
    assert table.rounds == []


PETS = "Which? A) red cat B) dog"


@pytest.mark.parametrize(
    ("prediction", "right"), [("B", True), ("(A) is wrong, so B", True), ("A", False), ("dog", True)]
)
def test_a_choice_decides_before_anything_is_embedded(prediction: str, *, right: bool) -> None:
    result, parts, table = graded(prediction, question=PETS)
    assert (result.score, result.correct, result.matched_reference, result.warnings) == (float(right), right, 0, ())
    assert (parts.decided_by, parts.reason, parts.probability) == ("choice_match", "certain", None)
    assert table.rounds == []


def test_a_risk_under_which_nothing_is_accepted_asks_about_a_choice_too() -> None:
    result, parts, _ = graded("A", question=PETS, risk=0.02, script=Script(on_choose=preferring("correct")))
    assert (parts.decided_by, parts.reason, result.correct) == ("judge", "band", True)


def test_an_exact_match_does_not_overrule_another_choice() -> None:
    """The reference's letter names another option than its text does in the answer."""
    result, parts, _ = graded("A", "B", question="Which? A) B B) A")
    assert (parts.decided_by, result.correct) == ("choice_match", False)


@pytest.mark.parametrize(
    ("prediction", "reference", "literal"),
    [
        ("The dog.", "dog", True),
        ("DOG", "a dog", False),
        ("DOGS", "the dogs", True),
        ("3.14", "3.14", True),
        ("314", "3.14", False),
        ("5", "-5", False),
        ("x > y", "x < y", False),
        ("CO", "Co", False),
        ("5 MW", "5 mW", True),
    ],
)
def test_an_exact_match_is_certain_only_if_the_texts_are_equal(prediction: str, reference: str, literal: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    assert is_literal(prediction, [reference]) is literal
    assert is_literal(prediction, ["something else", reference]) is literal


def test_a_match_that_is_not_literal_is_left_to_correctness() -> None:
    table = table_of({"5": at(0), "-5": at(0)}, judge=Script(on_choose=preferring("incorrect")))
    result = table.run(
        METRIC.score(
            Item("1", "What is 2 minus 7?", ("-5",), "5"),
            AutoParameters(model=MODEL, judge_model=JUDGE),
            metadata_with(ASKED),
        )
    )
    assert isinstance(result.parts, AutoParts)
    assert result.parts.decided_by != "exact_match"


def test_a_sure_probability_decides_without_a_judge() -> None:
    result, parts, table = graded("red cat", "dog", "cat")
    assert result.score == pytest.approx(0.95)
    assert (result.correct, result.warnings) == (True, ())
    assert (parts.decided_by, parts.reason, parts.judge_status) == ("correctness", "certain", "")
    assert parts.probability == result.score
    assert (parts.band_lower, parts.band_upper) == (pytest.approx(0.1), 0.9)
    assert table.judge.asked == []


def test_inside_the_band_the_judge_decides() -> None:
    result, parts, table = graded()
    assert (parts.decided_by, parts.reason, parts.sampled) == ("judge", "band", False)
    assert parts.probability == pytest.approx(0.66875)
    assert (result.score, result.correct) == (parts.judge_score, parts.judge_correct)
    assert (result.correct, parts.judge_status) == (False, "OK")
    (need,) = table.judge.asked
    assert isinstance(need, Choose)
    assert need.model == JUDGE


def test_a_larger_risk_leaves_the_same_verdict_to_correctness() -> None:
    result, parts, table = graded(risk=0.2)
    assert (parts.decided_by, parts.reason, result.correct) == ("correctness", "certain", True)
    assert table.judge.asked == []


def test_a_risk_under_which_nothing_is_accepted_asks_about_everything() -> None:
    result, parts, table = graded("The dog.", risk=0.02, script=Script(on_choose=preferring("correct")))
    assert (parts.decided_by, parts.reason, result.correct) == ("judge", "band", True)
    assert (parts.band_lower, parts.band_upper) == (0.0, 1.0)
    assert len(table.judge.asked) == 1
    assert not any(isinstance(need, Embed) for needs in table.rounds for need in needs)


@pytest.mark.parametrize(
    ("budget", "decided_by"), [(0.0, "correctness"), (0.4, "correctness"), (0.5, "judge"), (1, "judge")]
)
def test_a_budget_stands_in_place_of_the_risk(budget: float, decided_by: str) -> None:
    _, parts, _ = graded(judge_budget=budget)
    assert parts.decided_by == decided_by


def test_a_refused_judge_is_never_asked_and_the_verdict_is_marked() -> None:
    result, parts, table = graded(metadata=metadata_with(REFUSED))
    assert (parts.decided_by, parts.reason, parts.judge_status) == ("correctness", "refused", "")
    assert (result.score, result.correct) == (pytest.approx(0.66875), True)
    assert result.warnings == (ResultWarning.UNCERTAIN,)
    assert table.judge.asked == []


def test_a_judge_that_adds_only_where_less_is_sure_is_refused_above() -> None:
    narrow = stored_auto_fit(auto_fit_text(asked_below=0.6))
    _, parts, table = graded(metadata=metadata_with(narrow))
    assert parts.reason == "refused"  # 0.669 is below 0.9, and not below 0.6
    assert table.judge.asked == []


def test_of_the_sample_the_judge_is_asked_and_does_not_decide() -> None:
    result, parts, table = graded("red cat", "dog", "cat", sample=1.0)
    assert (parts.decided_by, parts.reason, parts.sampled) == ("correctness", "sample", True)
    assert (result.correct, parts.judge_correct, parts.judge_status) == (True, False, "OK")
    assert len(table.judge.asked) == 1


def test_a_sample_asks_a_refused_judge_and_believes_it_nothing() -> None:
    result, parts, table = graded(metadata=metadata_with(REFUSED), sample=1.0)
    assert (parts.decided_by, parts.reason, parts.sampled) == ("correctness", "refused", True)
    assert (result.correct, parts.judge_correct, len(table.judge.asked)) == (True, False, 1)


def test_where_the_judge_fails_in_the_band_nobody_decides() -> None:
    result, parts, _ = graded(script=Script(failure=TIMEOUT))
    assert (result.score, result.status, result.message) == (None, Status.TIMEOUT, "the judge took too long")
    assert (result.correct, result.retry_after_s) == (None, 3.0)
    assert (parts.decided_by, parts.reason, parts.judge_status) == ("nobody", "band", "TIMEOUT")


def test_where_the_judge_fails_on_the_sample_the_verdict_stands() -> None:
    result, parts, _ = graded("red cat", "dog", "cat", sample=1.0, script=Script(failure=TIMEOUT))
    assert (result.status, result.correct) == (Status.OK, True)
    assert (parts.decided_by, parts.judge_status, parts.judge_score) == ("correctness", "TIMEOUT", None)


def test_where_the_encoder_fails_its_failure_is_the_result() -> None:
    table = Table(failure=Failure(Status.UNAVAILABLE, "no encoder"))
    program = METRIC.score(Item("1", "Which?", ("dog",), "red cat"), AutoParameters(model=MODEL), metadata_with(ASKED))
    result = table.run(program)
    assert (result.status, result.message) == (Status.UNAVAILABLE, "no encoder")


@pytest.mark.parametrize(
    ("question", "prediction", "status"),
    [
        (" ", "red cat", Status.INVALID_INPUT),
        ("Which?", "", Status.EMPTY_PREDICTION),
        ("Which?", "?!", Status.EMPTY_PREDICTION),
    ],
)
def test_what_the_judge_could_not_grade_fails_whoever_would_decide(
    question: str, prediction: str, status: Status
) -> None:
    result, _, table = graded(prediction, question=question)
    assert (result.score, result.status) == (None, status)
    assert table.rounds == []


def test_an_answer_that_denies_what_it_says_is_as_unsure_as_can_be() -> None:
    """`correctness` says UNCERTAIN at the confidence 0.5 of denials alone."""
    said = MetricResult(0.97, warnings=(ResultWarning.UNCERTAIN,), correct=True)
    assert confidence(said) == 0.5
    assert confidence(MetricResult(0.03, correct=False)) == pytest.approx(0.97)


@pytest.mark.parametrize("judge", ["judge_verdict", "judge_grade", "judge_similarity"])
def test_every_judge_metric_can_be_asked(judge: str) -> None:
    digest = AutoParameters(judge=judge).prompt_digest  # type: ignore[arg-type] # as the wire's words become members
    fit = stored_auto_fit(auto_fit_text(judge=judge, prompt_digest=digest), judge=judge)
    _, parts, table = graded(metadata=metadata_with(fit), judge=judge)
    assert (parts.decided_by, parts.judge_status) == ("judge", "OK")
    assert table.judge.asked


def test_what_correctness_needs_of_references_is_prepared() -> None:
    table = Table(VECTORS)
    assert table.run(METRIC.prepare(ReferenceEntry("Which?", ("dog",)), AutoParameters(model=MODEL))) is None
    assert table.embedded == [{"dog"}]
    blank = Table(VECTORS).run(METRIC.prepare(ReferenceEntry(" ", ("dog",)), AutoParameters(model=MODEL)))
    assert blank.status is Status.INVALID_INPUT


ITEMS = [Item(str(n), f"Question {n}?", ("a", "b"), f"answer {n % 7}") for n in range(4000)]


def drawn(share: float, seed: int = 0) -> np.ndarray:
    return np.array([is_sampled(item, share, seed) for item in ITEMS])


def test_it_is_the_share_that_was_asked_for() -> None:
    for share in (0.05, 0.3, 0.9):
        assert abs(drawn(share).mean() - share) < 4 * (share * (1 - share) / len(ITEMS)) ** 0.5
    assert not drawn(0.0).any()
    assert drawn(1.0).all()


def test_a_larger_share_holds_every_smaller_one() -> None:
    assert not (drawn(0.1) & ~drawn(0.2)).any()


def test_all_that_a_judge_may_be_shown_counts() -> None:
    """Else answers that differ in it alone would be drawn together."""
    for name, value in (("references", ("c",)), ("captions", ("A dog.",)), ("prediction", "other"), ("question", "Q?")):
        changed = np.array([is_sampled(replace(item, **{name: value}), 0.3, 0) for item in ITEMS[:500]])
        assert (changed != drawn(0.3)[:500]).any(), name


def test_seeds_draw_independently() -> None:
    both = drawn(0.3, seed=1) & drawn(0.3, seed=2)
    assert abs(both.mean() - 0.09) < 0.02


@given(st.text(min_size=1), st.text(min_size=1), st.floats(0, 1))
def test_id_and_group_do_not_count(question: str, prediction: str, share: float) -> None:
    one = Item("1", question, ("a",), prediction, group="g")
    assert is_sampled(one, share, 0) == is_sampled(Item("2", question, ("a",), prediction), share, 0)
