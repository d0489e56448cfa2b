"""The posts as ASGI apps: `reward_endpoints` gives all of them by path."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gradewire.errors import GradewireError, InvalidRequest
from gradewire.rewards import Reward, RewardSample, RewardScorer
from gradewire.rewards.posts.reply import PostReply
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.problems import invalid
from gradewire_gateway.requests import record_of
from gradewire_gateway.rewards.callers import Caller, caller_of
from gradewire_gateway.rewards.failures import problem_of_body, problem_of_failure, problem_of_reply
from gradewire_gateway.rewards.figures import RewardFigures
from gradewire_gateway.rewards.forms import PLAIN_FORMS, RewardForm, reward_forms
from gradewire_gateway.rewards.scorers import CallerScorers, make_scorer
from gradewire_gateway.rewards.transport import UpstreamTransport
from gradewire_gateway.twins.unary import JSON_TYPE
from gradewire_gateway.wire.body import Body, DisconnectedError

T = TypeVar("T")


def reward_endpoints(gateway: Gateway) -> dict[str, ASGIApp]:
    """An ASGI app for each path; what they open is closed with the gateway."""
    settings = gateway.settings.rewards

    def make(caller: Caller) -> RewardScorer:
        return make_scorer(settings, UpstreamTransport(lambda: gateway.upstream, caller.metadata()))

    scorers = CallerScorers(make)
    gateway.closing.push_async_callback(scorers.close)
    figures = RewardFigures(gateway.telemetry.registry)
    return {
        **{path: RewardPosts(gateway, form, scorers, figures) for path, form in reward_forms(settings).items()},
        **{path: PlainPosts(gateway, answer) for path, answer in PLAIN_FORMS.items()},
    }


class RewardPosts:
    """An ASGI app that answers posts of one form with rewards; those that come together share calls to the server.

    Args:
        gateway: Whose channel it uses.
        form: Of the posts.
        scorers: One for each caller.
        figures: Told of each reward.
    """

    def __init__(self, gateway: Gateway, form: RewardForm, scorers: CallerScorers, figures: RewardFigures) -> None:
        self._gateway = gateway
        self._form = form
        self._scorers = scorers
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a post; raises ProblemError and DisconnectedError where it is not answered."""
        gateway = self._gateway
        with Body(receive, Headers(scope=scope), gateway.settings.bounds, gateway.budget) as body:
            caller, timeout_s = caller_of(scope, tell_peer=gateway.upstream.private)
            posted = await _posted(gateway, scope, body)
            samples = _readable(lambda: self._form.read(posted))
            async with self._scorers.of(caller) as scorer:
                rewards = await self._rewards(scorer, samples, timeout_s, body)
            self._figures.count(record_of(scope).route, rewards)
            reply = _readable(lambda: _written(self._form.write(posted, rewards)))
        await reply(scope, receive, send)

    async def _rewards(
        self, scorer: RewardScorer, samples: Sequence[RewardSample], timeout_s: float | None, body: Body
    ) -> list[Reward]:
        """The rewards, for as long as the caller is there."""
        deadline_s = scorer.deadline_s if timeout_s is None else min(timeout_s, scorer.deadline_s)
        scoring = asyncio.ensure_future(scorer.ascore(samples, deadline_s=deadline_s))
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


class PlainPosts:
    """An ASGI app that answers posts without the server.

    Args:
        gateway: Whose bounds hold.
        answer: From a post to its reply; raises InvalidRequest.
    """

    def __init__(self, gateway: Gateway, answer: Callable[[Mapping[str, Any]], PostReply]) -> None:
        self._gateway = gateway
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a post; raises ProblemError and DisconnectedError where it is not answered."""
        gateway = self._gateway
        with Body(receive, Headers(scope=scope), gateway.settings.bounds, gateway.budget) as body:
            posted = await _posted(gateway, scope, body)
            reply = _readable(lambda: _written(self._answer(posted)))
        await reply(scope, receive, send)


async def _posted(gateway: Gateway, scope: Scope, body: Body) -> dict[str, Any]:
    body.check_type(JSON_TYPE)
    data = await body.read()
    record_of(scope).request_bytes = body.size_bytes
    return await gateway.json.read_object(data)


def _readable(read: Callable[[], T]) -> T:
    """What is read of a post; raises ProblemError where it cannot be."""
    try:
        return read()
    except InvalidRequest as error:
        raise problem_of_body(error) from error
    except RecursionError:
        raise invalid("the body is nested too deeply") from None


def _written(reply: PostReply) -> Response:
    if reply.status != 200:
        raise problem_of_reply(reply)
    try:
        # In ASCII: what was posted comes back in replies, and JSON may hold halves of pairs, which UTF-8 cannot carry.
        content = json.dumps(reply.body, allow_nan=False)
    except ValueError as error:
        raise InvalidRequest(f"the body holds a number that JSON does not have ({error})") from error
    return Response(content, reply.status, dict(reply.headers), JSON_TYPE)
