"""Convert items, pairs and results between protobuf messages and domain objects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf.message import Message

from gradewire_proto.parts import PART_TYPES, JudgeParts, Parts, SmileParts, VqaParts
from gradewire_proto.v1 import judging_pb2, references_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import MAX_ID_BYTES, MAX_NAME_BYTES, TooManyMarksError, byte_count, has_long_run, nfc
from gradewire_server.domain.items import (
    CacheHits,
    Compared,
    Failure,
    Image,
    Item,
    MetricResult,
    OrderVerdict,
    Pair,
    ReferenceEntry,
    ScoredResult,
    Status,
    Timing,
    shortened,
)
from gradewire_server.loop_turns import give_way
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.settings.limits import Limits

MessageT = TypeVar("MessageT", bound=Message)
Row: TypeAlias = types_pb2.Item | judging_pb2.Pair
T = TypeVar("T")

ITEMS_PER_TURN: Final = 128
"""The number of items to convert (in about 1 ms) before other tasks get a turn."""
BYTES_PER_TURN: Final = 256 * 1024
"""The number of bytes to convert before other tasks get a turn. Larger elements are converted on a thread."""

_MAX_UTF8_BYTES_PER_CHAR: Final = 4
_MAX_IMAGES: Final = 1024
MAX_PART_CHARACTERS: Final = 8192
"""The maximum length of a string in a result's parts. Longer strings are cut."""
_TEXTS: Final[Mapping[type[Message], tuple[str, ...]]] = {
    types_pb2.Item: ("id", "question", "prediction", "caption", "group"),
    judging_pb2.Pair: ("id", "question", "answer_a", "answer_b", "group"),
}
_LISTS: Final[Mapping[type[Message], tuple[str, ...]]] = {
    types_pb2.Item: ("references", "synthetic_answers", "captions", "choices"),
    judging_pb2.Pair: ("references", "captions", "others"),
}
_NOUNS: Final[Mapping[type[Message], str]] = {types_pb2.Item: "item", judging_pb2.Pair: "pair"}
_PARTS: Final[Mapping[type[Parts], str]] = {kind: name for name, kind in PART_TYPES.items()}


def read_reference_set(name: str, path: str = "reference_set") -> str:
    """Return a reference set's normalised name, or raise InvalidRequestError if `name` is invalid."""
    try:
        named = nfc(name) if len(name) <= MAX_NAME_BYTES else name
    except TooManyMarksError as error:
        raise InvalidRequestError(path, str(error)) from None
    if (size := byte_count(named)) > MAX_NAME_BYTES:
        raise InvalidRequestError(path, f"has {size} bytes, but at most {MAX_NAME_BYTES} are allowed")
    return named


def reply_id(message: Row) -> str:
    """Return the row's ID for the reply. If the ID has more than MAX_ID_BYTES, shorten it."""
    return message.id if byte_count(message.id) <= MAX_ID_BYTES else shortened(message.id)


def read_row(message: Row, limits: Limits, *, check_bytes: bool) -> Item | Failure:
    """Convert an item or pair, or return INVALID_INPUT if a limit is exceeded.

    Pass `check_bytes=False` if the message is known to be small enough.
    """
    references, images = message.references, message.images
    failure = _over_limit(len(references), limits)
    if failure is None and len(images) > _MAX_IMAGES:
        failure = _invalid(f"images: has {len(images)} images, but at most {_MAX_IMAGES} are allowed")
    texts: dict[str, str] = {name: getattr(message, name) for name in _TEXTS[type(message)]}
    if failure is None and (id_bytes := byte_count(texts["id"])) > MAX_ID_BYTES:
        failure = _invalid(f"id: has {id_bytes} bytes, but at most {MAX_ID_BYTES} are allowed")
    if failure is None and check_bytes:
        lists: list[Sequence[str]] = [getattr(message, name) for name in _LISTS[type(message)]]
        failure = _too_large([*texts.values(), *chain(*lists)], limits, _NOUNS[type(message)])
    if failure is not None:
        return failure
    try:
        values: dict[str, Any] = {name: nfc(text) if text else "" for name, text in texts.items()}
        values["references"] = tuple(map(nfc, references))
        captions = message.captions
        values["captions"] = tuple([nfc(caption) for caption in captions if caption.strip()]) if captions else ()
        values["images"] = tuple([Image(each.data, each.uri, each.media_type) for each in images]) if images else ()
        if isinstance(message, judging_pb2.Pair):
            answer_a, answer_b = values.pop("answer_a"), values.pop("answer_b")
            return Pair(prediction=answer_a, rival=answer_b, others=tuple(map(nfc, message.others)), **values)
        caption = values.pop("caption")
        if caption.strip():
            values["captions"] = (caption, *values["captions"])
        return Item(
            synthetic_answers=tuple(map(nfc, message.synthetic_answers)),
            choices=tuple(map(nfc, message.choices)),
            answerable=message.answerable or not message.HasField("answerable"),
            **values,
        )
    except TooManyMarksError as error:
        return _over_marks(message, error)


def read_entry(message: references_pb2.ReferenceEntry, limits: Limits) -> ReferenceEntry | Failure:
    """Convert an entry, or return INVALID_INPUT if a limit is exceeded."""
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
    """Write a result into `message`. If `diagnostics` is True, also write cache hits and timing."""
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
    """Write a result's status, message, warnings and retry delay into `message`."""
    message.status = int(result.status)  # type: ignore[assignment]
    if result.message:
        message.message = result.message
    if result.warnings:
        message.warnings.extend(map(int, result.warnings))  # type: ignore[arg-type]
    if result.retry_after_s is not None:
        message.retry_after_s = result.retry_after_s


def fill_cost(message: types_pb2.MetricResult | judging_pb2.PairResult, scored: ScoredResult) -> None:
    """Write a result's cache hits and timing into `message`."""
    fill_hits(message.cache_hits, scored.cache_hits)
    fill_timing(message.timing, scored.timing)


def fill_timing(message: types_pb2.Timing, timing: Timing) -> None:
    """Write a timing into `message`."""
    message.queue_s, message.cache_s = timing.queue_s, timing.cache_s
    message.tokenize_s, message.inference_s = timing.tokenize_s, timing.inference_s


def fill_hits(message: types_pb2.CacheHits, hits: CacheHits) -> None:
    """Write cache hits into `message`."""
    message.memory, message.disk, message.redis = hits.memory, hits.disk, hits.redis
    message.joined, message.computed = hits.joined, hits.computed


def _fill_parts(message: types_pb2.MetricResult, parts: Parts) -> None:
    target: Any = getattr(message, _PARTS[type(parts)])
    target.SetInParent()
    for name in type(parts).__slots__:
        value = getattr(parts, name)
        if isinstance(value, (float, int)):  # a union is three times as slow
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
    most = limits.max_references_per_item
    over = reference_count > most
    return _invalid(f"references: has {reference_count} references, but at most {most} are allowed") if over else None


def _too_large(strings: Sequence[str], limits: Limits, noun: str = "item") -> Failure | None:
    size = sum(map(len, strings))
    if size * _MAX_UTF8_BYTES_PER_CHAR <= limits.max_item_bytes:
        return None
    size = sum(len(text) if text.isascii() else len(text.encode()) for text in strings)
    if size > limits.max_item_bytes:
        return _invalid(f"{noun}: has {size} bytes of text, but at most {limits.max_item_bytes} are allowed")
    return None


def _over_marks(message: Message, error: TooManyMarksError) -> Failure:
    for field, value in message.ListFields():
        if isinstance(value, str):
            if has_long_run(value):
                return _invalid(f"{field.name}: {error}")
            continue
        for index, text in enumerate(value):
            if isinstance(text, str) and has_long_run(text):
                return _invalid(f"{field.name}[{index}]: {error}")
    raise error


def _invalid(message: str) -> Failure:
    return Failure(Status.INVALID_INPUT, message)


def _fill_compared(result: judging_pb2.PairResult, compared: Compared) -> None:
    if compared.winner is not None:
        result.winner = int(compared.winner)  # type: ignore[assignment]
    result.decided_by = compared.decided_by
    _fill_probabilities(result, compared.probabilities)
    for order in compared.orders:
        _fill_order(result.orders.add(), order)
    for verdict in compared.lists:
        result.lists.add(shown=verdict.shown, ranks=verdict.ranks)
    result.prompt_tokens = compared.prompt_tokens or 0
    result.generated_tokens = compared.generated_tokens or 0


def _fill_order(message: judging_pb2.OrderVerdict, order: OrderVerdict) -> None:
    message.first = int(order.first)  # type: ignore[assignment]
    if order.winner is not None:
        message.winner = int(order.winner)  # type: ignore[assignment]
    _fill_probabilities(message, order.probabilities)
    if order.label_mass is not None:
        message.label_mass = order.label_mass
    message.reason = shortened(order.reason, MAX_PART_CHARACTERS)
    message.extracted = order.extracted


def _fill_probabilities(
    message: judging_pb2.PairResult | judging_pb2.OrderVerdict, probabilities: tuple[float, float, float] | None
) -> None:
    if probabilities is not None:
        message.probability_a, message.probability_b, message.probability_tie = probabilities


def _fill_pair(result: judging_pb2.PairResult, _metric_index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
    fill_outcome(result, scored.result)
    if scored.result.compared is not None:
        _fill_compared(result, scored.result.compared)
    if diagnostics:
        fill_cost(result, scored)


def _item_characters(scored: ScoredResult) -> int:
    parts = scored.result.parts
    if isinstance(parts, SmileParts):
        return len(parts.best_window)
    if isinstance(parts, JudgeParts):
        return len(parts.reason)
    return len(parts.compared_prediction) if isinstance(parts, VqaParts) else 0


def _pair_characters(scored: ScoredResult) -> int:
    compared = scored.result.compared
    return 0 if compared is None else sum(len(order.reason) for order in compared.orders)


@dataclass(frozen=True, slots=True)
class CallForm:
    """The message types of a scoring or comparison call. A row is an item or a pair.

    Attributes:
        rows: The name of the field with the rows, in requests and replies.
        fill: A function like `fill_result`, which writes a result into its message.
        text_characters: A function that returns the number of characters in those parts of a result that may be long.
        least_result_bytes: The size of the smallest successful result.
        single: True if a row in the reply is itself a result, False if it contains a result for each metric.
    """

    rows: str
    reply_type: type[Any]
    streamed_type: type[Any]
    result_type: type[Any]
    fill: Callable[..., None]
    text_characters: Callable[[ScoredResult], int]
    least_result_bytes: int
    single: bool

    def rows_of(self, request: Any) -> Sequence[Any]:
        """Return the rows in a request or stream message."""
        rows: Sequence[Any] = getattr(request, self.rows)
        return rows

    def reply(self, provenance: Sequence[types_pb2.Provenance]) -> Any:
        """Return a unary call's reply, without rows."""
        return self.reply_type(provenance=provenance[0] if self.single else provenance)

    def streamed(self, provenance: Sequence[types_pb2.Provenance] = ()) -> Any:
        """Return a stream's reply message, without rows."""
        return self.streamed_type(provenance=(provenance[0] if provenance else None) if self.single else provenance)

    def add_row(self, reply: Any, index: int, identifier: str) -> Any:
        """Add a row without results to the reply and return the row."""
        return getattr(reply, self.rows).add(index=index, id=identifier)

    def add_result(self, row: Any) -> Any:
        """Add an empty result to the row and return the result."""
        return row if self.single else row.results.add()

    def complete(self, row: Any) -> None:
        """Mark the row as complete, unless the row is itself a result."""
        if not self.single:
            row.complete = True


ITEMS: Final = CallForm(
    rows="items",
    reply_type=scoring_pb2.ScoreResponse,
    streamed_type=scoring_pb2.ScoreStreamResponse,
    result_type=types_pb2.MetricResult,
    fill=fill_result,
    text_characters=_item_characters,
    least_result_bytes=13,  # the tag, length, status and score
    single=False,
)
PAIRS: Final = CallForm(
    rows="pairs",
    reply_type=judging_pb2.CompareResponse,
    streamed_type=judging_pb2.CompareStreamResponse,
    result_type=judging_pb2.PairResult,
    fill=_fill_pair,
    text_characters=_pair_characters,
    least_result_bytes=4,  # the tag, length and status
    single=True,
)


async def read_in_turns(
    elements: Iterable[MessageT], read: Callable[[MessageT], T], request_bytes: int | None = None
) -> AsyncIterator[tuple[MessageT, T]]:
    """Yield each element with the result of `read(element)`, and let other tasks run in between.

    Large elements are read on a thread, because normalisation takes 0.1 s per megabyte.
    """
    measures = request_bytes is None or request_bytes > BYTES_PER_TURN  # ByteSize encodes the element, which is slow
    items = turn_bytes = 0
    for element in elements:
        size_bytes = element.ByteSize() if measures else 0
        if items == ITEMS_PER_TURN or (items and turn_bytes + size_bytes > BYTES_PER_TURN):
            await give_way()
            items = turn_bytes = 0
        items += 1
        turn_bytes += size_bytes
        large = size_bytes > BYTES_PER_TURN
        yield element, await asyncio.to_thread(read, element) if large else read(element)
