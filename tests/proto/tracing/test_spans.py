"""What an event says of a result: a score, or why there is none, and never both."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.tracing.spans import Evaluation, explanation_of

SCORE, LABEL = "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"


@given(st.none() | st.floats(0, 1), st.sampled_from(["", "TIMEOUT"]), st.sampled_from(["", "correct"]))
def test_a_score_and_an_error_exclude_each_other(score: float | None, error_type: str, label: str) -> None:
    said = Evaluation(name="smile", score=score, error_type=error_type, label=label).attributes()

    assert said["gen_ai.evaluation.name"] == "smile"
    assert (SCORE in said) != ("error.type" in said)
    assert LABEL not in said or SCORE in said


def test_all_of_it_is_there_where_it_is_known() -> None:
    said = Evaluation(
        name="smile", score=0.0, label="incorrect", explanation="x" * 9999, item_index=0, line="smile/1"
    ).attributes()

    assert said[SCORE] == 0.0
    assert said[LABEL] == "incorrect"
    assert said["gradewire.item.index"] == 0
    assert said["gradewire.metric.line"] == "smile/1"
    assert len(str(said["gen_ai.evaluation.explanation"])) == 4096


def test_explanations_are_put_together() -> None:
    assert explanation_of(["TRUNCATED"], 2, "") == "reference 2 gave the score; TRUNCATED"
    assert explanation_of([], None, "because") == "because"
    assert explanation_of([], None, "") == ""
