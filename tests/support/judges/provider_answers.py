"""Providers of judges: the address as documented, the header with the key, and an answer in each provider's shape.

The bodies are our own. They have the fields that the providers document, also those that gradewire does not read.
"""

from dataclasses import dataclass
from typing import Any

_USAGE = {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42}
BEARER = "authorization"


def _entry(token: str, logprob: float, **more: object) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), **more}


def _told(*tops: tuple[str, float], **more: object) -> dict[str, Any]:
    """Log probabilities of one token."""
    token, logprob = tops[0]
    return {"content": [_entry(token, logprob, top_logprobs=[_entry(*top) for top in tops], **more)], "refusal": None}


TOPS = (("2", -0.02), ("1", -4.5), ("3", -5.5))


def _chat(
    text: str | None = "2", *, choice: object = None, message: object = None, usage: object = _USAGE, **more: object
) -> dict[str, Any]:
    said = {"role": "assistant", "content": text, **(message if isinstance(message, dict) else {})}
    one = {"index": 0, "message": said, "finish_reason": "stop", **(choice if isinstance(choice, dict) else {})}
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [one],
        "usage": usage,
        **more,
    }


@dataclass(frozen=True)
class Provider:
    """A row of the documented table.

    Attributes:
        name: As documented.
        url: As documented, with names in the place of its placeholders.
        path: What a request is sent to.
        header: The name of the header with the key, in lower case; "" if no key is needed.
        body: An answer "2" to a question with the labels 1, 2 and 3.
        told: True if the answer has log probabilities.
    """

    name: str
    url: str
    path: str
    header: str
    body: dict[str, Any]
    told: bool = False


_FILTERS = {
    "hate": {"filtered": False, "severity": "safe"},
    "error": {"code": "content_filter_error", "message": "late"},
}
_AZURES = _chat(
    choice={"content_filter_results": _FILTERS, "logprobs": _told(*TOPS)},
    prompt_filter_results=[{"prompt_index": 0, "content_filter_results": _FILTERS}],
)
_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "2", "citations": None}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 38, "output_tokens": 2, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 2},
}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "2", "annotations": [], "logprobs": _told(*TOPS)["content"]},
            ],
        }
    ],
    "usage": {"input_tokens": 40, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2, "total_tokens": 42},
}
_REGION = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/endpoints/openapi"

PROVIDERS = (
    Provider(
        "OpenAI",
        "https://api.openai.com/v1",
        "https://api.openai.com/v1/chat/completions",
        BEARER,
        _chat(
            choice={"logprobs": _told(*TOPS)},
            message={"refusal": None, "annotations": []},
            service_tier="default",
            system_fingerprint="fp_1",
        ),
        told=True,
    ),
    Provider(
        "OpenAI, Responses API",
        "https://api.openai.com/v1/responses",
        "https://api.openai.com/v1/responses",
        BEARER,
        _RESPONSE,
        told=True,
    ),
    Provider(
        "Anthropic", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages", "x-api-key", _MESSAGE
    ),
    Provider(
        "Azure, a deployment",
        "https://name.openai.azure.com/openai/deployments/deployment?api-version=2024-10-21",
        "https://name.openai.azure.com/openai/deployments/deployment/chat/completions",
        "api-key",
        _AZURES,
        told=True,
    ),
    Provider(
        "Azure, version 1",
        "https://name.openai.azure.com/openai/v1",
        "https://name.openai.azure.com/openai/v1/chat/completions",
        "api-key",
        _AZURES,
        told=True,
    ),
    Provider(
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        BEARER,
        _chat("Rating: 2\n", message={"extra_content": {"google": {"thought_signature": "c2ln"}}}),
    ),
    Provider(
        "Vertex AI",
        _REGION,
        f"{_REGION}/chat/completions",
        BEARER,
        _chat(
            choice={"logprobs": _told(*TOPS)},
            usage={**_USAGE, "extra_properties": {"google": {"traffic_type": "ON_DEMAND"}}},
        ),
        told=True,
    ),
    Provider(
        "Bedrock",
        "https://bedrock-runtime.region.amazonaws.com/openai/v1",
        "https://bedrock-runtime.region.amazonaws.com/openai/v1/chat/completions",
        BEARER,
        _chat("<reasoning>Close to the reference.</reasoning>2", service_tier="default"),
    ),
    Provider(
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "https://openrouter.ai/api/v1/chat/completions",
        BEARER,
        _chat(
            choice={"native_finish_reason": "STOP", "logprobs": _told(*TOPS), "error": None},
            message={"reasoning": None, "refusal": None},
            usage={**_USAGE, "cost": 0.0001, "is_byok": False, "prompt_tokens_details": None},
            provider="somebody",
        ),
        told=True,
    ),
    Provider(
        "vLLM",
        "http://host:8000/v1",
        "http://host:8000/v1/chat/completions",
        BEARER,
        _chat(
            " 2",
            choice={"logprobs": _told((" 2", -0.02), (" 1", -4.5), (" 3", -5.5)), "stop_reason": None},
            message={"reasoning_content": None, "tool_calls": []},
            prompt_logprobs=None,
            kv_transfer_params=None,
        ),
        told=True,
    ),
    Provider(
        "SGLang",
        "http://host:30000/v1",
        "http://host:30000/v1/chat/completions",
        BEARER,
        _chat(
            choice={"logprobs": _told(*TOPS), "matched_stop": 151645},
            message={"reasoning_content": None, "tool_calls": None},
            usage={**_USAGE, "prompt_tokens_details": None},
            metadata={"weight_version": "default"},
        ),
        told=True,
    ),
    Provider(
        "llama.cpp",
        "http://host:8080/v1",
        "http://host:8080/v1/chat/completions",
        BEARER,
        _chat(
            choice={
                "logprobs": {"content": [_entry("2", -0.02, id=17, top_logprobs=[_entry(*top, id=1) for top in TOPS])]}
            },
            timings={"prompt_n": 40, "predicted_n": 2},
            system_fingerprint="b1",
        ),
        told=True,
    ),
    Provider(
        "Text Generation Inference (TGI)",
        "http://host:8080/v1",
        "http://host:8080/v1/chat/completions",
        BEARER,
        _chat(choice={"logprobs": _told(*TOPS)}, system_fingerprint="3.0.0-sha-1", usage={**_USAGE}),
        told=True,
    ),
    Provider(
        "Ollama",
        "http://host:11434/v1",
        "http://host:11434/v1/chat/completions",
        "",
        _chat("2", system_fingerprint="fp_ollama", message={"reasoning": "It is close."}),
    ),
    Provider(
        "LM Studio",
        "http://host:1234/v1",
        "http://host:1234/v1/chat/completions",
        "",
        _chat("2", choice={"logprobs": None}, stats={}, system_fingerprint="m"),
    ),
)
