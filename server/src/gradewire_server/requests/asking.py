"""What requests that ask a judge of themselves have in common: which judge, until when, and how it is told."""

import time
from collections.abc import Awaitable
from typing import Any

from gradewire_proto.conventions.spans import current_span
from gradewire_proto.conventions.string_bounds import MAX_MODEL_BYTES, byte_count
from gradewire_proto.conventions.telemetry_names import JUDGE
from gradewire_proto.v1 import judging_pb2
from gradewire_server.domain.judge import Choose, Generate
from gradewire_server.domain.ports import A, JudgeReply, ModelStatus
from gradewire_server.domain.result import Failure, Status
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError, NothingLoadedError
from gradewire_server.requests.unary.score import reply_margin_s
from gradewire_server.scoring.judge_calls import judge_attributes, tell_judge_reply


def judge_of(context: RequestContext, model: str) -> ModelStatus:
    """The judge that a request names, "" for the default one.

    Raises:
        InvalidRequestError: It cannot be the name of one.
        NothingLoadedError: It is not there.
    """
    if (size := byte_count(model)) > MAX_MODEL_BYTES:
        raise InvalidRequestError("model", f"has {size} bytes, at most {MAX_MODEL_BYTES} are allowed")
    judge = context.planner.judge(model, "model")
    if isinstance(judge, Failure):
        if judge.status is Status.INVALID_PARAMETER:
            raise InvalidRequestError("model", judge.message)
        raise NothingLoadedError(judge.message)
    return judge


async def asked_judge(need: Choose | Generate, asking: Awaitable[JudgeReply[A]]) -> JudgeReply[A]:
    """Waits for a judge's reply, and tells the request's trace of it, if there is one."""
    span = current_span()
    if span is None:
        return await asking
    with span.child(JUDGE, judge_attributes(need.model)) as part:
        reply = await asking
        tell_judge_reply(part, reply)
        return reply


def time_left_s(context: RequestContext, started_s: float, deadline_s: float | None) -> float:
    """Seconds until the deadline; raises DeadlineExceededError where it has passed.

    Args:
        context: Has the default and the longest deadline.
        started_s: When the request came, in `time.monotonic()` seconds.
        deadline_s: Seconds from then that the caller waits; None: the default.
    """
    deadlines = context.deadlines
    total_s = min(deadlines.default_s if deadline_s is None else max(0.0, deadline_s), deadlines.max_s)
    left_s = total_s - (time.monotonic() - started_s)
    if left_s <= 0:
        raise DeadlineExceededError("the deadline passed before the judge was asked")
    return left_s


def ending_s(left_s: float, answers: int) -> float:
    """When judges are to be done, in `time.monotonic()` seconds: a little early, so that one that is late is told."""
    return time.monotonic() + left_s - reply_margin_s(left_s, answers)


def fill_failure(message: judging_pb2.CompleteResponse | judging_pb2.Decision, failure: Failure) -> None:
    """Writes why a judge did not answer into its message."""
    message.status = int(failure.status)  # type: ignore[assignment]
    message.message = failure.message
    if failure.retry_after_s is not None:
        message.retry_after_s = failure.retry_after_s


def fill_source(message: judging_pb2.CompleteResponse | judging_pb2.Decision, reply: JudgeReply[Any]) -> None:
    """Writes where an answer was found, and where the time went, into its message."""
    setattr(message.cache_hits, reply.source.name.lower(), 1)
    timing = reply.timing
    message.timing.queue_s, message.timing.cache_s = timing.queue_s, timing.cache_s
    message.timing.tokenize_s, message.timing.inference_s = timing.tokenize_s, timing.inference_s
