"""Errors of reward scorers as problems."""

from collections.abc import Iterator
from typing import Any

from grpc import aio

from gradewire.errors import GradewireError, InvalidRequest, TransportError
from gradewire.rewards import RewardError
from gradewire.rewards.posts.reply import PostReply
from gradewire_gateway.problems import Problem, ProblemError, invalid, problem_of


def problem_of_failure(error: GradewireError) -> ProblemError:
    """A post whose rewards cannot be given: what the server said of the call, or why none was made."""
    for cause in _causes(error):
        if isinstance(cause, aio.AioRpcError):
            return ProblemError(problem_of(cause))
    if isinstance(error, RewardError) or (isinstance(error, TransportError) and error.may_pass):
        return ProblemError(Problem(503, "unavailable", _printable(str(error)), retry_after_s=1.0))
    if isinstance(error, InvalidRequest):  # what posts hold was read before: it is a setting of this gateway
        return ProblemError(Problem(400, "failed_precondition", _printable(str(error))))
    return ProblemError(Problem(500, "internal", _printable(str(error))))


def problem_of_body(error: InvalidRequest) -> ProblemError:
    """A post that cannot be read."""
    return invalid(_printable(str(error)))


def problem_of_reply(reply: PostReply) -> ProblemError:
    """A post of which a sample has no reward: 503 where the same post may be answered later, else 422."""
    body: Any = reply.body
    later = reply.status == 503
    code = "unavailable" if later else "failed_precondition"
    told = [{name: _printable(text) for name, text in reward.items()} for reward in body["rewards"]]
    retry_after_s = 1.0 if later else None
    problem = Problem(reply.status, code, _printable(body["detail"]), "", retry_after_s, members={"rewards": told})
    return ProblemError(problem)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _printable(text: str) -> str:
    """The text as UTF-8 can carry it: JSON may hold halves of pairs."""
    return text.encode(errors="replace").decode()
