"""A transport for tests that calls a function instead of a server.

```python
def answer(request):
    return echo_scores(request, score=lambda item: 1.0 if item.prediction in item.references else 0.0)

client = Client(transport=StubTransport(answer))
```
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from gradewire.errors import DeadlineExceeded, InvalidRequest
from gradewire.metrics import metric_of
from gradewire.metrics.choice import format_metric_line
from gradewire.metrics.prompts import short_prompt
from gradewire.pairs import Winner
from gradewire.transport import COMPARE, COMPARE_STREAM, LIST_MODELS, SCORE, SCORE_STREAM, Q, R, RpcMethod
from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import digest_entries

ScoreFunction = Callable[[scoring_pb2.ScoreRequest], scoring_pb2.ScoreResponse | Awaitable[scoring_pb2.ScoreResponse]]
CompareFunction = Callable[
    [judging_pb2.CompareRequest], judging_pb2.CompareResponse | Awaitable[judging_pb2.CompareResponse]
]
_WINNERS: Mapping[Winner, "judging_pb2.Winner.ValueType"] = {
    "a": judging_pb2.WINNER_A,
    "b": judging_pb2.WINNER_B,
    "tie": judging_pb2.WINNER_TIE,
}
_LONG_S = 3600.0


def echo_scores(
    request: scoring_pb2.ScoreRequest, *, score: Callable[[types_pb2.Item], float | None]
) -> scoring_pb2.ScoreResponse:
    """Return a valid reply with the same score for all metrics of an item.

    If `score` returns None, the item gets the status EMPTY_PREDICTION.
    """
    reply = scoring_pb2.ScoreResponse(provenance=[_provenance(spec, request.reference_set) for spec in request.metrics])
    for index, item in enumerate(request.items):
        value = score(item)
        status = types_pb2.STATUS_EMPTY_PREDICTION if value is None else types_pb2.STATUS_OK
        reply.items.add(
            index=index,
            id=item.id,
            complete=True,
            results=[
                types_pb2.MetricResult(metric_index=position, score=value, status=status)
                for position in range(len(request.metrics))
            ],
        )
    return reply


def echo_comparisons(
    request: judging_pb2.CompareRequest, *, winner: Callable[[judging_pb2.Pair], Winner | None]
) -> judging_pb2.CompareResponse:
    """Return a valid reply with the same winner in both orders.

    If `winner` returns None, the pair gets the status INCONSISTENT.
    """
    spec = types_pb2.MetricSpec(compare=request.parameters)
    reply = judging_pb2.CompareResponse(provenance=_provenance(spec, ""))
    for index, pair in enumerate(request.pairs):
        said = winner(pair)
        result = reply.pairs.add(index=index, id=pair.id)
        result.status = types_pb2.STATUS_OK if said else types_pb2.STATUS_INCONSISTENT
        if said:
            result.winner, result.decided_by = _WINNERS[said], "judge"
        seen: tuple[Winner, Winner] = (said, said) if said else ("a", "b")
        result.probability_a, result.probability_b, result.probability_tie = (
            seen.count(name) / len(seen) for name in _WINNERS
        )
        for first, order in zip((judging_pb2.PAIR_ANSWER_A, judging_pb2.PAIR_ANSWER_B), seen, strict=True):
            result.orders.add(
                first=first,
                winner=_WINNERS[order],
                probability_a=order == "a",
                probability_b=order == "b",
                probability_tie=order == "tie",
            )
    return reply


class StubTransport:
    """A transport that calls a function for each reply.

    `prepare` needs no function: the transport reports that all entries are prepared.

    Args:
        answer: A plain or async function that returns the reply to a request, or to a message of a stream. The function
            may raise errors from `gradewire.errors`. If `answer` is None, scoring fails.
        models: The reply to `models()`. The client splits requests according to the limits in this reply.
        compare: A function like `answer`, but for pairs (see `echo_comparisons`). If `compare` is None, comparing
            fails.
    """

    def __init__(
        self,
        answer: ScoreFunction | None = None,
        *,
        models: models_pb2.ListModelsResponse | None = None,
        compare: CompareFunction | None = None,
    ) -> None:
        self._answer = answer
        self._compare = compare
        self._models = models or models_pb2.ListModelsResponse(server_version="stub")
        self.closed = False

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        """Return the function's reply; raise DeadlineExceeded if an async function takes too long."""
        if method == LIST_MODELS:
            reply: Any = self._models
        elif method == SCORE:
            if self._answer is None:
                raise InvalidRequest("this stub cannot score: pass a function, StubTransport(answer)")
            reply = self._answer(cast("scoring_pb2.ScoreRequest", request))
        else:
            if self._compare is None:
                raise InvalidRequest("this stub cannot compare: pass a function, StubTransport(compare=…)")
            reply = self._compare(cast("judging_pb2.CompareRequest", request))
        return cast("R", await _in_time(reply, timeout_s))

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        """Yield a reply to each message with items or pairs; for `prepare`, yield one reply that reports completion."""
        requests: Any = sent
        if method not in {SCORE_STREAM, COMPARE_STREAM}:
            yield cast("R", _prepared(requests))
            return
        unary: RpcMethod[Any, Any] = SCORE if method == SCORE_STREAM else COMPARE
        rows, config, started = "items" if method == SCORE_STREAM else "pairs", None, 0
        async for message in requests:
            if message.HasField("config"):
                config = message.config
                yield _accepted(method, config)
                continue
            request = _as_request(config, getattr(message, rows))
            reply = await self.unary(unary, request, timeout_s=timeout_s or _LONG_S)
            results = getattr(reply, rows)
            for result in results:
                result.index += started
                if method == SCORE_STREAM:
                    result.complete = True
            started += len(results)
            yield cast("R", cast("Any", method.reply_type)(**{rows: results}))

    async def close(self) -> None:
        """Set `closed`."""
        self.closed = True


def _accepted(method: RpcMethod[Any, R], config: Any) -> R:
    if isinstance(config, scoring_pb2.ScoreStreamConfig):
        provenance: Any = [_provenance(spec, config.reference_set) for spec in config.metrics]
    else:
        provenance = _provenance(types_pb2.MetricSpec(compare=config.parameters), "")
    return cast("R", cast("Any", method.reply_type)(provenance=provenance))


def _as_request(config: Any, rows: Any) -> Any:
    if isinstance(rows, scoring_pb2.ScoreStreamItems):
        return scoring_pb2.ScoreRequest(items=rows.items, metrics=config.metrics, reference_set=config.reference_set)
    return judging_pb2.CompareRequest(pairs=rows.pairs, parameters=config.parameters)


def _prepared(request: references_pb2.PrepareRequest) -> references_pb2.PrepareProgress:
    """Return a complete progress message. With `generate`, each reference is its own synthetic answer."""
    progress = references_pb2.PrepareProgress(
        reference_set=request.reference_set,
        entries_done=len(request.entries),
        entries_total=len(request.entries),
        synthetic_answers_stored=sum(len(entry.synthetic_answers) for entry in request.entries),
        complete=True,
        provenance=[_provenance(spec, request.reference_set) for spec in request.metrics],
    )
    if request.immutable and not (request.entries and request.expected_digest):
        progress.corpus_digest = request.expected_digest or digest_entries(request.entries)
    if request.HasField("generate"):
        _generate(request, progress)
    return progress


async def _in_time(reply: Any, timeout_s: float) -> Any:
    if not inspect.isawaitable(reply):
        return reply
    try:
        async with asyncio.timeout(timeout_s):
            return await reply
    except TimeoutError:
        raise DeadlineExceeded(f"the stub did not answer within {timeout_s:g} s") from None


def _generate(request: references_pb2.PrepareRequest, progress: references_pb2.PrepareProgress) -> None:
    progress.synthetic_answers_stored = sum(len(entry.references) for entry in request.entries)
    written = [entry for entry in request.entries if not entry.synthetic_answers]
    progress.synthetic_answers_fallback = sum(len(entry.references) for entry in written)
    if request.generate.return_answers:
        for index, entry in enumerate(request.entries):
            answers = entry.synthetic_answers or entry.references
            progress.synthetic_answers.add(index=index, synthetic_answers=answers)
    judge, _, digest = request.generate.model.partition("@")
    progress.generation.name, progress.generation.version = "synthetic", 1
    progress.generation.model, progress.generation.model_digest = judge or "stub", digest or "0" * 64
    progress.generation.prompt, progress.generation.prompt_digest = "synthetic/1", "0" * 64
    progress.generation.line = "synthetic/1"


def _provenance(spec: types_pb2.MetricSpec, reference_set: str) -> types_pb2.Provenance:
    metric = metric_of(spec, version=1)
    changes: dict[str, Any] = {}
    if prompt := getattr(metric, "prompt", None):
        changes["prompt"] = short_prompt(prompt)
    if metric.reads_prepared:
        changes["reference_set"] = reference_set or None
    else:
        reference_set = ""
    return types_pb2.Provenance(
        metric=spec,
        name=metric.name,
        version=1,
        line=format_metric_line(replace(metric, **changes)),
        reference_set=reference_set,
    )
