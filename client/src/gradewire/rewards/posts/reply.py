"""Replies, and the JSON that posts are read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradewire.errors import GradewireError, InvalidRequest, TransportError
from gradewire.rewards.answer import last_question
from gradewire.rewards.reward import Reward, RewardError

# Frameworks ask again after an answer of 500 or more, and slime after any that is not 200.
_UNAVAILABLE = 503
_UNPROCESSABLE = 422
_BAD_REQUEST = 400


@dataclass(frozen=True, slots=True)
class PostReply:
    """What a post is answered with.

    Attributes:
        body: To be written as JSON.
        status: Of HTTP.
        headers: Beside those that every reply has.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def no_reward(rewards: Sequence[Reward]) -> PostReply | None:
    """The reply where a sample has no value; None where all have one.

    A number would be trained on, so there is none: 503 where the same post may be answered later, else 422.
    """
    missing = [reward for reward in rewards if reward.value is None]
    if not missing:
        return None
    may_pass = all(reward.status.may_pass for reward in missing)
    problem = _problem(
        _UNAVAILABLE if may_pass else _UNPROCESSABLE,
        f"{len(missing)} of {len(rewards)} samples have no reward ({missing[0].status}): {missing[0].reason}",
    )
    problem["rewards"] = [reward.to_info() for reward in rewards]
    return PostReply(problem, problem["status"], {"Retry-After": "1"} if may_pass else {})


def failed(error: GradewireError) -> PostReply:
    """The reply to a post whose call failed: 400 where it is wrong, 503 where another try may help."""
    if isinstance(error, InvalidRequest):
        return PostReply(problem := _problem(_BAD_REQUEST, str(error)), problem["status"])
    if isinstance(error, RewardError) or (isinstance(error, TransportError) and error.may_pass):
        return PostReply(problem := _problem(_UNAVAILABLE, str(error)), problem["status"], {"Retry-After": "1"})
    return PostReply(problem := _problem(502, str(error)), problem["status"])


def fields_of(body: object, *needed: str) -> Mapping[str, Any]:
    """The body as a mapping that has the needed fields.

    Raises:
        InvalidRequest: It is none, or lacks one; the message names it.
    """
    if not isinstance(body, Mapping):
        raise InvalidRequest(f"the body is a {type(body).__name__}: post a JSON object")
    for name in needed:
        if name not in body:
            there = ", ".join(sorted(map(str, body))) or "nothing"
            raise InvalidRequest(f"{name} is missing in the body (there is: {there})")
    return body


def text_of(value: object, at: str) -> str:
    """A text as it was posted: null or a list written as a text would be graded as an answer, and come to 0.

    Args:
        value: What stands there.
        at: Its path in the body.

    Raises:
        InvalidRequest: It is no text.
    """
    if not isinstance(value, str):
        raise InvalidRequest(f"{at} is a {type(value).__name__}: post a text")
    return value


def question_of(prompt: object, at: str) -> str:
    """The question that a prompt asks.

    Args:
        prompt: A text, or the messages of a chat.
        at: Its path in the body.

    Raises:
        InvalidRequest: It is neither.
    """
    if isinstance(prompt, list) and all(isinstance(turn, Mapping) for turn in prompt):
        return last_question(prompt)
    if not isinstance(prompt, str):
        raise InvalidRequest(f"{at} is a {type(prompt).__name__}: post a text, or a list of messages")
    return prompt


def _problem(status: int, detail: str) -> dict[str, Any]:
    titles = {400: "Bad Request", 422: "No reward", 502: "Bad Gateway", 503: "No reward now"}
    return {"type": "about:blank", "title": titles[status], "status": status, "detail": detail}
