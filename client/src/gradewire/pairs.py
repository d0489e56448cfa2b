"""Pairs of answers, and the results of their comparison."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from gradewire._rows import Table, UnreadableValueError, as_texts, field_values
from gradewire.items import ItemProblem, RowForm, encode_row
from gradewire.results import CacheHits, Provenance, ScoreWarning, Status, Timing
from gradewire_proto.v1 import judging_pb2


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question. A mapping with the same keys does as well.

    Attributes:
        question: What was asked, or the instruction; a blank one is INVALID_INPUT.
        answer_a: One of the answers; blank, or without letters and digits, is EMPTY_PREDICTION.
        answer_b: The other one, likewise.
        references: Right answers; read where the comparison shows them (`compare?references=true`).
        captions: What the picture shows; read with `caption=true`. A mapping may have a single one as `caption`.
        images: What the question is about, as `Item.images`; sent with `image=true`.
        id: Handed back beside the index; duplicates are allowed.
        group: A label for summaries, handed back too.
    """

    question: str
    answer_a: str
    answer_b: str
    references: Sequence[str] = ()
    captions: Sequence[str] = ()
    images: Sequence[object] = ()
    id: str = ""
    group: str = ""


PairLike = Pair | Mapping[str, Any]
PairsLike = Iterable[PairLike] | Table
"""Pairs, or a table with a row for each: of pandas, polars or Arrow."""

_PAIRS: Final = RowForm(
    "pairs",
    Pair,
    judging_pb2.Pair,
    ("id", "question", "answer_a", "answer_b", "group", "references", "captions"),
    ("answer_a", "answer_b"),
)


def encode_pair(index: int, pair: object, *, max_bytes: int, images: bool = False) -> judging_pb2.Pair | ItemProblem:
    """Make the message of a pair, or says what is wrong with it; arguments as `encode_item`."""
    if isinstance(pair, Mapping):
        try:
            pair = _with_caption(pair)
        except UnreadableValueError as error:
            return ItemProblem("", f"pairs[{index}].{error}")
    return encode_row(_PAIRS, index, pair, max_bytes=max_bytes, images=images)


def _with_caption(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rows of items have a `caption` beside their `captions`; of a pair it is the first of these."""
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
        first: The answer that it was shown first.
        winner: The most probable one, a tie where two are equally probable; None where no verdict could be read.
        probability_a: That answer A is the better one, 0 to 1; None as `winner`.
        probability_b: Likewise of answer B.
        probability_tie: Likewise of neither.
        reason: What it wrote before its verdict, with mode=reason.
        extracted: The verdict could not be read behind the reason, and was taken from the reason alone.
        label_mass: Probability of all three verdicts together before the judge was held to them, where that is known.
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
class Comparison:
    """Which of two answers is the better one, or why that is not known.

    Attributes:
        winner: Present exactly when `status` is OK.
        status: OK; INCONSISTENT where the two orders contradict each other; UNPARSABLE; or why nothing was compared.
        probability_a: Mean over both orders that answer A is the better one, 0 to 1; None where one of them could not
            be read, and where no judge was asked.
        probability_b: Likewise of answer B.
        probability_tie: Likewise of neither.
        orders: What the judge said, A first, then B first; also where it is INCONSISTENT or UNPARSABLE. Empty where no
            judge was asked, or it did not answer.
        index: Position of the pair in the call, from 0.
        id: As the caller gave it.
        group: Likewise.
        message: What went wrong and what to do; empty when OK.
        warnings: Remarks beside the verdict.
        decided_by: judge, or rule for answers that look the same; empty where there is no winner.
        prompt_tokens: Read by the judge, over both orders; 0 where its server does not tell.
        generated_tokens: Written by it, likewise.
        cache_hits: Where the verdicts came from.
        timing: Where the time went.
        provenance: What reproduces the verdict; None for a pair that never reached a server.
        retry_after_s: Seconds after which sending the pair again may help, where the server can tell (UNAVAILABLE).
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

    @property
    def line(self) -> str:
        """The line that reproduces the verdict; empty without provenance."""
        return "" if self.provenance is None else self.provenance.line

    def to_dict(self) -> dict[str, Any]:
        """For JSON: id, winner, status, then what there is of group, probabilities, orders, message, warnings, line."""
        row = {"id": self.id, "winner": self.winner, "status": str(self.status)}
        found = {
            "group": self.group,
            **_probabilities(self),
            "orders": [_order(order) for order in self.orders],
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
