"""Requests and answers of Anthropic's Messages API (`/v1/messages`)."""

from typing import Final

from gradewire_server.domain.items import Image
from gradewire_server.domain.judge import Role, Turn
from gradewire_server.judges.images import base64_of
from gradewire_server.judges.prometheus import Tokens
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.errors import Reply
from gradewire_server.judges.remote.openai_dialect import (
    Dialect,
    ServerKind,
    Written,
    answer_from,
    conversation,
    most_written,
    parts_of,
)
from gradewire_server.judges.remote.server import Answer, Question, token_count
from gradewire_server.settings.judge import Prefill

API_VERSION: Final = "2023-06-01"
_ADAPTIVE_THINKING: Final = 2
"""The dialect's first form of thoughts: the model decides how long it thinks. Models before Claude 4.6 refuse it."""
_LEAST_BUDGET: Final = 1024
"""The smallest budget for thoughts that the API accepts."""


def message_dialect(kind: ServerKind, prefill: Prefill, reasoning_tokens: int) -> Dialect:
    """Return all features of the API, whose servers return no log probabilities."""
    thinks = _ADAPTIVE_THINKING if reasoning_tokens else 0
    continues = prefill == "yes" and not reasoning_tokens
    return Dialect(kind, continues=continues, logprobs=False, reasoning_tokens=reasoning_tokens, thinks=thinks)


def message_request(question: Question, model: str, dialect: Dialect) -> dict[str, object]:
    """Return a request for one message."""
    talk = conversation(question, dialect)
    system = "\n\n".join(turn.text for turn in talk.before if turn.role is Role.SYSTEM)
    turns: list[dict[str, object]] = [_turn(turn) for turn in talk.before if turn.role is not Role.SYSTEM]
    images = [_image(image) for image in question.prompt.images]
    item: object = [*images, {"type": "text", "text": talk.item}] if images else talk.item
    turns.append({"role": Role.USER.value, "content": item})
    if talk.begun:
        # The API refuses white space at the end of a begun turn.
        turns.append({"role": Role.ASSISTANT.value, "content": talk.begun.rstrip()})
    limit = most_written(question, dialect)
    body: dict[str, object] = {"model": model, "messages": turns}
    if system:
        body["system"] = system
    if dialect.thinks == _ADAPTIVE_THINKING:
        body["thinking"] = {"type": "adaptive"}
    elif dialect.thinks:
        budget = max(_LEAST_BUDGET, dialect.reasoning_tokens)
        limit += budget - dialect.reasoning_tokens
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif dialect.temperature:  # which the API refuses together with thoughts
        body["temperature"] = 0
    body["max_tokens"] = limit
    # The API refuses stops of white space. The judge's text is cut at them afterwards.
    stops = [stop for stop in question.stop if stop.strip()]
    if stops and dialect.stops and not dialect.reasoning_tokens:
        body["stop_sequences"] = stops
    return body


def _turn(turn: Turn) -> dict[str, object]:
    return {"role": turn.role.value, "content": turn.text}


def _image(image: Image) -> dict[str, object]:
    if image.uri:
        return {"type": "image", "source": {"type": "url", "url": image.uri}}
    source = {"type": "base64", "media_type": image.media_type, "data": base64_of(image)}
    return {"type": "image", "source": source}


def message_answer(reply: Reply, question: Question, dialect: Dialect) -> Answer:
    """Parse a message; raise RemoteError if the message is not valid."""
    message = errors.json_object(reply.content)
    try:
        texts = parts_of(message["content"], "text")
        usage = message.get("usage") or {}
        cached = token_count(usage.get("cache_read_input_tokens"))
        stored = token_count(usage.get("cache_creation_input_tokens"))
        read = token_count(usage.get("input_tokens"))
        # The API counts the tokens of its prompt cache apart.
        tokens = Tokens(
            None if read is None else read + (cached or 0) + (stored or 0),
            cached,
            token_count(usage.get("output_tokens")),
        )
        text = "".join(part["text"] for part in texts) if isinstance(message["content"], list) else None
        written = Written(text, message, message.get("stop_reason"), None, tokens)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise errors.unreadable("something other than a message") from error
    return answer_from(written, question, dialect, reply)
