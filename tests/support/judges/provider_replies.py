"""Replies of judges' servers on bad days: bodies of our own in the shapes that the providers document.

Each has the status of the one item that met it, while the server answers all other items.
"""

import json
from dataclasses import dataclass

from tests.support.fakes.odd_openai import completion, reply

from gradewire_server.domain.items import Status

UNPARSABLE, UNAVAILABLE = Status.UNPARSABLE, Status.UNAVAILABLE
FILTER = "content filter"


@dataclass(frozen=True, slots=True)
class BadReply:
    """A reply to one item.

    Attributes:
        name: Provider and kind of trouble.
        sent: The bytes of the HTTP reply.
        status: The item's status.
        words: A part of the item's message.
    """

    name: str
    sent: bytes
    status: Status
    words: str


def nested(levels: int, inner: object) -> object:
    """Return a value inside many objects with the name `error`."""
    for _ in range(levels):
        inner = {"error": inner}
    return inner


def _upstream(code: int, message: str) -> dict[str, object]:
    """OpenRouter's error: the provider's own error as a text."""
    raw = json.dumps({"error": {"message": message, "type": "invalid_request_error"}})
    return {"error": {"message": "Provider returned error", "code": code, "metadata": {"raw": raw}}}


def _gemini(code: int, status: str, message: str, *details: object) -> list[object]:
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def _choice(**changes: object) -> dict[str, object]:
    plain = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Rating: 2"}}
    return {"id": "c", "object": "chat.completion", "choices": [{**plain, **changes}]}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
REJECTED = "rejects a request"
NO_COMPLETION = "other than a chat completion"

BAD_REPLIES = (
    # A success that holds an error.
    BadReply("openrouter limits", reply(200, {"choices": None, **_upstream(429, "slow down")}), UNAVAILABLE, "no more"),
    BadReply("openrouter's provider is down", reply(200, _upstream(502, "bad gateway")), UNAVAILABLE, "status 502"),
    BadReply("openrouter's provider refuses", reply(200, _upstream(400, "odd words")), UNPARSABLE, REJECTED),
    BadReply("a code in words", reply(200, {"error": {"code": "rate_limit_exceeded"}}), UNAVAILABLE, "no more"),
    BadReply("a type in words", reply(200, {"error": {"type": "overloaded_error"}}), UNAVAILABLE, "status 503"),
    BadReply("an error as a text", reply(200, {"error": "model is overloaded"}), UNAVAILABLE, "status 503"),
    BadReply("an error that says nothing", reply(200, {"error": {}, "choices": []}), UNPARSABLE, NO_COMPLETION),
    BadReply(
        "a type that no retry helps",
        reply(200, {"error": {"type": "invalid_request_error", "message": "try again with another text"}}),
        UNPARSABLE,
        REJECTED,
    ),
    BadReply("an error of unknown kind", reply(200, {"error": "no"}), UNPARSABLE, REJECTED),
    BadReply(
        "openrouter fails midway",
        reply(200, _choice(finish_reason="error", error={"code": 502, "message": "broke"}, message={"content": ""})),
        UNAVAILABLE,
        "status 502",
    ),
    BadReply(
        "an end by an error", reply(200, _choice(finish_reason="error", message={"content": ""})), UNAVAILABLE, "failed"
    ),
    BadReply("a wait at the top", reply(200, {"detail": "Rate limit reached"}), UNAVAILABLE, "no more"),
    BadReply("a failure at the top", reply(200, {"message": "no", "code": 502}), UNAVAILABLE, "status 502"),
    BadReply("gemini limits in a success", reply(200, _gemini(429, "", "Quota exceeded")), UNAVAILABLE, "no more"),
    BadReply("a list in an error", reply(200, {"error": [{"code": 429}]}), UNAVAILABLE, "no more"),
    BadReply(
        "two codes",
        reply(200, {"error": {"type": "invalid_request_error", "code": "rate_limit_exceeded"}}),
        UNAVAILABLE,
        "no more",
    ),
    # Content filters.
    BadReply(
        "azure filters the prompt",
        reply(
            400,
            {
                "error": {
                    "message": "The response was filtered by the content management policy.",
                    "code": "content_filter",
                    "param": "prompt",
                    "status": 400,
                    "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {}}},
                }
            },
        ),
        UNPARSABLE,
        FILTER,
    ),
    BadReply("azure filters the answer", completion("", finish="content_filter"), UNPARSABLE, FILTER),
    BadReply("vertex filters the answer", completion(None, finish="SAFETY"), UNPARSABLE, FILTER),
    BadReply("bedrock's guardrail", completion("no", finish="guardrail_intervened"), UNPARSABLE, FILTER),
    BadReply(
        "openrouter moderates",
        reply(403, {"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}}),
        UNPARSABLE,
        FILTER,
    ),
    BadReply(
        "openai flags a prompt",
        reply(400, {"error": {"message": "Your prompt was flagged as a violation of our usage policy", "code": None}}),
        UNPARSABLE,
        FILTER,
    ),
    BadReply(
        "a refusal beside the text",
        reply(200, _choice(message={"role": "assistant", "content": None, "refusal": "I will not."})),
        UNPARSABLE,
        "refusal to answer",
    ),
    # Errors that are no object.
    BadReply(
        "gemini limits",
        reply(429, _gemini(429, "RESOURCE_EXHAUSTED", "Quota exceeded for requests per minute", RETRY_INFO)),
        UNAVAILABLE,
        "no more",
    ),
    BadReply("gemini refuses", reply(400, _gemini(400, "INVALID_ARGUMENT", "odd")), UNPARSABLE, REJECTED),
    BadReply("gemini is overloaded", reply(503, _gemini(503, "UNAVAILABLE", "busy")), UNAVAILABLE, "status 503"),
    BadReply("tgi refuses", reply(422, {"error": "Input validation error: odd"}), UNPARSABLE, REJECTED),
    BadReply("tgi fails", reply(424, {"error": "CUDA error", "error_type": "generation"}), UNAVAILABLE, "status 424"),
    BadReply("tgi limits", reply(429, {"error": "Model is overloaded"}), UNAVAILABLE, "no more"),
    BadReply("a plain text", reply(400, b"Failed to deserialize the JSON body"), UNPARSABLE, REJECTED),
    BadReply("a text in JSON", reply(400, "odd"), UNPARSABLE, REJECTED),
    BadReply("a number", reply(400, b"17"), UNPARSABLE, REJECTED),
    BadReply("a web page", reply(400, b"<!DOCTYPE html><title>400</title>"), UNPARSABLE, REJECTED),
    BadReply("a gateway's web page", reply(502, b"<html>Bad gateway</html>"), UNAVAILABLE, "status 502"),
    BadReply("an empty refusal", reply(400, b""), UNPARSABLE, REJECTED),
    BadReply("an empty failure", reply(500, b""), UNAVAILABLE, "status 500"),
    BadReply("a deep refusal", reply(400, nested(500, "odd")), UNPARSABLE, REJECTED),
    BadReply("a bottomless refusal", reply(400, b'{"error":' * 100_000), UNPARSABLE, REJECTED),
    BadReply("a huge refusal", reply(400, {"error": {"message": "odd " * 200_000}}), UNPARSABLE, REJECTED),
    BadReply("a refusal above 1 MiB", reply(400, b"x" * (2 << 20)), UNPARSABLE, "more than 1 MiB"),
    BadReply("lists of lists", reply(400, [[[[["odd"]]]], {"error": [[None]]}]), UNPARSABLE, REJECTED),
    BadReply("wrong types", reply(400, {"error": {"message": 5, "code": [], "type": {}}}), UNPARSABLE, REJECTED),
    BadReply("broken UTF-8", reply(400, b'{"error": "\xff\xfe"}'), UNPARSABLE, REJECTED),
    BadReply("a cut refusal", reply(422, b'{"detail": [{"loc": ["body"], "msg": "od'), UNPARSABLE, REJECTED),
    BadReply("mistral's detail", reply(422, {"message": {"detail": [{"msg": "odd"}]}}), UNPARSABLE, REJECTED),
    BadReply("a number as a status", reply(200, {"error": {"code": 10**30, "message": "no"}}), UNPARSABLE, REJECTED),
    # Failures and limits.
    BadReply("anthropic is overloaded", reply(529, {"type": "error", "error": {}}), UNAVAILABLE, "status 529"),
    BadReply("llama.cpp loads", reply(503, {"error": {"code": 503, "message": "Loading"}}), UNAVAILABLE, "status 503"),
    BadReply("openrouter's budget", reply(402, {"error": {"code": 402}}, retry_after="0"), UNAVAILABLE, "no more"),
    BadReply("bedrock throttles", reply(429, {"Message": "Too many requests"}), UNAVAILABLE, "no more"),
    BadReply("sglang refuses", reply(400, {"object": "error", "message": "odd", "code": 400}), UNPARSABLE, REJECTED),
    BadReply("a strange status", reply(418, {}), UNPARSABLE, REJECTED),
    BadReply("a status of nobody", reply(799, {}), UNAVAILABLE, "status 799"),
    BadReply("an unknown model for one item", reply(404, {"error": "model not found"}), UNPARSABLE, REJECTED),
    BadReply("a forbidden item", reply(403, {"message": "blocked by a rule"}), UNPARSABLE, REJECTED),
    # Successes without an answer.
    BadReply("no content", reply(204, b""), UNPARSABLE, "an empty reply"),
    BadReply("accepted", reply(202, {"id": "later"}), UNPARSABLE, NO_COMPLETION),
    BadReply("a list", reply(200, [_choice()]), UNPARSABLE, "other than JSON"),
    BadReply("a stream", reply(200, b'data: {"choices": []}\n\ndata: [DONE]\n\n'), UNPARSABLE, "other than JSON"),
    BadReply("a cut success", reply(200, json.dumps(_choice())[:-20].encode()), UNPARSABLE, "other than JSON"),
    BadReply("choices of null", reply(200, {"choices": [None]}), UNPARSABLE, NO_COMPLETION),
    BadReply("choices as an object", reply(200, {"choices": {"0": "Rating: 2"}}), UNPARSABLE, NO_COMPLETION),
    BadReply("a message as a text", reply(200, _choice(message="Rating: 2")), UNPARSABLE, NO_COMPLETION),
    BadReply("usage as a list", reply(200, {**_choice(), "usage": [1]}), UNPARSABLE, NO_COMPLETION),
    BadReply("a text as a number", reply(200, _choice(message={"content": 2})), UNPARSABLE, "no text"),
    BadReply("log probabilities as a text", reply(200, _choice(logprobs="none")), UNPARSABLE, NO_COMPLETION),
    BadReply(
        "a log probability as a text",
        reply(200, _choice(logprobs={"content": [{"token": "2", "logprob": "sure"}]})),
        UNPARSABLE,
        NO_COMPLETION,
    ),
    BadReply(
        "a log probability beyond all numbers",
        reply(200, json.dumps(_choice(logprobs={"content": [{"token": "2", "logprob": 7}]})).encode()),
        UNPARSABLE,
        "invalid probabilities",
    ),
    BadReply(
        "NaN", reply(200, _choice(logprobs={"content": [{"token": "2", "logprob": float("nan")}]})), UNPARSABLE, "inval"
    ),
    BadReply(
        "log probabilities of null",
        reply(200, _choice(logprobs={"content": [{"token": "2", "logprob": None, "top_logprobs": None}]})),
        UNPARSABLE,
        "no log probabilities",
    ),
    BadReply("another label", completion("Rating: maybe", [{"maybe": -0.1}]), UNPARSABLE, "none of the labels"),
    BadReply("half a surrogate", reply(200, b'{"choices":[{"message":{"content":"\\ud800"}}]}'), UNPARSABLE, "no log"),
)
