"""Endpoints for reward posts from reinforcement learning frameworks. The client library computes the rewards."""

import asyncio
import json
from collections import Counter as Tally
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from io import StringIO
from threading import Thread
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar

from grpc import aio
from prometheus_client import CollectorRegistry, Counter
from starlette.requests import Request
from starlette.responses import Response

from gradewire.errors import GradewireError, InvalidRequest, TransportError
from gradewire.rewards import Answer, Reward, RewardError, RewardSample, RewardScorer, extract_answer, posts
from gradewire.rewards.framework_settings import scorer_of
from gradewire.rewards.posts import PostReply, RewardForm
from gradewire.transport import Metadata, Transport
from gradewire_gateway.body import Body as RequestBody
from gradewire_gateway.body import DisconnectedError
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.json_methods import JSON_TYPE, Endpoint, body_read_by, json_body
from gradewire_gateway.problems import Problem, ProblemError, invalid, problem_of
from gradewire_gateway.requests import with_bearer
from gradewire_gateway.settings import RewardPostSettings
from gradewire_gateway.upstream import CallOptions, UpstreamTransport
from gradewire_gateway.wire import Buffer, read_object
from gradewire_proto.wire_rules import AUTHORIZATION_KEY, PEER_KEY

OPENRLHF_PATH: Final = "/get_reward"
SLIME_PATH: Final = "/slime/reward"
VERIFY_PATH: Final = "/verify"
SEED_PATH: Final = "/seed_session"
AGGREGATE_PATH: Final = "/aggregate_metrics"

_MOST_IDLE: Final = 256
"""Maximum number of scorers to keep, unless more are in use. Each scorer needs a few kilobytes."""

_MOST_SAMPLES: Final = 4096
"""Maximum number of samples in a post, equal to the server's default limit for items in a request."""
_READ_AT_A_TIME: Final = 100_000
"""Number of characters (tens of milliseconds of work) that the thread reads before it turns to other posts."""

_READ_AT_A_TIME_S: Final = 0.02
"""Seconds after which the thread turns to other posts, because many short completions take longer than a long one."""

T = TypeVar("T")


def caller_of(options: CallOptions) -> Metadata:
    """Return the metadata that identifies a request's caller. Requests with equal metadata may share calls."""
    given = dict(options.metadata)
    authorization = with_bearer(given.get(AUTHORIZATION_KEY, ""))
    host = given.get(PEER_KEY, "").rpartition(":")[0]
    peer = f"{host}:0" if host else ""  # the port does not identify a caller
    return tuple((key, value) for key, value in ((AUTHORIZATION_KEY, authorization), (PEER_KEY, peer)) if value)


def problem_of_failure(error: GradewireError) -> ProblemError:
    """Return the problem for a post without rewards. It contains the server's error, or why there was no call."""
    for cause in _causes(error):
        if isinstance(cause, aio.AioRpcError):
            return ProblemError(problem_of(cause))
    if isinstance(error, RewardError) or (isinstance(error, TransportError) and error.may_pass):
        return ProblemError(Problem(503, "unavailable", str(error), retry_after_s=1.0))
    if isinstance(error, InvalidRequest):  # the post was valid, so a setting of this gateway is wrong
        return ProblemError(Problem(400, "failed_precondition", str(error)))
    return ProblemError(Problem(500, "internal", str(error)))


def problem_of_reply(reply: PostReply) -> ProblemError:
    """Return the problem for a post in which a sample has no reward: status 503 if a retry may help, otherwise 422."""
    body: Any = reply.body
    later = reply.status == 503
    code = "unavailable" if later else "failed_precondition"
    retry_after_s = 1.0 if later else None
    members = {"rewards": body["rewards"]}
    return ProblemError(Problem(reply.status, code, body["detail"], "", retry_after_s, members=members))


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def make_scorer(settings: RewardPostSettings, transport: Transport | None = None) -> RewardScorer:
    """Return a scorer with a gateway's settings. Without a transport, the scorer can only check the settings.

    Raises:
        InvalidRequest: A setting is invalid. The message contains the setting's name without the prefix `rewards_`.
    """
    given = asdict(settings) | {"hold_s": settings.deadline_s * 2 / 3}
    del given["slime_key"]
    return scorer_of(given, transport=transport)


@dataclass(slots=True)
class _CallerScorer:
    scorer: RewardScorer
    users: int = 0


class CallerScorers:
    """One scorer for each caller. If there are more than `most_idle` scorers, unused scorers are closed."""

    def __init__(self, make: Callable[[Any], RewardScorer], most_idle: int = _MOST_IDLE) -> None:
        self._make = make
        self._most_idle = most_idle
        self._lent: OrderedDict[Hashable, _CallerScorer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lent)

    @asynccontextmanager
    async def of(self, caller: Hashable) -> AsyncIterator[RewardScorer]:
        """Yield the caller's scorer, which stays open until the context ends."""
        lent = self._lent.get(caller)
        if lent is None:
            lent = self._lent[caller] = _CallerScorer(self._make(caller))
        self._lent.move_to_end(caller)
        lent.users += 1
        try:
            yield lent.scorer
        finally:
            lent.users -= 1
            if len(self._lent) > self._most_idle:
                await self._drop_idle()

    async def close(self) -> None:
        """Close all scorers and cancel their pending work."""
        lent, self._lent = self._lent, OrderedDict()
        for each in lent.values():
            await each.scorer.aclose()

    async def _drop_idle(self) -> None:
        idle = [caller for caller, lent in self._lent.items() if not lent.users]
        dropped = [self._lent.pop(caller) for caller in idle[: len(self._lent) - self._most_idle]]
        for each in dropped:
            await each.scorer.aclose()


Body: TypeAlias = Mapping[str, Any]

PLAIN_FORMS: Final[Mapping[str, Callable[[Body], PostReply]]] = {
    SEED_PATH: posts.seed_session,
    AGGREGATE_PATH: posts.aggregate_metrics,
}
"""The function for each path whose posts the gateway answers without asking the server."""


def reward_counter(registry: CollectorRegistry) -> Counter:
    """Return the counter of rewards, including masked rewards, which HTTP statuses do not show."""
    return Counter(
        "gradewire_gateway_rewards",
        "Samples in reward posts by route and result status; OK means that the sample has a score.",
        ("route", "status"),
        registry=registry,
    )


def reward_endpoints(gateway: Gateway) -> dict[str, Endpoint]:
    """Return an endpoint for each path. The gateway closes the endpoints' scorers."""
    settings = gateway.settings.rewards
    if settings.extraction == "auto":
        # The first search compiles its rules, for a second or two, so that no post waits for that.
        Thread(target=extract_answer, args=("",), name="gradewire-final-answers", daemon=True).start()

    def make(caller: Metadata) -> RewardScorer:
        return make_scorer(settings, UpstreamTransport(lambda: gateway.upstream, caller))

    scorers = CallerScorers(make)
    gateway.closing.push_async_callback(scorers.close)
    counter = reward_counter(gateway.telemetry.registry)
    forms = {
        OPENRLHF_PATH: posts.OPENRLHF,
        SLIME_PATH: posts.slime_form(settings.slime_key or None),
        VERIFY_PATH: posts.NEMO_GYM,
    }
    return {
        **{path: _reward_endpoint(gateway, form, scorers, counter) for path, form in forms.items()},
        **{path: _plain_endpoint(gateway, write) for path, write in PLAIN_FORMS.items()},
    }


def _reward_endpoint(gateway: Gateway, form: RewardForm, scorers: CallerScorers, counter: Counter) -> Endpoint:
    """Return the endpoint for posts in one format. Posts that arrive together share calls to the server."""

    def read(data: Buffer) -> tuple[Body, Sequence[RewardSample]]:
        posted = read_object(data)
        samples = _readable(lambda: form.read(posted, gateway.settings.rewards.reference_column))
        if len(samples) > _MOST_SAMPLES:
            detail = f"the post has {len(samples)} samples; post at most {_MOST_SAMPLES} at a time"
            raise ProblemError(Problem(413, "resource_exhausted", detail))
        return posted, samples

    async def answer(request: Request) -> Response:
        async with json_body(gateway, request, read) as ((posted, samples), options, body):
            answers = await answers_in(gateway, samples)
            async with scorers.of(caller_of(options)) as scorer:
                rewards = await _rewards(scorer, samples, answers, options.timeout_s, body)
            for status, number in Tally(str(reward.status) for reward in rewards).items():
                counter.labels(request.scope["path"], status).inc(number)
            write = partial(_readable, lambda: _written(form.write(posted, rewards)))
            return await gateway.json.run(body.size_bytes, write)

    return answer


async def answers_in(gateway: Gateway, samples: Sequence[RewardSample]) -> list[Answer]:
    """Return the answers in a post's samples. Read them on the thread, in steps, to let other posts run.

    Read small posts on the thread too, because a post of 60 KB may contain thousands of completions.
    """
    extraction: Any = gateway.settings.rewards.extraction
    answers: list[Answer] = []

    def read_some() -> None:
        characters = 0
        until_s = monotonic() + _READ_AT_A_TIME_S
        while len(answers) < len(samples) and characters < _READ_AT_A_TIME and monotonic() < until_s:
            completion = samples[len(answers)].completion or ""
            answers.append(extract_answer(completion, extraction))
            characters += len(completion)

    while len(answers) < len(samples):
        await gateway.json.run_on_thread(read_some)
    return answers


async def _rewards(
    scorer: RewardScorer,
    samples: Sequence[RewardSample],
    answers: Sequence[Answer],
    timeout_s: float | None,
    body: RequestBody,
) -> list[Reward]:
    """Return the rewards. Cancel the calls if the caller disconnects."""
    deadline_s = scorer.deadline_s if timeout_s is None else min(timeout_s, scorer.deadline_s)
    scoring = asyncio.ensure_future(scorer.ascore(samples, deadline_s=deadline_s, answers=answers))
    gone = asyncio.ensure_future(body.disconnected())
    gone.add_done_callback(lambda _done: scoring.cancel())
    try:
        return await scoring
    except asyncio.CancelledError:
        if gone.done():
            raise DisconnectedError from None
        raise
    except GradewireError as error:
        raise problem_of_failure(error) from error
    finally:
        gone.cancel()
        scoring.cancel()


def _plain_endpoint(gateway: Gateway, write: Callable[[Body], PostReply]) -> Endpoint:
    """Return the endpoint for posts that the gateway answers without calling the server."""
    work = partial(_plain_reply, write=write)

    async def answer(request: Request) -> Response:
        async with body_read_by(gateway, request, partial(gateway.json.convert, work=work)) as (reply, _options, _body):
            return Response(reply, media_type=JSON_TYPE)

    return answer


def _plain_reply(data: Buffer, write: Callable[[Body], PostReply]) -> bytes:
    posted = read_object(data)
    return bytes(_readable(lambda: _written(write(posted))).body)


def _readable(read: Callable[[], T]) -> T:
    try:
        return read()
    except InvalidRequest as error:
        raise invalid(str(error)) from error
    except RecursionError:
        raise invalid("the body is nested too deeply") from None


_ENCODER: Final = json.JSONEncoder(allow_nan=False)


def _written(reply: PostReply) -> Response:
    if reply.status != 200:
        raise problem_of_reply(reply)
    content = StringIO()
    try:
        # Write ASCII, because replies contain posted strings, and UTF-8 cannot encode lone surrogates in them.
        # Write in pieces, because `dumps` would block other threads.
        content.writelines(_ENCODER.iterencode(reply.body))
    except ValueError as error:
        raise InvalidRequest(f"the body contains a number that JSON does not allow ({error})") from error
    return Response(content.getvalue(), reply.status, dict(reply.headers), JSON_TYPE)
