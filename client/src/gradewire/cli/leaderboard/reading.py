"""Judged pairs of a file: our own lines, and arena-like rows of others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradewire.cli.input.cells import unpacked
from gradewire.cli.input.record import printable
from gradewire.cli.input.rows import question_key_of
from gradewire.cli.leaderboard.messages import answer_at, user_turns
from gradewire.cli.leaderboard.pairs import NAME_CHARACTERS, OK, JudgedOrder, JudgedPair, Winner
from gradewire_proto.conventions.metric_lines import current

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from gradewire.cli.input.record import Record

# Columns in which a field stands, the first that a row has wins.
PAIR_COLUMNS: dict[str, tuple[str, ...]] = {
    "model_a": ("model_a",),
    "model_b": ("model_b",),
    "winner": ("winner",),
    "votes": ("votes", "annotations"),
    "instruction_id": ("instruction_id", "question_id"),
    "family": ("family", "instruction_category", "category"),
    "instruction": ("question", "instruction", "prompt"),
    "answer_a": ("answer_a", "response_a", "conversation_a"),
    "answer_b": ("answer_b", "response_b", "conversation_b"),
    "turn": ("turn",),
}
_WINNERS: Mapping[str, Winner] = {
    "model_a": "model_a",
    "a": "model_a",
    "model_b": "model_b",
    "b": "model_b",
    "tie": "tie",
    "both_bad": "tie",
    "bothbad": "tie",
    "both bad": "tie",
    "tie (bothbad)": "tie",
    "tie (both bad)": "tie",
    "tie_bothbad": "tie",
}
# A winner as three columns of 0 and 1.
_ONE_HOT: Mapping[str, Winner] = {
    "winner_model_a": "model_a",
    "winner_model_b": "model_b",
    "winner_tie": "tie",
    "winner_tie_bothbad": "tie",
}
_MOST_VOTES = 1000
# More than any answer has: what is above is no number of words.
_MOST_WORDS = 1e9


def holds_pairs(columns: Container[str], names: Mapping[str, Sequence[str]]) -> bool:
    """Whether rows with these columns are pairs, and no answers."""
    return all(any(column in columns for column in names[side]) for side in ("model_a", "model_b"))


def judged_pair(record: Record, names: Mapping[str, Sequence[str]]) -> JudgedPair:
    """Reads a row.

    Args:
        record: The row.
        names: Columns of each field, as `PAIR_COLUMNS` with those of --map in their place.

    Raises:
        ValueError: It is no pair; says why.
    """
    if record.fields is None:
        raise ValueError("the row cannot be read")
    fields = record.fields

    def value(name: str) -> Any:
        return next((fields[column] for column in names[name] if fields.get(column) is not None), None)

    models = _name(value("model_a")), _name(value("model_b"))
    if not all(models):
        raise ValueError("a model has no name")
    if models[0] == models[1]:
        raise ValueError("both answers are of one model")
    votes = _votes(unpacked(value("votes"), brackets="[{"), models)
    winner = stated = _winner(value("winner"), fields, models)
    status = str(fields.get("status") or OK)
    if winner is None and status == OK:
        if not votes and not ("winner" in fields or value("winner") is not None):
            raise ValueError(f"there is no winner (looked for {', '.join((*names['winner'], *names['votes']))})")
        status = OK if votes else "NO_VERDICT"
        winner = majority(votes) if votes else None
    elif status != OK:
        winner = None
    said = [_conversation(value(side)) for side in ("answer_a", "answer_b")]
    turn = _turn(value("turn"))
    asked = [user_turns(each) for each in said if isinstance(each, list)]
    question = next((text for text in (_text(value("instruction")), *asked) if text), "")
    answers = (answer_at(said[0], turn), answer_at(said[1], turn))
    return JudgedPair(
        place=record.place,
        instruction=_instruction(fields, _text(value("instruction_id")), question, record.index),
        models=models,
        winner=winner,
        status=status,
        orders=_orders(fields, winner if stated else None),
        family=_text(value("family")),
        question=question,
        answers=answers,
        words=(_words(fields.get("length_a_words"), answers[0]), _words(fields.get("length_b_words"), answers[1])),
        probability_a=_number(fields.get("probability_a")),
        votes=votes,
        by_votes=winner is not None and stated is None,
        by=current(_text(fields.get("by"))),
        round=fields["round"] if type(fields.get("round")) is int else None,
        digest=_text(fields.get("digest")),
        turn=turn,
    )


def majority(votes: Sequence[Winner]) -> Winner:
    """What more than half of the votes are for; a tie without such a majority."""
    return next((winner for winner in set(votes) if 2 * votes.count(winner) > len(votes)), "tie")


def _name(value: Any) -> str:
    if value is None or value != value or isinstance(value, list | Mapping):  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    name = printable(str(value)).strip()
    if len(name) > NAME_CHARACTERS:
        raise ValueError(f"the name of a model has more than {NAME_CHARACTERS} characters")
    return name


def _text(value: Any) -> str:
    # A prompt may be the list of its turns.
    return user_turns(_conversation(value)) if value is not None else ""


def _conversation(value: Any) -> Any:
    """A list of messages or turns, which a cell may hold as text; any other text as it is."""
    found = unpacked(value, brackets="[") if isinstance(value, str) else value
    is_one = isinstance(found, list) and found and all(isinstance(each, str | Mapping) for each in found)
    return found if is_one else value


def _turn(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else math.nan


def _words(given: Any, answer: str) -> float:
    number = _number(given)
    if 0 <= number <= _MOST_WORDS:
        return number
    return float(len(answer.split())) if answer.strip() else math.nan


def _winner(value: Any, fields: Mapping[str, Any], models: tuple[str, str]) -> Winner | None:
    if value is None:
        hot = [winner for column, winner in _ONE_HOT.items() if str(fields.get(column)) in {"1", "1.0", "True"}]
        if len(set(hot)) > 1:
            raise ValueError("more than one of the columns winner_… is 1")
        return hot[0] if hot else None
    return _side(value, models)


def _side(value: Any, models: tuple[str, str]) -> Winner:
    text = str(value).strip()
    # Some name the model that won.
    named: Winner | None = None if text not in models else "model_a" if text == models[0] else "model_b"
    if found := _WINNERS.get(text.lower()):
        if named not in {None, found} and text.lower() in {"a", "b"}:
            raise ValueError(
                f"winner or vote {text} is a side and the model of the other one: write model_a or model_b"
            )
        return found
    if named is not None:
        return named
    raise ValueError("a winner or vote is none of model_a, model_b, tie")


def _votes(cell: Any, models: tuple[str, str]) -> tuple[Winner, ...]:
    if isinstance(cell, Mapping):
        if not all(type(count) is int and 0 <= count <= _MOST_VOTES for count in cell.values()):
            raise ValueError("a number of votes is none")
        cell = [vote for vote, count in cell.items() for _ in range(count)]
    if isinstance(cell, str):
        cell = cell.replace(",", " ").split()
    given = cell[:_MOST_VOTES] if isinstance(cell, list) else []
    return tuple(_side(vote, models) for vote in given if vote is not None)


def _orders(fields: Mapping[str, Any], winner: Winner | None) -> tuple[JudgedOrder, ...]:
    """What a row says of the orders; where it knows none, A was the first and the verdict is that order's."""
    if "orders" not in fields:
        return (JudgedOrder("model_a", winner),) if winner is not None else ()
    given = fields["orders"]
    found = []
    for order in given if isinstance(given, list) else []:
        first = _known(order.get("first")) if isinstance(order, Mapping) else None
        if first is not None and first != "tie":
            found.append(JudgedOrder(first, _known(order.get("winner"))))
    return tuple(found[:2])


def _known(value: Any) -> Winner | None:
    return _WINNERS.get(value.strip().lower()) if isinstance(value, str) else None


def _instruction(fields: Mapping[str, Any], identifier: str, question: str, index: int) -> str:
    if identifier.strip():
        return identifier.strip()
    image = next((str(fields[column]) for column in ("image_id", "image") if fields.get(column) is not None), "")
    return question_key_of("", image, {"question": question, "references": fields.get("references")}) or f"row {index}"
