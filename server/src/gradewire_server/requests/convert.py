"""Items and results between the wire and the domain, with pauses for other work while large requests are read."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Protocol, TypeVar

from google.protobuf.message import Message

from gradewire_proto.parts import PART_TYPES, Parts
from gradewire_proto.v1 import judging_pb2, references_pb2, types_pb2
from gradewire_proto.wire_rules import MAX_ID_BYTES, MAX_NAME_BYTES, TooManyMarksError, byte_count, has_long_run, nfc
from gradewire_server.domain.items import (
    CacheHits,
    Failure,
    Image,
    Item,
    MetricResult,
    ReferenceEntry,
    ScoredResult,
    Status,
    shortened,
)
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.settings.limits import Limits

RowT = TypeVar("RowT", types_pb2.Item, judging_pb2.Pair)

_MAX_UTF8_BYTES_PER_CHAR: Final = 4
_MAX_IMAGES: Final = 1024
"""Pictures of an item, whatever it is graded by: more are not even taken apart. What a judge is shown is bounded by
`max_images_per_item`, and only for the metrics that show them."""
MAX_PART_CHARACTERS: Final = 8192
"""Of a text among a result's parts: what an item brings once must not come back with each of its metrics."""
_TEXTS: Final[Mapping[type[Message], tuple[str, ...]]] = {
    types_pb2.Item: ("id", "question", "prediction", "caption", "group"),
    judging_pb2.Pair: ("id", "question", "answer_a", "answer_b", "group"),
}
_LISTS: Final[Mapping[type[Message], tuple[str, ...]]] = {
    types_pb2.Item: ("references", "synthetic_answers", "captions"),
    judging_pb2.Pair: ("references", "captions"),
}
_NOUNS: Final[Mapping[type[Message], str]] = {types_pb2.Item: "item", judging_pb2.Pair: "pair"}
_PARTS: Final[Mapping[type[Parts], str]] = {kind: name for name, kind in PART_TYPES.items()}


def read_reference_set(name: str, path: str = "reference_set") -> str:
    """The name of a reference set as it is used in keys; raises InvalidRequestError where it cannot be one."""
    try:
        # NFC makes some texts longer; it is not asked for one that is far too long.
        named = nfc(name) if len(name) <= MAX_NAME_BYTES else name
    except TooManyMarksError as error:
        raise InvalidRequestError(path, str(error)) from None
    if (size := byte_count(named)) > MAX_NAME_BYTES:
        raise InvalidRequestError(path, f"has {size} bytes, a name has at most {MAX_NAME_BYTES}")
    return named


def reply_id(message: types_pb2.Item | judging_pb2.Pair) -> str:
    """The id of an item or pair as it is handed back: cut where it is too long, which makes it INVALID_INPUT."""
    return message.id if byte_count(message.id) <= MAX_ID_BYTES else shortened(message.id)


def read_item(message: types_pb2.Item, limits: Limits, *, check_bytes: bool) -> Item | Failure:
    """Turns an item into the domain's; INVALID_INPUT where it is over a limit or has too many marks in a row.

    Args:
        message: The item.
        limits: Its bounds.
        check_bytes: False where the whole message is no larger than one item may be, which saves counting.
    """
    return read_row(message, limits, check_bytes=check_bytes, make=_item)


def read_row(
    message: RowT, limits: Limits, *, check_bytes: bool, make: Callable[[RowT, dict[str, Any]], Item]
) -> Item | Failure:
    """As `read_item`, for an item or a pair.

    Args:
        message: The item or pair.
        limits: Its bounds.
        check_bytes: As in `read_item`.
        make: Makes it of its message and the values of its fields, normalised, by their names.
    """
    references = message.references
    failure = _over_limit(len(references), limits)
    if failure is None and len(message.images) > _MAX_IMAGES:
        failure = Failure(
            Status.INVALID_INPUT, f"images: {len(message.images)} of them, no item may have more than {_MAX_IMAGES}"
        )
    if failure is None and (id_bytes := byte_count(message.id)) > MAX_ID_BYTES:
        failure = Failure(Status.INVALID_INPUT, f"id: has {id_bytes} bytes, at most {MAX_ID_BYTES} are allowed")
    texts: dict[str, str] = {name: getattr(message, name) for name in _TEXTS[type(message)]}
    if failure is None and check_bytes:
        lists: list[Sequence[str]] = [getattr(message, name) for name in _LISTS[type(message)]]
        failure = _too_large([*texts.values(), *chain(*lists)], limits, _NOUNS[type(message)])
    if failure is not None:
        return failure
    try:
        values: dict[str, Any] = {name: nfc(text) for name, text in texts.items()}
        values["references"] = tuple(map(nfc, references))
        values["captions"] = tuple(nfc(caption) for caption in message.captions if caption.strip())
        values["images"] = tuple(Image(each.data, each.uri, each.media_type) for each in message.images)
        return make(message, values)
    except TooManyMarksError as error:
        return _over_marks(message, error)


def _item(message: types_pb2.Item, values: dict[str, Any]) -> Item:
    caption = values.pop("caption")
    if caption.strip():
        values["captions"] = (caption, *values["captions"])
    return Item(synthetic_answers=tuple(map(nfc, message.synthetic_answers)), **values)


def read_entry(message: references_pb2.ReferenceEntry, limits: Limits) -> ReferenceEntry | Failure:
    """Turns an entry to prepare into the domain's; INVALID_INPUT as `read_item`."""
    failure = _over_limit(len(message.references), limits)
    if failure is None:
        failure = _too_large([message.question, *message.references, *message.synthetic_answers], limits)
    if failure is not None:
        return failure
    try:
        return ReferenceEntry(
            question=nfc(message.question),
            references=tuple(map(nfc, message.references)),
            synthetic_answers=tuple(map(nfc, message.synthetic_answers)),
        )
    except TooManyMarksError as error:
        return _over_marks(message, error)


def fill_result(message: types_pb2.MetricResult, metric_index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
    """Writes a result into its message in place, which spares a copy; cost only with `diagnostics`."""
    result = scored.result
    message.metric_index = metric_index
    fill_outcome(message, result)
    if result.score is not None:
        message.score = result.score
    if result.matched_reference is not None:
        message.matched_reference = result.matched_reference
    if result.parts is not None:
        _fill_parts(message, result.parts)
    if result.correct is not None:
        message.correct = result.correct
    if diagnostics:
        fill_cost(message, scored)


def fill_outcome(message: types_pb2.MetricResult | judging_pb2.PairResult, result: MetricResult) -> None:
    """Writes how it ended into its message, and what is said beside it."""
    message.status = int(result.status)  # type: ignore[assignment]
    if result.message:
        message.message = result.message
    if result.warnings:
        message.warnings.extend(map(int, result.warnings))  # type: ignore[arg-type]
    if result.retry_after_s is not None:
        message.retry_after_s = result.retry_after_s


def fill_cost(message: types_pb2.MetricResult | judging_pb2.PairResult, scored: ScoredResult) -> None:
    """Writes where the texts were found, and where the time went, into its message."""
    fill_hits(message.cache_hits, scored.cache_hits)
    timing = message.timing
    timing.queue_s = scored.timing.queue_s
    timing.cache_s = scored.timing.cache_s
    timing.tokenize_s = scored.timing.tokenize_s
    timing.inference_s = scored.timing.inference_s


def fill_hits(message: types_pb2.CacheHits, hits: CacheHits) -> None:
    """Writes how many texts were found where into their message."""
    message.memory = hits.memory
    message.disk = hits.disk
    message.redis = hits.redis
    message.joined = hits.joined
    message.computed = hits.computed


def _fill_parts(message: types_pb2.MetricResult, parts: Parts) -> None:
    """Writes parts into the message of their kind, field by field: both sides have the same names."""
    target: Any = getattr(message, _PARTS[type(parts)])
    target.SetInParent()
    for name in type(parts).__slots__:
        value = getattr(parts, name)
        if isinstance(value, float | int):  # most of them
            setattr(target, name, value)
        elif isinstance(value, str):
            setattr(target, name, shortened(value, MAX_PART_CHARACTERS))
        elif isinstance(value, tuple):
            getattr(target, name).extend(value)
        elif isinstance(value, Mapping):
            getattr(target, name).update(value)
        elif value is not None:
            setattr(target, name, value)


def _over_limit(reference_count: int, limits: Limits) -> Failure | None:
    if reference_count > limits.max_references_per_item:
        return Failure(
            Status.INVALID_INPUT,
            f"references: {reference_count} of them, at most {limits.max_references_per_item} are allowed",
        )
    return None


def _too_large(strings: Sequence[str], limits: Limits, noun: str = "item") -> Failure | None:
    size = sum(map(len, strings))
    if size * _MAX_UTF8_BYTES_PER_CHAR <= limits.max_item_bytes:
        return None
    size = sum(len(text) if text.isascii() else len(text.encode()) for text in strings)
    if size > limits.max_item_bytes:
        return Failure(
            Status.INVALID_INPUT, f"{noun}: {size} bytes of text, at most {limits.max_item_bytes} are allowed"
        )
    return None


def _over_marks(message: Message, error: TooManyMarksError) -> Failure:
    """Names the first field at fault; all fields are strings or lists of them."""
    for field, value in message.ListFields():
        if isinstance(value, str):
            if has_long_run(value):
                return Failure(Status.INVALID_INPUT, f"{field.name}: {error}")
            continue
        for index, text in enumerate(value):
            if isinstance(text, str) and has_long_run(text):
                return Failure(Status.INVALID_INPUT, f"{field.name}[{index}]: {error}")
    raise error


ITEMS_PER_TURN: Final = 128
"""About 1 ms of reading."""
BYTES_PER_TURN: Final = 256 * 1024
"""Read at once; a single element that is larger is read on a thread."""

T = TypeVar("T")


class Sized(Protocol):
    """A protobuf message, of which only the size matters here."""

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's name
        """Encoded size."""
        ...


class YieldBudget:
    """How much of one request is read before the event loop's other work gets a turn.

    Args:
        request_bytes: Size of the request where it is known; one that fits into a turn is not measured again.

    Attributes:
        last_bytes: Size of the element that was counted last, for to measure is to encode; 0 where none is measured.
    """

    def __init__(self, request_bytes: int | None = None) -> None:
        self._counts_bytes = request_bytes is None or request_bytes > BYTES_PER_TURN
        self._items = 0
        self._bytes = 0
        self.last_bytes = 0

    def is_exceeded_by(self, element: Sized) -> bool:
        """Counts `element`; whether it belongs to the next turn, so that others get theirs before it is read."""
        size_bytes = self.last_bytes = element.ByteSize() if self._counts_bytes else 0
        exceeded = self._items == ITEMS_PER_TURN or (self._items > 0 and self._bytes + size_bytes > BYTES_PER_TURN)
        if exceeded:
            self._items = self._bytes = 0
        self._items += 1
        self._bytes += size_bytes
        return exceeded


async def read_beside(size_bytes: int, read: Callable[[], T]) -> T:
    """What `read` makes of an element of that size; of a large one on a thread: normal forms take 0.1 s a megabyte."""
    return await asyncio.to_thread(read) if size_bytes > BYTES_PER_TURN else read()
