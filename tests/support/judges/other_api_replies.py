"""Bad replies of the APIs beside chat completions, in the shapes that their providers document."""

from tests.support.fakes.odd_openai import reply
from tests.support.judges.provider_replies import FILTER, REJECTED, UNAVAILABLE, UNPARSABLE, BadReply, nested

NO_RESPONSE = "other than a response"
NO_MESSAGE = "other than a message"


def _response(*parts: object, **changes: object) -> dict[str, object]:
    """A response with a message of these parts."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": list(parts)}
    return {"id": "resp_1", "object": "response", "status": "completed", "error": None, "output": [message], **changes}


def _text(text: object, **more: object) -> dict[str, object]:
    return {"type": "output_text", "text": text, **more}


BAD_RESPONSES = (
    BadReply(
        "a failed response",
        reply(200, _response(status="failed", output=[], error={"code": "server_error", "message": "broke"})),
        UNAVAILABLE,
        "status 503",
    ),
    BadReply(
        "a limited response",
        reply(200, _response(status="failed", output=[], error={"code": "rate_limit_exceeded"})),
        UNAVAILABLE,
        "no more",
    ),
    BadReply(
        "a failure without an error",
        reply(200, _response(_text(""), status="failed")),
        UNAVAILABLE,
        "failed. Try again",
    ),
    BadReply(
        "a filtered response",
        reply(200, _response(_text(""), status="incomplete", incomplete_details={"reason": "content_filter"})),
        UNPARSABLE,
        FILTER,
    ),
    BadReply(
        "only thoughts",
        reply(
            200,
            _response(
                status="incomplete",
                output=[{"type": "reasoning", "summary": []}],
                incomplete_details={"reason": "max_output_tokens"},
            ),
        ),
        UNPARSABLE,
        "judge_reasoning_tokens",
    ),
    BadReply("a refusal", reply(200, _response({"type": "refusal", "refusal": "no"})), UNPARSABLE, "refusal to answer"),
    BadReply("another label", reply(200, _response(_text("maybe"))), UNPARSABLE, "log probabilities"),
    BadReply("no output", reply(200, _response(output=None)), UNPARSABLE, NO_RESPONSE),
    BadReply("an output as a text", reply(200, _response(output="2")), UNPARSABLE, NO_RESPONSE),
    BadReply("an empty output", reply(200, _response(output=[])), UNPARSABLE, "no text"),
    BadReply("parts of null", reply(200, _response(None)), UNPARSABLE, "no text"),
    BadReply("a message without parts", reply(200, {"output": [{"type": "message"}]}), UNPARSABLE, NO_RESPONSE),
    BadReply("a text as a number", reply(200, _response(_text(2))), UNPARSABLE, NO_RESPONSE),
    BadReply("log probabilities as a text", reply(200, _response(_text("2", logprobs="x"))), UNPARSABLE, NO_RESPONSE),
    BadReply("usage as a list", reply(200, _response(_text("2"), usage=[1])), UNPARSABLE, NO_RESPONSE),
    BadReply("a chat completion", reply(200, {"choices": [{"message": {"content": "2"}}]}), UNPARSABLE, NO_RESPONSE),
    BadReply("a deep output", reply(200, {"output": nested(90, [])}), UNPARSABLE, NO_RESPONSE),
    BadReply("a stream", reply(200, b"event: response.created\ndata: {}\n\n"), UNPARSABLE, "other than JSON"),
)


def _message(*blocks: object, **changes: object) -> dict[str, object]:
    """A message with these blocks."""
    return {"id": "msg_1", "type": "message", "content": list(blocks), "stop_reason": "end_turn", **changes}


def _block(text: object) -> dict[str, object]:
    return {"type": "text", "text": text}


def _error(kind: str, words: str = "odd") -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}


BAD_MESSAGES = (
    BadReply("overloaded", reply(529, _error("overloaded_error")), UNAVAILABLE, "status 529"),
    BadReply("overloaded in a success", reply(200, _error("overloaded_error")), UNAVAILABLE, "status 503"),
    BadReply("limited in a success", reply(200, _error("rate_limit_error")), UNAVAILABLE, "no more"),
    BadReply("limited", reply(429, _error("rate_limit_error"), retry_after="0"), UNAVAILABLE, "no more"),
    BadReply("a failure", reply(500, _error("api_error")), UNAVAILABLE, "status 500"),
    BadReply("late", reply(504, _error("timeout_error")), UNAVAILABLE, "status 504"),
    BadReply("a wrong request", reply(400, _error("invalid_request_error")), UNPARSABLE, REJECTED),
    BadReply("a wrong request in a success", reply(200, _error("invalid_request_error")), UNPARSABLE, REJECTED),
    BadReply("no permission for an item", reply(403, _error("permission_error")), UNPARSABLE, REJECTED),
    BadReply("a refusal", reply(200, _message(_block("no"), stop_reason="refusal")), UNPARSABLE, "refusal to answer"),
    BadReply(
        "only thoughts",
        reply(200, _message({"type": "thinking", "thinking": "2?"}, stop_reason="max_tokens")),
        UNPARSABLE,
        "judge_reasoning_tokens",
    ),
    BadReply("another label", reply(200, _message(_block("maybe"))), UNPARSABLE, "The judge wrote 'maybe'"),
    BadReply("two labels", reply(200, _message(_block("1"), _block(" or 2"))), UNPARSABLE, "The judge wrote"),
    BadReply("no blocks", reply(200, _message()), UNPARSABLE, "The judge wrote ''"),
    BadReply("no content", reply(200, {"type": "message"}), UNPARSABLE, NO_MESSAGE),
    BadReply("content of null", reply(200, _message(content=None)), UNPARSABLE, "no text"),
    BadReply("content as a text", reply(200, _message(content="2")), UNPARSABLE, "no text"),
    BadReply("a text as a number", reply(200, _message(_block(2))), UNPARSABLE, NO_MESSAGE),
    BadReply("a block without its text", reply(200, _message({"type": "text"})), UNPARSABLE, NO_MESSAGE),
    BadReply("usage as a list", reply(200, _message(_block("2"), usage=[1])), UNPARSABLE, NO_MESSAGE),
    BadReply("a chat completion", reply(200, {"choices": [{"message": {"content": "2"}}]}), UNPARSABLE, NO_MESSAGE),
)


def _decision(**changes: object) -> dict[str, object]:
    plain = {"type": "choice", "probabilities": {"1": 0.1, "2": 0.2, "3": 0.7}}
    return {"answers": {"verdict": {**plain, **changes}}}


BAD_DECISIONS = (
    BadReply("limited", reply(429, {"error": "slow down"}), UNAVAILABLE, "no more"),
    BadReply("limited in a success", reply(200, {"error": {"code": 429}}), UNAVAILABLE, "no more"),
    BadReply("limited at the top", reply(200, {"detail": "Too many requests"}), UNAVAILABLE, "no more"),
    BadReply("a failure", reply(500, b""), UNAVAILABLE, "status 500"),
    BadReply("a wrong request", reply(422, {"detail": [{"msg": "odd"}]}), UNPARSABLE, REJECTED),
    BadReply("a refusal", reply(200, _decision(type="refusal")), UNPARSABLE, "refusal to decide"),
    BadReply("another kind", reply(200, _decision(type="number")), UNPARSABLE, "different type of question"),
    BadReply("no probabilities", reply(200, _decision(probabilities=None)), UNPARSABLE, "without probabilities"),
    BadReply("other labels", reply(200, _decision(probabilities={"4": 1})), UNPARSABLE, "wrong labels"),
    BadReply("a sum above 1", reply(200, _decision(probabilities={"1": 1, "2": 1, "3": 1})), UNPARSABLE, "sum to 3"),
    BadReply("a negative share", reply(200, _decision(probabilities={"1": -1, "2": 1, "3": 1})), UNPARSABLE, "invalid"),
    BadReply("NaN", reply(200, _decision(probabilities={"1": float("nan"), "2": 1, "3": 0})), UNPARSABLE, "invalid"),
    BadReply("a huge number", reply(200, _decision(probabilities={"1": 10**400, "2": 1, "3": 0})), UNPARSABLE, "inval"),
    BadReply("no answer", reply(200, {"answers": {}}), UNPARSABLE, "no answer to the question"),
    BadReply("answers as a list", reply(200, {"answers": [1]}), UNPARSABLE, "other than decisions"),
    BadReply("a list", reply(200, [_decision()]), UNPARSABLE, "other than a JSON object"),
    BadReply("a web page", reply(200, b"<html>"), UNPARSABLE, "other than JSON"),
    BadReply("a cut reply", reply(200, b'{"answers": {"verdict"'), UNPARSABLE, "other than JSON"),
    BadReply("above 1 MiB", reply(200, b"x" * (2 << 20)), UNPARSABLE, "1 MiB"),
)
