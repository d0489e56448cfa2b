"""What a judge said, in the form of the chat endpoint; and the judges as its list of models."""

import time
from typing import Any

from gradewire_gateway.statuses import check_ok
from gradewire_proto.v1 import judging_pb2, models_pb2

_USABLE = (models_pb2.MODEL_STATE_LOADED, models_pb2.MODEL_STATE_BUILT)


def completion_body(reply: judging_pb2.CompleteResponse, request_id: str) -> dict[str, Any]:
    """A chat completion; raises ProblemError where the judge failed."""
    check_ok(reply)
    body: dict[str, Any] = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": reply.model,
        "system_fingerprint": reply.model_digest[:12],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.text, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop" if reply.complete else "length",
            }
        ],
    }
    if reply.HasField("prompt_tokens") and reply.HasField("generated_tokens"):
        body["usage"] = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.generated_tokens,
            "total_tokens": reply.prompt_tokens + reply.generated_tokens,
        }
    return body


def models_body(reply: models_pb2.ListModelsResponse) -> dict[str, Any]:
    """The judges that can be asked."""
    judges = [model for model in reply.models if model.kind == "judge" and model.state in _USABLE]
    return {
        "object": "list",
        "data": [{"id": each.name, "object": "model", "created": 0, "owned_by": "gradewire"} for each in judges],
    }
