"""Judged pairs as files have them: our own lines, arenas' rows, and what is none."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.leaderboard.reading import PAIR_COLUMNS, JudgedOrder, JudgedPair, holds_pairs, judged_pair, majority
from gradewire_cli.rows.formats import Record


def read(**fields: Any) -> JudgedPair:
    return judged_pair(Record(7, "line 8", {"model_a": "x", "model_b": "y", **fields}), PAIR_COLUMNS)


def test_a_line_of_our_own() -> None:
    pair = read(
        id="1",
        instruction_id="q1",
        group="counting",
        question="How many?",
        winner=None,
        status="INCONSISTENT",
        probability_a=0.52,
        orders=[{"first": "model_a", "winner": "model_a"}, {"first": "model_b", "winner": "model_b"}],
        length_a_words=5,
        length_b_words=12,
        by="compare/1",
        round=3,
        digest="ab",
    )
    assert pair == JudgedPair(
        position="line 8",
        id="1",
        instruction="q1",
        models=("x", "y"),
        winner=None,
        status="INCONSISTENT",
        orders=(JudgedOrder("model_a", "model_a"), JudgedOrder("model_b", "model_b")),
        group="counting",
        question="How many?",
        words=(5.0, 12.0),
        probability_a=0.52,
        by="compare/1",
        round=3,
        digest="ab",
    )


def conversation(answer: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": answer}]


@pytest.mark.parametrize(
    ("winner", "expected"),
    [
        ("model_a", "model_a"),
        ("model_b", "model_b"),
        ("tie", "tie"),
        ("tie (bothbad)", "tie"),
        ("both_bad", "tie"),
        ("A", "model_a"),
        ("b", "model_b"),
        ("y", "model_b"),
    ],
)
def test_a_row_of_an_arena(winner: str, expected: str) -> None:
    pair = read(
        question_id="q9",
        winner=winner,
        conversation_a=conversation("A cat on a mat."),
        conversation_b=conversation([{"type": "text", "text": "Two"}, {"type": "text", "text": "cats"}]),
    )
    assert pair.winner == expected
    assert (pair.instruction, pair.question, pair.answers) == ("q9", "What is it?", ("A cat on a mat.", "Two\ncats"))
    assert pair.words == (5.0, 2.0)
    assert pair.orders == (JudgedOrder("model_a", pair.winner),), "A is shown first"


def test_winners_as_columns_and_turns_as_json_texts() -> None:
    pair = read(
        prompt=json.dumps(["Hello?", "And now?"]),
        response_a=json.dumps(["Hi.", "Good bye then."]),
        response_b="[1, 2]",
        winner_model_a=0,
        winner_model_b=1,
        winner_tie=0,
    )
    assert (pair.winner, pair.question, pair.answers) == ("model_b", "Hello?\nAnd now?", ("Good bye then.", "[1, 2]"))
    assert pair.orders == (JudgedOrder("model_a", "model_b"),), "A is shown first, however the winner is told"


def test_the_first_place_is_known_where_the_column_is_called_otherwise() -> None:
    names = {**PAIR_COLUMNS, "winner": ("preferred",)}
    pair = judged_pair(Record(0, "line 1", {"model_a": "x", "model_b": "y", "preferred": "A"}), names)
    assert pair.orders == (JudgedOrder("model_a", "model_a"),)


@pytest.mark.parametrize(
    ("turn", "answer"),
    [(1, "One."), (2, "Two and three."), (3, "Two and three."), (None, "Two and three."), ("1", "Two and three.")],
)
def test_the_answer_is_that_of_the_turn_that_was_judged(turn: Any, answer: str) -> None:
    """MT-bench has both turns in every row, and says which one was judged."""
    said = [*conversation("One."), *conversation("Two and three.")]
    pair = read(winner="A", turn=turn, conversation_a=said, conversation_b=said)
    assert pair.answers == (answer, answer)
    assert pair.turn == (turn if isinstance(turn, int) else 0)


def test_a_side_that_is_the_name_of_the_other_model_is_refused() -> None:
    assert read(model_a="A", model_b="B", winner="B").winner == "model_b"
    assert read(model_a="model_b", model_b="model_c", winner="model_b").winner == "model_b", "as our own lines have it"
    with pytest.raises(ValueError, match="winner or vote A names one side and the other side's model"):
        read(model_a="B", model_b="A", winner="A")


def test_pairs_about_the_same_words_are_about_one_instruction_unless_an_image_tells_them_apart() -> None:
    one, same, other = (
        read(winner="tie", question="What colour?", **more) for more in ({}, {"id": 5}, {"image": "b.png"})
    )
    assert one.instruction == same.instruction != other.instruction
    assert read(winner="tie").instruction == "row 7", "a pair about nothing that is known is about its own"


def test_votes_stand_for_a_winner() -> None:
    assert read(votes=["A", "A", "tie"]).winner == "model_a"
    assert read(votes=["A", "A", "tie"]).by_votes
    assert read(votes=["A", "A", "tie"]).orders == (), "nothing says which answer people saw first"
    assert not read(votes=["A", "A"], winner="B").by_votes
    assert read(votes={"A": 2, "B": 3}).winner == "model_b"
    assert read(votes="A, B").winner == "tie"
    assert majority(["model_a", "model_b", "tie"]) == "tie"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_a": " "}, "a model has no name"),
        ({"model_a": "y"}, "both answers are from the same model"),
        ({"model_a": math.nan, "winner": "A"}, "a model has no name"),
        ({"model_a": "m" * 201, "winner": "A"}, "more than 200 characters"),
        ({}, "no winner"),
        ({"winner": "the left one"}, "not model_a, model_b or tie"),
        ({"votes": ["A", "left"]}, "not model_a, model_b or tie"),
        ({"votes": {"A": -1}}, "a count of votes is invalid"),
        ({"winner_model_a": 1, "winner_tie": 1}, "more than one winner_… column"),
    ],
)
def test_what_is_no_pair(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(**fields)


def test_a_pair_without_a_verdict_keeps_its_status() -> None:
    assert (read(winner=None).winner, read(winner=None).status) == (None, "NO_VERDICT")
    assert (read(winner="model_a", status="UNPARSABLE").winner) is None
    assert (read(winner="tie", status="UNPARSABLE").counted) is None


@pytest.mark.parametrize(
    "winner", [None, "", " ", "unknown", "Unknown", "NaN", "nan", "null", "None", "error", math.nan, "no_winner", "N/A"]
)
def test_words_for_no_winner_are_no_tie(winner: Any) -> None:
    pair = read(winner=winner)
    assert (pair.winner, pair.counted, pair.status) == (None, None, "NO_VERDICT")
    assert read(winner=winner, votes=["A", winner, "A", "B"]).winner == "model_a", "votes without a choice do not count"


@pytest.mark.parametrize("columns", [{"winner_model_a": 0, "winner_model_b": 0, "winner_tie": 0}, {"votes": []}])
def test_columns_that_name_no_winner_are_a_pair_without_one(columns: dict[str, Any]) -> None:
    assert read(**columns).status == "NO_VERDICT"


def test_a_model_may_have_a_name_that_otherwise_means_no_winner() -> None:
    assert read(model_a="unknown", winner="unknown").winner == "model_a"


@pytest.mark.parametrize(
    "status", ["", "ok", "completed", math.nan, None, "valid", "finished", "preferred by 3", "TIED", "Reviewed", 200]
)
def test_other_programs_words_for_a_reached_verdict_keep_the_winner(status: Any) -> None:
    assert (read(winner="model_b", status=status).winner, read(winner="tie", status=status).counted) == (
        "model_b",
        "tie",
    )


@pytest.mark.parametrize(
    "status",
    [
        *("failed", "Judge error", "invalid", "timed out", "TIMEOUT", "unparsable", "skipped", "no verdict", "pending"),
        *("INCONSISTENT", "EMPTY_PREDICTION", "judge_cannot_see", "INTERNAL", "NO_VERDICT"),
    ],
)
def test_a_status_that_says_failed_takes_the_winner_away(status: str) -> None:
    assert read(winner="model_b", status=status).winner is None


def test_contradictory_orders_are_a_tie_and_unreadable_orders_are_not() -> None:
    first, second = {"first": "model_a", "winner": "model_a"}, {"first": "model_b", "winner": "model_b"}
    assert read(winner=None, status="INCONSISTENT", orders=[first, second]).counted == "tie"
    unread = {"first": "model_b", "winner": None}
    assert read(winner=None, status="INCONSISTENT", orders=[first, unread]).counted is None
    assert read(winner=None, status="INCONSISTENT", orders=[first]).counted is None
    assert (
        read(winner=None, status="INCONSISTENT").counted == read(winner=None, status="INCONSISTENT", orders=[]).counted
    )
    assert read(winner=None, status="INCONSISTENT").counted == "tie"
    assert read(winner=None, status="UNPARSABLE", orders=[first, unread]).counted is None


def test_blank_answers_are_known_only_where_a_file_has_the_answers() -> None:
    empty = {"winner": None, "status": "EMPTY_PREDICTION"}
    assert read(**empty).counted is None
    assert read(**empty, answer_a="", answer_b=" ").counted == "tie"
    assert read(**empty, answer_a="", answer_b="a cat").counted == "model_b"


def test_turning_a_pair_turns_all_of_it() -> None:
    pair = read(winner="model_a", probability_a=0.75, answer_a="one two", answer_b="three", votes=["A", "B", "A"])
    turned = pair.turned()
    assert (turned.models, turned.winner, turned.words) == (("y", "x"), "model_b", (1.0, 2.0))
    assert turned.orders == (JudgedOrder("model_b", "model_b"),)
    assert turned.votes == ("model_b", "model_a", "model_b")
    assert turned.turned() == pair


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted(
    {name for names in PAIR_COLUMNS.values() for name in names}
    | {"orders", "status", "probability_a", "length_a_words", "round", "digest", "winner_tie", "image", "references"}
)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from(["model_a", "tie", None, 3]))
def test_hostile_rows_are_pairs_or_are_told(fields: dict[str, Any], winner: Any) -> None:
    try:
        pair = judged_pair(Record(0, "line 1", {"winner": winner, **fields}), PAIR_COLUMNS)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - a reason is all that is asked for
        return
    assert all(pair.models)
    assert pair.models[0] != pair.models[1]
    assert pair.winner in {"model_a", "model_b", "tie", None}
    assert (pair.winner is None) == (pair.status != "OK")
    assert all(math.isnan(words) or words >= 0 for words in pair.words)
    assert len(pair.orders) <= 2
    assert pair.counted == pair.winner or pair.status in {"INCONSISTENT", "EMPTY_PREDICTION"}
    pair.turned()


def test_which_files_hold_pairs() -> None:
    assert holds_pairs(["model_a", "model_b", "winner"], PAIR_COLUMNS)
    assert not holds_pairs(["model", "prediction"], PAIR_COLUMNS)
