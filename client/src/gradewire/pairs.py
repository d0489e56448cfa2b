"""Pairs of answers, and the results of their comparison."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from gradewire._rows import Table, UnreadableValueError, as_texts, field_values
from gradewire.items import ItemProblem, RowFormat, encode_row
from gradewire.results import CacheHits, Provenance, ScoreWarning, Status, Timing
from gradewire_proto.v1 import judging_pb2


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of answers to one question. A mapping with the same keys works too.

    Attributes:
        question: The question or instruction. If it is blank, the pair gets the status INVALID_INPUT.
        answer_a: One answer. If either answer has no letters or digits, the pair gets the status EMPTY_PREDICTION.
        answer_b: The other answer.
        references: Right answers, shown to the judge with `compare?references=true`.
        captions: Descriptions of the picture, shown with `caption=true`. A mapping may also have a single description,
            under the key `caption`.
        images: Pictures that the question is about, in the formats of `Item.images`; sent with `image=true`.
        id: Your id for the pair, returned with the result; need not be unique.
        group: A label for summaries; no metric reads it.
        others: At most 62 more answers, only with `compare:listwise`, which puts all answers in order. A mapping has
            none: `Client.rank` takes lists of answers.
    """

    question: str
    answer_a: str
    answer_b: str
    references: Sequence[str] = ()
    captions: Sequence[str] = ()
    images: Sequence[object] = ()
    id: str = ""
    group: str = ""
    others: Sequence[str] = ()


PairLike = Pair | Mapping[str, Any]
PairsLike = Iterable[PairLike] | Table
"""Pairs, or a pandas, polars or Arrow table with one pair per row."""

_PAIRS: Final = RowFormat(
    "pairs",
    Pair,
    judging_pb2.Pair,
    ("id", "question", "answer_a", "answer_b", "group", "references", "captions"),
    ("answer_a", "answer_b"),
)


def encode_pair(index: int, pair: object, *, max_bytes: int, images: bool = False) -> judging_pb2.Pair | ItemProblem:
    """Return a pair's message, or the reason why the pair cannot be sent; see `encode_item` for the arguments."""
    if isinstance(pair, Mapping):
        try:
            pair = _with_caption(pair)
        except UnreadableValueError as error:
            return ItemProblem("", f"pairs[{index}].{error}")
    message = encode_row(_PAIRS, index, pair, max_bytes=max_bytes, images=images)
    if not isinstance(pair, Pair) or not pair.others or isinstance(message, ItemProblem):
        return message
    if isinstance(pair.others, str):
        return ItemProblem(message.id, f"pairs[{index}].others is a string: give a list of strings")
    try:
        message.others.extend(pair.others)
    except (TypeError, ValueError):
        return ItemProblem(message.id, f"pairs[{index}].others is no list of valid strings: give a list of strings")
    if (size := message.ByteSize()) > max_bytes:
        problem = f"pairs[{index}] has {size} bytes, but at most {max_bytes} fit into a message: give fewer answers"
        return ItemProblem(message.id, problem, too_large=True)
    return message


def _with_caption(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put a row's `caption` before its `captions`, because a pair's message has no field for `caption`."""
    found = field_values(row, ("caption", "captions"))
    if "caption" not in found:
        return row
    texts = as_texts(found)
    caption = [texts["caption"]] if "caption" in texts else []
    return {**row, "captions": [*caption, *texts.get("captions", ())]}


Winner: TypeAlias = Literal["a", "b", "tie"]


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """The judge's verdict on a pair in one of its two orders.

    Attributes:
        first: The answer shown first.
        winner: The most probable winner, or "tie" if both answers are equally probable; None if the server could not
            parse the judge's verdict.
        probability_a: Probability that answer A is better, 0 to 1; None without a verdict.
        probability_b: Probability that answer B is better.
        probability_tie: Probability of a tie.
        reason: The text that the judge wrote before its verdict, with mode=reason.
        extracted: True if no readable verdict followed the reason, so the verdict was taken from the reason.
        label_mass: Total probability of the three possible verdicts before the judge was limited to these; None if
            unknown.
    """

    first: Literal["a", "b"]
    winner: Winner | None
    probability_a: float | None = None
    probability_b: float | None = None
    probability_tie: float | None = None
    reason: str = ""
    extracted: bool = False
    label_mass: float | None = None


@dataclass(frozen=True, slots=True)
class ListVerdict:
    """The judge's ranking of a list of answers, which it saw in one of several orders.

    Attributes:
        shown: Positions of the answers in the order in which the judge saw them: 0 is `answer_a`, 1 is `answer_b`, and
            2 is the first of `others`.
        ranks: Rank of each answer by position, 1 for the best one. Equal answers share a rank. Empty if the server
            could not parse the ranking.
    """

    shown: tuple[int, ...]
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The better of two answers, or the reason why no winner is known.

    Attributes:
        winner: Set if and only if `status` is OK, but None for `compare:listwise`.
        status: OK, or the reason why there is no winner, such as INCONSISTENT if the verdicts in the two orders
            contradict each other.
        probability_a: Probability that answer A is better, 0 to 1, averaged over both orders. None if the server could
            not parse the verdict in one order, or needed no judge.
        probability_b: The same for answer B.
        probability_tie: The same for a tie.
        orders: The judge's verdicts with answer A shown first, and with answer B shown first, even if `status` is
            INCONSISTENT or UNPARSABLE. Empty if the server needed no judge, or the judge did not answer.
        index: Position of the pair in the call, from 0.
        id: The caller's id.
        group: The caller's group.
        message: The error and its remedy; empty if `status` is OK.
        warnings: Notes on the verdict.
        decided_by: "judge", or "rule" if the answers look the same; empty without a winner.
        prompt_tokens: Number of tokens that the judge read in both orders; 0 if unknown.
        generated_tokens: Number of tokens that the judge wrote in both orders; 0 if unknown.
        cache_hits: Number of verdicts by source.
        timing: Seconds by type of work.
        provenance: Everything needed to reproduce the verdict; None for a pair that never reached a server.
        retry_after_s: Seconds to wait before a retry, if the server can estimate them (UNAVAILABLE).
        lists: With `compare:listwise`, the judge's rankings of the answers, one for each order that it saw, even if
            `status` is UNPARSABLE.
    """

    winner: Winner | None
    status: Status
    probability_a: float | None = None
    probability_b: float | None = None
    probability_tie: float | None = None
    orders: tuple[OrderVerdict, ...] = ()
    index: int = 0
    id: str = ""
    group: str = ""
    message: str = ""
    warnings: tuple[ScoreWarning, ...] = ()
    decided_by: str = ""
    prompt_tokens: int = 0
    generated_tokens: int = 0
    cache_hits: CacheHits = field(default_factory=CacheHits)
    timing: Timing = field(default_factory=Timing)
    provenance: Provenance | None = None
    retry_after_s: float | None = None
    lists: tuple[ListVerdict, ...] = ()

    @property
    def line(self) -> str:
        """The metric identifier that reproduces the verdict; empty without provenance."""
        return "" if self.provenance is None else self.provenance.line

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON with id, winner and status, and with the other fields that are not empty."""
        row = {"id": self.id, "winner": self.winner, "status": str(self.status)}
        found = {
            "group": self.group,
            **_probabilities(self),
            "orders": [_order(order) for order in self.orders],
            "lists": [{"shown": list(each.shown), "ranks": list(each.ranks)} for each in self.lists],
            "message": self.message,
            "decided_by": self.decided_by,
            "warnings": [str(warning) for warning in self.warnings],
            "line": self.line,
        }
        return row | {name: value for name, value in found.items() if value not in ("", [])}


def _order(order: OrderVerdict) -> dict[str, Any]:
    row = {"first": order.first, "winner": order.winner, **_probabilities(order)}
    found = {"reason": order.reason, "extracted": order.extracted}
    return row | {name: value for name, value in found.items() if value}


def _probabilities(received: Comparison | OrderVerdict) -> dict[str, float]:
    names = ("probability_a", "probability_b", "probability_tie")
    return {name: value for name in names if (value := getattr(received, name)) is not None}
