"""What is compared: pairs of answers, and their check before they go on the wire."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gradewire._input.fields import as_texts, found_values
from gradewire._input.tables import Table
from gradewire._input.values import UnreadableValueError
from gradewire.items import ItemProblem, RowForm, encode_row
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
    """Makes the message of a pair, or says what is wrong with it; arguments as `encode_item`."""
    if isinstance(pair, Mapping):
        try:
            pair = _with_caption(pair)
        except UnreadableValueError as error:
            return ItemProblem("", f"pairs[{index}].{error}")
    return encode_row(_PAIRS, index, pair, max_bytes=max_bytes, images=images)


def _with_caption(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rows of items have a `caption` beside their `captions`; of a pair it is the first of these."""
    found = found_values(row, ("caption", "captions"))
    if "caption" not in found:
        return row
    texts = as_texts(found)
    caption = [texts["caption"]] if "caption" in texts else []
    return {**row, "captions": [*caption, *texts.get("captions", ())]}
