"""Requests and answers of OpenAI's Responses API (`/v1/responses`)."""

from typing import Any, Final

from gradewire_server.judges.images import url_of
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
    steps_of,
)
from gradewire_server.judges.remote.server import Answer, Question, token_count
from gradewire_server.settings.judge import Prefill

_LEAST_TOKENS: Final = 16
"""The smallest `max_output_tokens` that the API accepts."""


def response_dialect(kind: ServerKind, _: Prefill, reasoning_tokens: int) -> Dialect:
    """Return all features of the API, which continues no begun turn and knows no stops."""
    return Dialect(kind, limit="max_output_tokens", stops=False, reasoning_tokens=reasoning_tokens)


def response_request(question: Question, model: str, dialect: Dialect) -> dict[str, object]:
    """Return a request for one response, which the server does not store."""
    talk = conversation(question, dialect)
    content: list[dict[str, object]] = [
        {"type": "input_image", "image_url": url_of(image)} for image in question.prompt.images
    ]
    item: object = [*content, {"type": "input_text", "text": talk.item}] if content else talk.item
    turns: list[dict[str, object]] = [{"role": turn.role.value, "content": turn.text} for turn in talk.before]
    body: dict[str, object] = {
        "model": model,
        "input": [*turns, {"role": "user", "content": item}],
        "max_output_tokens": max(_LEAST_TOKENS, most_written(question, dialect)),
        "store": False,
        "stream": False,
    }
    if dialect.temperature:
        body["temperature"] = 0
    if question.options and dialect.logprobs:
        body |= {"top_logprobs": dialect.top_logprobs, "include": ["message.output_text.logprobs"]}
    return body


def response_answer(reply: Reply, question: Question, dialect: Dialect) -> Answer:
    """Parse a response; raise RemoteError if the response is not valid."""
    response = errors.json_object(reply.content)
    try:
        output = response["output"]
        contents = [part for each in output if each.get("type") == "message" for part in each["content"]]
        texts = parts_of(contents, "output_text")
        usage = response.get("usage") or {}
        tokens = Tokens(
            token_count(usage.get("input_tokens")),
            token_count((usage.get("input_tokens_details") or {}).get("cached_tokens")),
            token_count(usage.get("output_tokens")),
        )
        steps = steps_of([entry for part in texts for entry in part.get("logprobs") or ()])
        message = {"content": [{"type": "text", "text": part["text"]} for part in texts]}
        if any(each.get("type") == "reasoning" for each in output):
            message["reasoning"] = "set apart by the server"  # type: ignore[assignment]
        written = Written(
            "".join(part["text"] for part in texts) if texts else None,
            message,
            _finish(response),
            steps,
            tokens,
            refusal=bool(parts_of(contents, "refusal")),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise errors.unreadable("something other than a response") from error
    return answer_from(written, question, dialect, reply)


def _finish(response: dict[str, Any]) -> object:
    """Return the reason for the end in the words of chat completions."""
    if response.get("status") != "incomplete":
        return response.get("status")
    details = response.get("incomplete_details")
    return details.get("reason") if isinstance(details, dict) else "max_output_tokens"
