"""Decoding of the server's messages into typed results."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar, get_origin

from google.protobuf.message import Message

from gradewire.errors import GradewireError, InconsistentReplies, InvalidRequest, ServerFault
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import MetricChoice, parse_line
from gradewire.pairs import Comparison, OrderVerdict, Winner
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
from gradewire_proto.parts import PART_TYPES, JudgeParts, Parts
from gradewire_proto.v1 import judging_pb2, models_pb2, types_pb2

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


# Types that have the names of their message.
Decoded = TypeVar("Decoded", ModelInfo, MetricInfo, MetricParameterInfo, Limits, Provenance)

# Parts that say who was asked, and not only what a score is made of.
_PARTS_OF_FAILURES = frozenset({"auto"})

_PAIR_PREFIX: Final = re.compile(r"^pair:")
_WINNERS: Final[Mapping[int, Winner]] = {
    judging_pb2.WINNER_A: "a",
    judging_pb2.WINNER_B: "b",
    judging_pb2.WINNER_TIE: "tie",
}
_FIRST: Final[Mapping[int, Literal["a", "b"]]] = {judging_pb2.PAIR_ANSWER_A: "a", judging_pb2.PAIR_ANSWER_B: "b"}


def decode_model_list(reply: models_pb2.ListModelsResponse) -> ModelList:
    """The model list that a message says."""
    return ModelList(
        models=tuple(
            _read(
                ModelInfo,
                model,
                state=_MODEL_STATE.get(model.state, "UNKNOWN"),
                # A server from before there were judges says nothing.
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
    """A message as a type of the same names; `others` are those that differ."""
    same: dict[str, Any] = {
        field.name: getattr(message, field.name) for field in fields(kind) if field.name not in others
    }
    return kind(**same, **others)


def decode_status(number: int) -> Status:
    """The status, UNKNOWN for a number of a later version."""
    return _STATUS.get(number, Status.UNKNOWN)


def decode_warnings(numbers: Iterable[int]) -> tuple[ScoreWarning, ...]:
    """The warnings, UNKNOWN for numbers of a later version."""
    return tuple(_WARNING.get(number, ScoreWarning.UNKNOWN) for number in numbers)


def decode_one_provenance(requested: Metric, message: types_pb2.Provenance, before: Provenance | None) -> Provenance:
    """What the server says it computed of one metric or comparison; raises as `decode_call_provenance`."""
    here = _checked_provenance(requested.name, requested, message)
    if before is not None:
        _check_same(requested.name, before, here)
    return here


def decode_call_provenance(
    choice: MetricChoice, messages: Sequence[types_pb2.Provenance], before: Mapping[str, Provenance]
) -> dict[str, Provenance]:
    """What the server says it computed, by label; `before` is what it said earlier in the call, or empty.

    Raises:
        InvalidRequest: A metric line insists on another version than the server has.
        ServerFault: The server does not speak of all metrics.
        InconsistentReplies: It computed another definition, or with another model, than before.
    """
    if len(messages) != len(choice.labels):
        raise ServerFault(
            f"the server answered for {len(messages)} metrics, asked were {len(choice.labels)}: report it"
        )
    provenance = {}
    for label, metric, message in zip(choice.labels, choice.metrics, messages, strict=True):
        provenance[label] = _checked_provenance(label, metric, message)
    for label, received in before.items():
        _check_same(label, received, provenance[label])
    return provenance


def _checked_provenance(label: str, requested: Metric, message: types_pb2.Provenance) -> Provenance:
    if requested.version is not None and message.version and requested.version != message.version:
        raise InvalidRequest(
            f"{label}: version {requested.version} of {requested.name} is asked for and the server computes version "
            f"{message.version}: leave out '/{requested.version}', or use a server that has it"
        )
    return decode_provenance(message)


def _check_same(label: str, received: Provenance, here: Provenance) -> None:
    if _pinned(received) != _pinned(here):
        raise InconsistentReplies(
            f"{label} was computed as {received.line} and as {here.line} within one call: pin version and model "
            "(metrics='NAME/VERSION?model=NAME@DIGEST'), or wait until all servers at the address are alike"
        )


def _pinned(provenance: Provenance) -> tuple[str, str, str]:
    return provenance.line, provenance.model_digest, provenance.prompt_digest


def decode_results(
    choice: MetricChoice, provenance: dict[str, Provenance], index: int, results: Iterable[types_pb2.MetricResult]
) -> dict[str, MetricScore]:
    """Results of items[index] by label, in the order they came.

    Whatever the server says, a score is there exactly when the status is OK: a score beside another status is dropped
    with all that explains it, and OK without a finite score becomes INTERNAL.

    Raises:
        ServerFault: A result is of a metric that was not asked for.
    """
    scores = {}
    for result in results:
        if result.metric_index >= len(choice.labels):
            raise ServerFault(f"the server answered items[{index}] for a metric that was not asked for: report it")
        label = choice.labels[result.metric_index]
        hits, timing = result.cache_hits, result.timing
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
            cache_hits=CacheHits(hits.memory, hits.disk, hits.redis, hits.joined, hits.computed),
            timing=Timing(timing.queue_s, timing.cache_s, timing.tokenize_s, timing.inference_s),
            provenance=provenance.get(label),
            retry_after_s=_retry_after_s(status, result),
        )
    return scores


def decode_score(index: int, result: types_pb2.MetricResult, provenance: Provenance | None) -> MetricScore:
    """The score of items[index] by itself, without what it cost and is made of; else as `decode_results`."""
    status, message = _outcome(index, result)
    if status is not Status.OK:
        retry_after_s = _retry_after_s(status, result)
        return MetricScore(None, status, message, provenance=provenance, retry_after_s=retry_after_s)
    return MetricScore(result.score, status, message, correct=_correct(result), provenance=provenance)


def complete_item(choice: MetricChoice, index: int, identifier: str, scores: dict[str, MetricScore]) -> ItemScores:
    """All results of one item, in the order of the call.

    Raises:
        ServerFault: A result is missing.
    """
    if tuple(scores) != choice.labels:
        if missing := set(choice.labels) - scores.keys():
            raise ServerFault(f"the server left out {', '.join(sorted(missing))} of items[{index}]: report it")
        scores = {label: scores[label] for label in choice.labels}
    return ItemScores(index, identifier, scores)


def failed_item(choice: MetricChoice, index: int, identifier: str, failure: tuple[Status, str]) -> ItemScores:
    """An item whose metrics all failed in the same way."""
    status, message = failure
    return ItemScores(
        index, identifier, {label: MetricScore(score=None, status=status, message=message) for label in choice.labels}
    )


def _outcome(index: int, result: types_pb2.MetricResult) -> tuple[Status, str]:
    status = _STATUS.get(result.status, Status.UNKNOWN)
    if status is not Status.OK:
        # A server names the fields of an item; which item it is, only the call knows.
        return status, _ITEM_PREFIX.sub(f"items[{index}]:", result.message)
    if result.HasField("score") and math.isfinite(result.score):
        return status, result.message
    found = f"the score {result.score}" if result.HasField("score") else "no score"
    return Status.INTERNAL, f"items[{index}]: the server said OK and gave {found}: report it"


def _reader(name: str, kind: type[Parts]) -> Callable[[types_pb2.MetricResult], Parts]:
    """Reads one kind of parts; both sides have the same names, in the same order."""
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
            found[position] = dict(sorted(found[position].items()))  # on the wire a map has no order
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
        # No prompt is empty: the judge's server does not count tokens.
        return replace(parts, prompt_tokens=None, generated_tokens=None)
    return parts


def _correct(result: types_pb2.MetricResult) -> bool | None:
    if result.HasField("correct"):
        return result.correct
    # Before there was a verdict of all metrics, SMILE's stood among its parts.
    return result.smile.correct if result.HasField("smile") else None


def _retry_after_s(status: Status, result: types_pb2.MetricResult) -> float | None:
    if status is Status.OK or not result.HasField("retry_after_s"):
        return None
    return result.retry_after_s if result.retry_after_s >= 0 and math.isfinite(result.retry_after_s) else None


def decode_provenance(message: types_pb2.Provenance) -> Provenance:
    """What computed a score, or wrote synthetic answers."""
    try:
        metric = parse_line(message.line)
    except GradewireError:
        metric = None  # a later server's parameter: the line itself still reproduces the score there
    return _read(Provenance, message, metric=metric)


def decode_comparison(
    index: int, group: str, result: judging_pb2.PairResult, provenance: Provenance | None
) -> Comparison:
    """The comparison of pairs[index].

    Whatever the server says, a winner is there exactly when the status is OK: OK without one becomes INTERNAL.
    """
    status, winner = decode_status(result.status), _WINNERS.get(result.winner)
    # A server names the fields of a pair; which pair it is, only the call knows.
    message = _PAIR_PREFIX.sub(f"pairs[{index}]:", result.message)
    if status is Status.OK and winner is None:
        status, message = Status.INTERNAL, f"pairs[{index}]: the server said OK and named no winner: report it"
    hits, timing = result.cache_hits, result.timing
    a, b, tie = _probabilities(result)
    late = result.retry_after_s if result.HasField("retry_after_s") and status is not Status.OK else None
    return Comparison(
        winner=winner if status is Status.OK else None,
        status=status,
        probability_a=a,
        probability_b=b,
        probability_tie=tie,
        orders=tuple(_order(order) for order in result.orders if order.first in _FIRST),
        index=index,
        id=result.id,
        group=group,
        message=message,
        warnings=decode_warnings(result.warnings),
        decided_by=result.decided_by,
        prompt_tokens=result.prompt_tokens,
        generated_tokens=result.generated_tokens,
        cache_hits=CacheHits(hits.memory, hits.disk, hits.redis, hits.joined, hits.computed),
        timing=Timing(timing.queue_s, timing.cache_s, timing.tokenize_s, timing.inference_s),
        provenance=provenance,
        retry_after_s=late if late is not None and late >= 0 and math.isfinite(late) else None,
    )


def _order(order: judging_pb2.OrderVerdict) -> OrderVerdict:
    a, b, tie = _probabilities(order)
    return OrderVerdict(
        first=_FIRST[order.first],
        winner=_WINNERS.get(order.winner),
        probability_a=a,
        probability_b=b,
        probability_tie=tie,
        reason=order.reason,
        extracted=order.extracted,
        label_mass=order.label_mass if order.HasField("label_mass") else None,
    )


def _probabilities(
    received: judging_pb2.PairResult | judging_pb2.OrderVerdict,
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return the probabilities of answer A, answer B and a tie: all of them or none."""
    if not (
        received.HasField("probability_a")
        and received.HasField("probability_b")
        and received.HasField("probability_tie")
    ):
        return None, None, None
    found = received.probability_a, received.probability_b, received.probability_tie
    return found if all(map(math.isfinite, found)) else (None, None, None)
