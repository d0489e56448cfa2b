"""Items and results between the wire and the domain."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradewire_proto.conventions.normal_form import TooManyMarksError, has_long_run, nfc
from gradewire_proto.conventions.reference_sets import MAX_NAME_BYTES
from gradewire_proto.conventions.string_bounds import MAX_ID_BYTES, byte_count
from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_server.domain.image import Image
from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.quoting import shortened
from gradewire_server.domain.result import (
    AutoParts,
    BertscoreParts,
    BleuParts,
    CacheHits,
    CalibratedParts,
    CiderParts,
    Failure,
    JudgeParts,
    MeteorParts,
    Parts,
    RougeLParts,
    ScoredResult,
    SmileParts,
    Status,
    VqaParts,
)
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.settings.limits import Limits

_MAX_UTF8_BYTES_PER_CHAR: Final = 4
_MAX_IMAGES: Final = 1024
"""Pictures of an item, whatever it is graded by: more are not even taken apart. What a judge is shown is bounded by
`max_images_per_item`, and only for the metrics that show them."""
_MAX_PART_CHARACTERS: Final = 8192
"""Of a text among a result's parts: what an item brings once must not come back with each of its metrics."""
_PARTS: Final[Mapping[type[Parts], str]] = {
    SmileParts: "smile",
    BertscoreParts: "bertscore",
    VqaParts: "vqa",
    RougeLParts: "rouge_l",
    BleuParts: "bleu",
    MeteorParts: "meteor",
    CiderParts: "cider",
    JudgeParts: "judge",
    CalibratedParts: "calibrated",
    AutoParts: "auto",
}


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


def reply_id(message: types_pb2.Item) -> str:
    """An item's id as it is handed back: cut where it is too long, which makes the item INVALID_INPUT."""
    return message.id if byte_count(message.id) <= MAX_ID_BYTES else shortened(message.id)


def read_item(message: types_pb2.Item, limits: Limits, *, check_bytes: bool) -> Item | Failure:
    """Turns an item into the domain's; INVALID_INPUT where it is over a limit or has too many marks in a row.

    Args:
        message: The item.
        limits: Its bounds.
        check_bytes: False where the whole message is no larger than one item may be, which saves counting.
    """
    references = message.references
    failure = _over_limit(len(references), limits)
    if failure is None and len(message.images) > _MAX_IMAGES:
        failure = Failure(
            Status.INVALID_INPUT, f"images: {len(message.images)} of them, no item may have more than {_MAX_IMAGES}"
        )
    if failure is None and (id_bytes := byte_count(message.id)) > MAX_ID_BYTES:
        failure = Failure(Status.INVALID_INPUT, f"id: has {id_bytes} bytes, at most {MAX_ID_BYTES} are allowed")
    if failure is None and check_bytes:
        strings = (message.id, message.question, message.prediction, message.caption, message.group)
        failure = _too_large([*strings, *references, *message.synthetic_answers, *message.captions], limits)
    if failure is not None:
        return failure
    try:
        return Item(
            id=nfc(message.id),
            question=nfc(message.question),
            references=tuple(map(nfc, references)),
            prediction=nfc(message.prediction),
            synthetic_answers=tuple(map(nfc, message.synthetic_answers)),
            captions=tuple(nfc(caption) for caption in (message.caption, *message.captions) if caption.strip()),
            group=nfc(message.group),
            images=tuple(Image(each.data, each.uri, each.media_type) for each in message.images),
        )
    except TooManyMarksError as error:
        return _over_marks(message, error)


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
    message.status = int(result.status)  # type: ignore[assignment]
    if result.score is not None:
        message.score = result.score
    if result.message:
        message.message = result.message
    if result.matched_reference is not None:
        message.matched_reference = result.matched_reference
    if result.warnings:
        message.warnings.extend(map(int, result.warnings))  # type: ignore[arg-type]
    if result.parts is not None:
        _fill_parts(message, result.parts)
    if result.correct is not None:
        message.correct = result.correct
    if result.retry_after_s is not None:
        message.retry_after_s = result.retry_after_s
    if diagnostics:
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
        if isinstance(value, str):
            setattr(target, name, shortened(value, _MAX_PART_CHARACTERS))
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


def _too_large(strings: Sequence[str], limits: Limits) -> Failure | None:
    size = sum(map(len, strings))
    if size * _MAX_UTF8_BYTES_PER_CHAR <= limits.max_item_bytes:
        return None
    size = sum(len(text) if text.isascii() else len(text.encode()) for text in strings)
    if size > limits.max_item_bytes:
        return Failure(Status.INVALID_INPUT, f"item: {size} bytes of text, at most {limits.max_item_bytes} are allowed")
    return None


def _over_marks(message: types_pb2.Item | references_pb2.ReferenceEntry, error: TooManyMarksError) -> Failure:
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
