"""Judged pairs from gradewire's outputs, or from arenas' files with conversations."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from gradewire._columns import ALIASES
from gradewire._rows import is_missing
from gradewire.results import Status
from gradewire_cli.rows.cells import MOST_VOTES, is_no_choice, listed_votes, unpacked
from gradewire_cli.rows.formats import Record, printable
from gradewire_cli.rows.row import question_key_of
from gradewire_proto.wire_rules import current

if TYPE_CHECKING:
    from gradewire_cli.scoring.pair_engine import Winner


_ARENA: Final = tomllib.loads(resources.files(__package__).joinpath("arena.toml").read_text("utf-8"))
PAIR_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {name: tuple(each) for name, each in _ARENA["columns"].items()}
"""Columns that may contain each field. If a row contains several of these columns, the first column is used."""
_WINNERS: Final[Mapping[str, Winner]] = {word: name for name, words in _ARENA["winners"].items() for word in words}
_ONE_HOT: Final[Mapping[str, Winner]] = {
    column: name for name, columns in _ARENA["winner_columns"].items() for column in columns
}
_OTHER: dict[Winner, Winner] = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
_CONTENT_DEPTH = 4
_ORDERS = 2
NAME_CHARACTERS = 200
"""Maximum number of characters in a model's name."""
# Maximum number of words in an answer. A larger number must be an error.
_MOST_WORDS = 1e9
OK = "OK"
INCONSISTENT = "INCONSISTENT"
"""The status of a pair whose two orders have different winners."""
EMPTY = "EMPTY_PREDICTION"
"""The status of a pair with a blank answer. The pair is not sent to a judge or metric."""
NO_VERDICT = "NO_VERDICT"
"""The status of a pair from another program that names no winner."""
_DONE: Final = frozenset({"ok", "success", "succeeded", "completed", "complete", "done", "judged"})
"""Words of other programs for a verdict that was reached."""
_FAILED: Final = re.compile(
    r"fail|error|invalid|unpars|unread|unavail|time.?out|timed|cancel|abort|skip|reject|refus|incomplete|missing"
    r"|pending|queued|running|exception|crash|\bno[ _-]",
    re.IGNORECASE,
)
"""Words of other programs for a verdict that was not reached, even if the row names a winner."""
_UNREACHED: Final = frozenset(Status) - {Status.OK, Status.TIED}


@dataclass(frozen=True, slots=True)
class JudgedOrder:
    """The verdict on one order of a pair. `winner` is None if the verdict is unreadable."""

    first: Literal["model_a", "model_b"]
    winner: Winner | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """Two answers to one instruction, with the verdict on them.

    Attributes:
        id: The row's id, or "" if the row has none.
        instruction: A key that pairs on the same instruction share.
        status: OK, or the reason why there is no verdict.
        has_answers: True if the row contains both answers, which may be blank.
        words: Number of words in each answer. NaN means unknown.
        probability_a: The judge's probability that A is better. NaN means unknown.
        by_votes: True if the row names no winner, so the winner is the majority of the votes.
        round: Index of the judging round that chose the pair, or None for a pair from another file.
        turn: Number of the judged turn in the conversation, from 1. 0 means unknown.
        drawn_with: A key that pairs share if draws take them together, or "" for the instruction's pairs.
    """

    position: str
    id: str = ""
    instruction: str
    models: tuple[str, str]
    winner: Winner | None
    status: str = OK
    orders: tuple[JudgedOrder, ...] = ()
    group: str = ""
    question: str = ""
    answers: tuple[str, str] = ("", "")
    has_answers: bool = False
    words: tuple[float, float] = (math.nan, math.nan)
    probability_a: float = math.nan
    votes: tuple[Winner, ...] = ()
    by_votes: bool = False
    by: str = ""
    round: int | None = None
    digest: str = ""
    turn: int = 0
    drawn_with: str = ""

    @property
    def unit(self) -> str:
        """A key that pairs share if bootstrap draws take them together."""
        return self.drawn_with or self.instruction

    @property
    def key(self) -> tuple[str, frozenset[str]]:
        """A key that pairs of the same models on the same instruction share, whichever model comes first."""
        return self.instruction, frozenset(self.models)

    @property
    def counted(self) -> Winner | None:
        """The winner for ratings, or None for a pair that ratings leave out.

        Two orders that contradict each other are a tie, because each answer won once. If the verdict of only one order
        is known, nothing shows that they contradict each other. Without a judge, a blank answer loses to a non-blank
        answer, and two blank answers tie.
        """
        if self.winner is not None:
            return self.winner
        known = [order.winner for order in self.orders if order.winner is not None]
        if self.status == INCONSISTENT and (len(known) == _ORDERS or not self.orders):
            return "tie"
        if self.status != EMPTY or not self.has_answers:
            return None
        blank = [not any(map(str.isalnum, answer)) for answer in self.answers]
        return {(True, False): "model_b", (False, True): "model_a", (True, True): "tie"}.get((blank[0], blank[1]))  # type: ignore[return-value]

    def turned(self) -> Self:
        """Return the pair with A and B swapped."""
        return replace(
            self,
            models=self.models[::-1],
            winner=self.winner and _OTHER[self.winner],
            orders=tuple(
                JudgedOrder("model_b" if order.first == "model_a" else "model_a", order.winner and _OTHER[order.winner])
                for order in self.orders
            ),
            answers=self.answers[::-1],
            words=self.words[::-1],
            probability_a=1 - self.probability_a,
            votes=tuple(_OTHER[vote] for vote in self.votes),
        )


def user_turns(said: Any) -> str:
    """Return the user's messages in a conversation. Return a plain string unchanged, and "" if nothing is readable."""
    return "\n".join(filter(None, _texts(said, "user")))


def answer_at(said: Any, turn: int = 0) -> str:
    """Return the model's answer in one turn, or "" if nothing is readable. Return a plain string unchanged.

    Turns count from 1. Turn 0 and turns beyond the end mean the last turn.
    """
    answers = _texts(said, "assistant")
    if 0 < turn <= len(answers):
        return answers[turn - 1]
    return next(filter(None, reversed(answers)), "")


def _texts(said: Any, role: Literal["user", "assistant"]) -> list[str]:
    if not isinstance(said, list):
        return [_content(said)]
    roles = _ARENA["roles"][role]
    return [
        _content(message)
        for message in said
        if not isinstance(message, Mapping) or "role" not in message or str(message["role"]).lower() in roles
    ]


def _content(message: Any, depth: int = 0) -> str:
    """Return a message's text. A message is a string, {"content": …}, or a list of messages."""
    if isinstance(message, str):
        return message
    if depth >= _CONTENT_DEPTH:
        return ""
    if isinstance(message, Mapping):
        inner = next((message[key] for key in ("content", "text", "value") if key in message), "")
        return _content(inner, depth + 1)
    if isinstance(message, list):
        return "\n".join(filter(None, (_content(part, depth + 1) for part in message)))
    return str(message) if isinstance(message, int | float) and not isinstance(message, bool) else ""


def holds_pairs(columns: Container[str], names: Mapping[str, Sequence[str]]) -> bool:
    """Return True if rows with these columns are pairs rather than answers."""
    return all(any(column in columns for column in names[side]) for side in ("model_a", "model_b"))


def judged_pair(record: Record, names: Mapping[str, Sequence[str]]) -> JudgedPair:
    """Convert a row to a pair.

    Args:
        record: The row.
        names: Columns that may contain each field. These are `PAIR_COLUMNS`, unless --map names others.

    Raises:
        ValueError: The row is not a pair. The message contains the reason.
    """
    if record.fields is None:
        raise ValueError("the row cannot be read")
    fields = record.fields

    def value(name: str) -> Any:
        return next((fields[column] for column in names[name] if not is_missing(fields.get(column))), None)

    models = _name(value("model_a")), _name(value("model_b"))
    if not all(models):
        raise ValueError("a model has no name")
    if models[0] == models[1]:
        raise ValueError("both answers are from the same model")
    votes = _votes(unpacked(value("votes"), brackets="[{"), models)
    winner = stated = _winner(value("winner"), fields, models)
    status = _status(fields.get("status"))
    if winner is not None and not _says_failed(status):
        status = OK
    if winner is None and status == OK:
        if not votes and fields.keys().isdisjoint((*names["winner"], *names["votes"], *_ONE_HOT)):
            raise ValueError(f"no winner (columns {', '.join((*names['winner'], *names['votes']))})")
        status = OK if votes else NO_VERDICT
        winner = majority(votes) if votes else None
    elif status != OK:
        winner = None
    sides = value("answer_a"), value("answer_b")
    said = [_conversation(side) for side in sides]
    turn = value("turn") if type(value("turn")) is int and value("turn") > 0 else 0
    asked = [user_turns(each) for each in said if isinstance(each, list)]
    question = next((text for text in (_text(value("instruction")), *asked) if text), "")
    answers = (answer_at(said[0], turn), answer_at(said[1], turn))
    return JudgedPair(
        position=record.position,
        id=_text(fields.get("id")).strip(),
        instruction=_instruction(fields, _text(value("instruction_id")), question, record.index),
        models=models,
        winner=winner,
        status=status,
        orders=_orders(fields, winner if stated else None),
        group=_text(value("group")),
        question=question,
        answers=answers,
        has_answers=None not in sides,
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
    """Return the winner with more than half of the votes, or "tie" if there is no such winner."""
    return next((winner for winner in set(votes) if 2 * votes.count(winner) > len(votes)), "tie")


def _status(value: Any) -> str:
    status = OK if is_missing(value) else printable(str(value)).strip()[:NAME_CHARACTERS]
    return OK if not status or status.lower() in _DONE else status


def _says_failed(status: str) -> bool:
    """Return True if a status says that no verdict was reached. Other words do not take a stated winner away."""
    return status.upper() in _UNREACHED or _FAILED.search(status) is not None


def _name(value: Any) -> str:
    if value is None or value != value or isinstance(value, list | Mapping):  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    name = printable(str(value)).strip()
    if len(name) > NAME_CHARACTERS:
        raise ValueError(f"a model's name has more than {NAME_CHARACTERS} characters")
    return name


def _text(value: Any) -> str:
    return user_turns(_conversation(value)) if value is not None else ""


def _conversation(value: Any) -> Any:
    """Decode a list of messages or turns that a cell contains as text. Return other values unchanged."""
    found = unpacked(value, brackets="[") if isinstance(value, str) else value
    is_one = isinstance(found, list) and found and all(isinstance(each, str | Mapping) for each in found)
    return found if is_one else value


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
            raise ValueError("more than one winner_… column is 1")
        return hot[0] if hot else None
    return _side(value, models)


def _side(value: Any, models: tuple[str, str]) -> Winner | None:
    text = str(value).strip()
    named: Winner | None = None if text not in models else "model_a" if text == models[0] else "model_b"
    if found := _WINNERS.get(text.lower()):
        if named not in {None, found} and text.lower() in {"a", "b"}:
            raise ValueError(f"winner or vote {text} names one side and the other side's model. Use model_a or model_b")
        return found
    if named is not None:
        return named
    if is_no_choice(value):
        return None
    raise ValueError("a winner or vote is not model_a, model_b or tie")


def _votes(cell: Any, models: tuple[str, str]) -> tuple[Winner, ...]:
    sides = (_side(vote, models) for vote in listed_votes(cell)[:MOST_VOTES] if vote is not None)
    return tuple(side for side in sides if side is not None)


def _orders(fields: Mapping[str, Any], winner: Winner | None) -> tuple[JudgedOrder, ...]:
    """Return a row's verdicts by order. If the row has a winner but no orders, assume that A came first."""
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
    image = next((str(fields[column]) for column in ALIASES["image"] if fields.get(column) is not None), "")
    return question_key_of("", image, {"question": question, "references": fields.get("references")}) or f"row {index}"
