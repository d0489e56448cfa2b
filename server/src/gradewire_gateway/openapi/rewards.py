"""The reward posts of frameworks in the OpenAPI document."""

from typing import Any, Final

from gradewire_gateway.openapi.schemas import Schema, reference
from gradewire_gateway.problems import MEDIA_TYPE
from gradewire_gateway.rewards.paths import AGGREGATE_PATH, OPENRLHF_PATH, SEED_PATH, SLIME_PATH, VERIFY_PATH

_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_ANSWERS: Final[Schema] = {
    "description": "Right answers: a text, a number, a list of these, or an object with one of them.",
    "oneOf": [_TEXT, {"type": "number"}, {"type": "array", "items": {"type": ["string", "number"]}}],
}
_INFO: Final[Schema] = {
    "type": "object",
    "required": ["gradewire_status", "gradewire_reason", "gradewire_answer", "gradewire_line", "gradewire_digest"],
    "additionalProperties": _TEXT,
}
_FIGURES: Final[Schema] = {"type": "object", "additionalProperties": {"type": "number"}}
SCHEMAS: Final[dict[str, Schema]] = {
    "OpenRlhfPost": {
        "type": "object",
        "required": ["query", "prompts", "labels"],
        "properties": {
            "query": {**_TEXTS, "description": "Each holds its prompt and the completion."},
            "prompts": _TEXTS,
            "labels": {"type": "array", "items": _ANSWERS},
        },
    },
    "OpenRlhfReply": {
        "type": "object",
        "required": ["rewards", "scores", "extra_logs", "gradewire"],
        "properties": {
            "rewards": {"type": "array", "items": {"type": "number"}},
            "scores": {"type": "array", "items": {"type": "number"}},
            "extra_logs": {"type": "object"},
            "gradewire": {"type": "array", "items": _INFO},
        },
    },
    "SlimePost": {
        "type": "object",
        "required": ["prompt", "response", "label"],
        "properties": {
            "prompt": {"oneOf": [_TEXT, {"type": "array", "items": {"type": "object"}}]},
            "response": _TEXT,
            "label": _ANSWERS,
        },
    },
    "SlimeReply": {"type": ["number", "object"], "description": "An object where rewards_slime_key names its member."},
    "GymVerify": {
        "type": "object",
        "required": ["responses_create_params", "response"],
        "properties": {
            "responses_create_params": {"type": "object", "description": "What was asked: input is the prompt."},
            "response": {
                "type": "object",
                "required": ["output"],
                "properties": {"output": {"type": "array", "items": {"type": "object"}}},
            },
            "expected_answer": _ANSWERS,
        },
    },
    "GymVerified": {
        "type": "object",
        "description": "The request's members, and these. With mask_sample the reward is no measurement.",
        "required": ["reward", "gradewire"],
        "properties": {"reward": {"type": "number"}, "gradewire": _INFO},
    },
    "GymSession": {"type": "object"},
    "GymRewards": {
        "type": "object",
        "required": ["verify_responses"],
        "properties": {
            "verify_responses": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["reward"],
                    "properties": {"reward": {"type": "number"}, "_ng_task_index": {"type": "integer"}},
                },
            }
        },
    },
    "GymMetrics": {
        "type": "object",
        "required": ["group_level_metrics", "agent_metrics", "key_metrics"],
        "properties": {
            "group_level_metrics": {"type": "array", "items": _FIGURES},
            "agent_metrics": _FIGURES,
            "key_metrics": _FIGURES,
        },
    },
}
_NO_REWARD: Final[Schema] = {
    "description": "A problem: a sample has no reward, and the same post would not be given one.",
    "content": {MEDIA_TYPE: {"schema": reference("Problem")}},
}


def reward_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """The paths; `problems` are the answers of calls that fail."""
    scored = {**problems, "422": _NO_REWARD}
    return {
        OPENRLHF_PATH: _post("openrlhf", "Rewards for OpenRLHF.", "OpenRlhfPost", "OpenRlhfReply", scored),
        SLIME_PATH: _post("slime", "The reward of a sample for slime.", "SlimePost", "SlimeReply", scored),
        VERIFY_PATH: _post("verify", "The reward of a rollout for NeMo Gym.", "GymVerify", "GymVerified", scored),
        SEED_PATH: _post("seedSession", "Begins a session of NeMo Gym.", "GymSession", "GymSession", problems),
        AGGREGATE_PATH: _post(
            "aggregateMetrics", "Means of rewards for NeMo Gym.", "GymRewards", "GymMetrics", problems
        ),
    }


def _post(name: str, summary: str, asked: str, answered: str, others: dict[str, Any]) -> dict[str, Any]:
    reply = {"description": "The reply.", "content": {"application/json": {"schema": reference(answered)}}}
    return {
        "post": {
            "operationId": name,
            "tags": ["rewards"],
            "summary": summary,
            "parameters": [{"$ref": "#/components/parameters/Timeout"}, {"$ref": "#/components/parameters/RequestId"}],
            "requestBody": {"required": True, "content": {"application/json": {"schema": reference(asked)}}},
            "responses": {"200": reply, **others},
        }
    }
