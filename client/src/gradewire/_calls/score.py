"""Encode the items of a `score` call, and decode the server's replies."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeVar, get_origin

from google.protobuf.message import Message

from gradewire._calls.requests import CHUNK_ITEMS, PRIORITIES, OpenRow, R, Rows
from gradewire.errors import GradewireError, InconsistentReplies, InvalidRequest, ServerFault
from gradewire.items import ItemProblem, encode_item
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import MetricChoice, parse_line
from gradewire.options import Priority
from gradewire.results import (
    PART_FIELDS,
    CacheHits,
    ItemScores,
    Limits,
    MetricInfo,
    MetricParameterInfo,
    MetricScore,
    ModelInfo,
    ModelList,
    Provenance,
    ScoreWarning,
    Status,
    Timing,
)
from gradewire.transport import SCORE, SCORE_STREAM, RpcMethod
from gradewire_proto.descriptors import counts_over_request
from gradewire_proto.parts import PART_TYPES, JudgeParts, Parts
from gradewire_proto.tracing.spans import CLIENT_STREAM
from gradewire_proto.v1 import judging_pb2, models_pb2, scoring_pb2, types_pb2

JUDGE_CHUNK_ITEMS: Final = 32
"""Maximum number of items per request to a judge. A judge needs a second or more per item, and the requests in flight
must finish within a server's maximum deadline (ten minutes)."""
READ_AHEAD_ITEMS: Final = 256
"""Number of items to read ahead. Even a slow server must finish all items in progress before their deadline."""
_REMEDY: Final = (
    "or prepare the references as a set (client.prepare or `gradewire prepare`, with the metric's corpus or idf set to "
    "prepared) and pass the set as reference_set"
)

_ITEM_PREFIX = re.compile(r"^item:")
_MODEL_STATE = {number: name.removeprefix("MODEL_STATE_") for name, number in models_pb2.ModelState.items()}
_STATUS: dict[int, Status] = {
    number: Status(name.removeprefix("STATUS_"))
    for name, number in types_pb2.Status.items()
    if name.removeprefix("STATUS_") in Status.__members__
}
_WARNING: dict[int, ScoreWarning] = {
    number: ScoreWarning(name.removeprefix("WARNING_"))
    for name, number in types_pb2.Warning.items()
    if name.removeprefix("WARNING_") in ScoreWarning.__members__
}


# Types that have the same field names as their messages.
Decoded = TypeVar("Decoded", ModelInfo, MetricInfo, MetricParameterInfo, Limits, Provenance)

# Parts that a failed result keeps, to show which step decided, or what a judge's unusable answers cost.
_PARTS_OF_FAILURES = frozenset({"auto", "judge"})


def decode_model_list(reply: models_pb2.ListModelsResponse) -> ModelList:
    return ModelList(
        models=tuple(
            _read(
                ModelInfo,
                model,
                state=_MODEL_STATE.get(model.state, "UNKNOWN"),
                # Older servers, which know no judges, leave this empty.
                kind=model.kind or "encoder",
                remarks=tuple(model.remarks),
                without_metrics=dict(sorted(model.without_metrics.items())),
            )
            for model in reply.models
        ),
        metrics=tuple(map(_metric_info, reply.metrics)),
        comparisons=tuple(map(_metric_info, reply.comparisons)),
        limits=_read(Limits, reply.limits),
        server_version=reply.server_version,
    )


def _metric_info(metric: models_pb2.Metric) -> MetricInfo:
    return _read(MetricInfo, metric, parameters=tuple(_read(MetricParameterInfo, each) for each in metric.parameters))


def _read(kind: type[Decoded], message: Message, /, **others: Any) -> Decoded:
    """Decode a message into a type with the same field names. `others` contains values that need a conversion."""
    same: dict[str, Any] = {
        field.name: getattr(message, field.name) for field in fields(kind) if field.name not in others
    }
    return kind(**same, **others)


def decode_status(number: int) -> Status:
    """Return the status, or UNKNOWN for a number that this client does not know."""
    return _STATUS.get(number, Status.UNKNOWN)


def decode_warnings(numbers: Iterable[int]) -> tuple[ScoreWarning, ...]:
    return tuple(_WARNING.get(number, ScoreWarning.UNKNOWN) for number in numbers)


def decode_call_provenance(
    metrics: Mapping[str, Metric], messages: Sequence[types_pb2.Provenance], before: Mapping[str, Provenance]
) -> dict[str, Provenance]:
    """Decode the provenance of all metrics, by label, and compare it with the provenance of earlier replies.

    Raises:
        InvalidRequest: A metric identifier requires a version that the server does not have.
        ServerFault: The reply does not cover all metrics.
        InconsistentReplies: A metric's version or model differs from the version or model in earlier replies.
    """
    if len(messages) != len(metrics):
        raise ServerFault(f"the server answered for {len(messages)} of {len(metrics)} metrics: report this defect")
    provenance = {}
    for (label, metric), message in zip(metrics.items(), messages, strict=True):
        if metric.version is not None and message.version and metric.version != message.version:
            raise InvalidRequest(
                f"{label}: you request version {metric.version} of {metric.name}, but the server has version "
                f"{message.version}: leave out '/{metric.version}', or use a different server"
            )
        here = provenance[label] = decode_provenance(message)
        if label in before and _pinned(before[label]) != _pinned(here):
            raise InconsistentReplies(
                f"{label} was computed both as {before[label].line} and as {here.line} in one call: pin version and "
                "model (metrics='NAME/VERSION?model=NAME@DIGEST'), or wait until all servers at the address agree"
            )
    return provenance


def _pinned(provenance: Provenance) -> tuple[str, str, str]:
    return provenance.line, provenance.model_digest, provenance.prompt_digest


def decode_results(
    choice: MetricChoice, provenance: Mapping[str, Provenance], index: int, results: Iterable[types_pb2.MetricResult]
) -> dict[str, MetricScore]:
    """Decode the results of items[index], by label.

    Drop the score and its details unless the status is OK. If the status is OK without a finite score, set the status
    to INTERNAL.

    Raises:
        ServerFault: A result belongs to a metric that was not requested.
    """
    scores = {}
    for result in results:
        if result.metric_index >= len(choice.labels):
            raise ServerFault(
                f"the server answered items[{index}] for a metric that was not requested: report this defect"
            )
        label = choice.labels[result.metric_index]
        status, message = _outcome(index, result)
        scored = status is Status.OK
        scores[label] = MetricScore(
            score=result.score if scored else None,
            status=status,
            message=message,
            warnings=decode_warnings(result.warnings),
            matched_reference=result.matched_reference if scored and result.HasField("matched_reference") else None,
            parts=_parts(result) if scored or result.WhichOneof("parts") in _PARTS_OF_FAILURES else None,
            correct=_correct(result) if scored else None,
            cache_hits=decode_cache_hits(result.cache_hits),
            timing=decode_timing(result.timing),
            provenance=provenance.get(label),
            retry_after_s=decode_retry_after_s(status, result),
        )
    return scores


def decode_score(index: int, result: types_pb2.MetricResult, provenance: Provenance | None) -> MetricScore:
    """Decode a result of items[index] like `decode_results`, but without warnings, parts, cache hits and timing."""
    status, message = _outcome(index, result)
    if status is not Status.OK:
        retry_after_s = decode_retry_after_s(status, result)
        return MetricScore(None, status, message, provenance=provenance, retry_after_s=retry_after_s)
    return MetricScore(result.score, status, message, correct=_correct(result), provenance=provenance)


def _outcome(index: int, result: types_pb2.MetricResult) -> tuple[Status, str]:
    status = _STATUS.get(result.status, Status.UNKNOWN)
    if status is not Status.OK:
        # The server does not know the item's index in the call.
        return status, _ITEM_PREFIX.sub(f"items[{index}]:", result.message)
    if result.HasField("score") and math.isfinite(result.score):
        return status, result.message
    found = f"the score {result.score}" if result.HasField("score") else "no score"
    return Status.INTERNAL, f"items[{index}]: the server returned OK with {found}: report this defect"


def _reader(name: str, kind: type[Parts]) -> Callable[[types_pb2.MetricResult], Parts]:
    descriptor = types_pb2.MetricResult.DESCRIPTOR.fields_by_name[name].message_type
    on_wire = descriptor.fields_by_name if descriptor is not None else {}
    names = kind.__slots__
    values = [attrgetter(field) for field in names]
    lists = [position for position, field in enumerate(names) if get_origin(PART_FIELDS[field]) is tuple]
    maps = [position for position, field in enumerate(names) if get_origin(PART_FIELDS[field]) is Mapping]
    optional = [(position, field) for position, field in enumerate(names) if on_wire[field].has_presence]

    def read(result: types_pb2.MetricResult) -> Parts:
        message = getattr(result, name)
        found: list[Any] = [value(message) for value in values]
        for position in lists:
            found[position] = tuple(found[position])
        for position in maps:
            found[position] = dict(sorted(found[position].items()))  # protobuf maps have no order
        for position, field in optional:
            if not message.HasField(field):
                found[position] = None
        return kind(*found)

    return read


_READERS: Mapping[str, Callable[[types_pb2.MetricResult], Parts]] = {
    name: _reader(name, kind) for name, kind in PART_TYPES.items()
}


def _parts(result: types_pb2.MetricResult) -> Parts | None:
    name = result.WhichOneof("parts")
    parts = _READERS[name](result) if name is not None else None
    if isinstance(parts, JudgeParts) and parts.decided_by != "rule" and not parts.prompt_tokens:
        # A prompt is never empty, so 0 means that the judge's server does not count tokens.
        return replace(parts, prompt_tokens=None, generated_tokens=None)
    return parts


def _correct(result: types_pb2.MetricResult) -> bool | None:
    if result.HasField("correct"):
        return result.correct
    # Older servers send smile's verdict only in the parts.
    return result.smile.correct if result.HasField("smile") else None


def decode_retry_after_s(status: Status, result: types_pb2.MetricResult | judging_pb2.PairResult) -> float | None:
    """Return the seconds to wait before a retry, or None if the status is OK or the server gave no time."""
    if status is Status.OK or not result.HasField("retry_after_s"):
        return None
    return result.retry_after_s if 0 <= result.retry_after_s < math.inf else None


def decode_cache_hits(hits: types_pb2.CacheHits) -> CacheHits:
    return CacheHits(hits.memory, hits.disk, hits.redis, hits.joined, hits.computed)


def decode_timing(timing: types_pb2.Timing) -> Timing:
    return Timing(timing.queue_s, timing.cache_s, timing.tokenize_s, timing.inference_s)


def decode_provenance(message: types_pb2.Provenance) -> Provenance:
    try:
        metric = parse_line(message.line)
    except GradewireError:
        metric = None  # The server is newer than this client. The identifier still reproduces the score.
    return _read(Provenance, message, metric=metric)


class ItemMessages(Rows[types_pb2.Item, R]):
    """The items of a call. A stream ignores `priority`, because streams always have a low priority."""

    noun: ClassVar[str] = "item"
    unary: ClassVar[RpcMethod[Any, Any]] = SCORE
    stream: ClassVar[RpcMethod[Any, Any]] = SCORE_STREAM
    span_name: ClassVar[str] = CLIENT_STREAM
    ahead: ClassVar[int] = READ_AHEAD_ITEMS
    omit_diagnostics: ClassVar[bool] = False

    def __init__(self, choice: MetricChoice, priority: Priority = "normal") -> None:
        super().__init__()
        self.choice = choice
        self._priority = PRIORITIES[priority]
        self.chunk_rows = JUDGE_CHUNK_ITEMS if choice.asks_judge else CHUNK_ITEMS
        self.needs_one_request = bool(counting_over_request(choice.specs))

    def encode(self, index: int, row: Any, max_bytes: int) -> types_pb2.Item | ItemProblem:
        return encode_item(index, row, max_bytes=max_bytes, images=self.choice.shows_images)

    def request(self, messages: Sequence[types_pb2.Item]) -> scoring_pb2.ScoreRequest:
        choice = self.choice
        return scoring_pb2.ScoreRequest(
            items=messages, metrics=choice.specs, reference_set=choice.reference_set, priority=self._priority
        )

    def stream_config(self) -> scoring_pb2.ScoreStreamRequest:
        choice = self.choice
        config = scoring_pb2.ScoreStreamConfig(
            metrics=choice.specs, reference_set=choice.reference_set, omit_diagnostics=self.omit_diagnostics
        )
        return scoring_pb2.ScoreStreamRequest(config=config)

    def stream_request(self, messages: Sequence[types_pb2.Item], deadline_s: float) -> scoring_pb2.ScoreStreamRequest:
        items = scoring_pb2.ScoreStreamItems(items=messages, deadline_s=deadline_s)
        return scoring_pb2.ScoreStreamRequest(items=items)

    def received(self, reply: Any) -> Sequence[scoring_pb2.ItemResult]:
        if reply.provenance or not self.provenance:
            self.provenance = decode_call_provenance(self.choice.named, reply.provenance, self.provenance)
        results: Sequence[scoring_pb2.ItemResult] = reply.items
        if isinstance(reply, scoring_pb2.ScoreResponse):
            for result in results:
                result.complete = True  # a unary reply is always complete, but does not say so
        return results

    def too_many(self, rows: int, max_rows: int) -> InvalidRequest:
        return InvalidRequest(
            f"{', '.join(counting_over_request(self.choice.specs))}: corpus=request computes word weights from a "
            f"request's items, but these {rows} items do not fit into one request: give at most {max_rows} items in a "
            f"call, shorten the items, {_REMEDY}"
        )


class ItemRows(ItemMessages[ItemScores]):
    def failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> ItemScores:
        score = MetricScore(None, *failure)
        return ItemScores(index, identifier, dict.fromkeys(self.choice.labels, score))

    def completed(self, index: int, row: OpenRow[types_pb2.Item], result: scoring_pb2.ItemResult) -> ItemScores | None:
        row.parts |= decode_results(self.choice, self.provenance, index, result.results)
        if not result.complete:
            return None
        parts, labels = row.parts, self.choice.labels
        if tuple(parts) != labels:
            if missing := set(labels) - parts.keys():
                raise ServerFault(
                    f"the server left out {', '.join(sorted(missing))} of items[{index}]: report this defect"
                )
            parts = {label: parts[label] for label in labels}
        return ItemScores(index, row.message.id, parts)


def counting_over_request(specs: Sequence[types_pb2.MetricSpec]) -> list[str]:
    """Return the distinct names of the metrics whose corpus consists of the request's items."""
    found = (spec.WhichOneof("metric") or "" for spec in specs if counts_over_request(spec))
    return list(dict.fromkeys(found))


def check_streamed(specs: Sequence[types_pb2.MetricSpec]) -> None:
    """Raise InvalidRequest if a metric needs all items at once, because a stream has no complete list."""
    if names := counting_over_request(specs):
        raise InvalidRequest(
            f"{', '.join(names)}: corpus=request computes word weights from all items of a call, but a stream sends "
            f"its items one after another: use score(), {_REMEDY}"
        )
