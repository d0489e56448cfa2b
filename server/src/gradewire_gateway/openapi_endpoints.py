"""Endpoints without a gRPC twin in the OpenAPI document: chat, typed questions, the page, reward posts."""

from typing import Any, Final

from gradewire_gateway.chat import CHAT_PATH, MODELS_PATH
from gradewire_gateway.decisions import DECISIONS_PATH, MAX_OPTIONS, MAX_QUESTIONS, SYSTEM_ONE_PATH
from gradewire_gateway.openapi_schemas import Schema, reference
from gradewire_gateway.page import ACCESS_PATH, REPORT_PATH
from gradewire_gateway.problems import MEDIA_TYPE
from gradewire_gateway.rewards import AGGREGATE_PATH, OPENRLHF_PATH, SEED_PATH, SLIME_PATH, VERIFY_PATH

_CHAT_TEXT: Final[Schema] = {"type": "string"}
_PART: Final[Schema] = {
    "oneOf": [
        {"type": "object", "required": ["type", "text"], "properties": {"type": {"const": "text"}, "text": _CHAT_TEXT}},
        {
            "type": "object",
            "required": ["type", "image_url"],
            "properties": {
                "type": {"const": "image_url"},
                "image_url": {"type": "object", "required": ["url"], "properties": {"url": _CHAT_TEXT}},
            },
        },
    ]
}
_MESSAGE: Final[Schema] = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant"]},
        "content": {"oneOf": [_CHAT_TEXT, {"type": "array", "items": _PART}]},
    },
}
CHAT_SCHEMAS: Final[dict[str, Schema]] = {
    "ChatRequest": {
        "type": "object",
        "required": ["messages"],
        "properties": {
            "model": {"type": "string", "description": "A judge of GET /v1/models; default: the server's own."},
            "messages": {"type": "array", "minItems": 1, "maxItems": 256, "items": _MESSAGE},
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": 4096},
            "max_completion_tokens": {"type": "integer", "minimum": 1, "maximum": 4096},
            "stop": {"oneOf": [_CHAT_TEXT, {"type": "array", "maxItems": 4, "items": _CHAT_TEXT}]},
            "temperature": {"const": 0},
        },
    },
    "ChatCompletion": {
        "type": "object",
        "required": ["id", "object", "created", "model", "choices"],
        "properties": {
            "id": _CHAT_TEXT,
            "object": {"const": "chat.completion"},
            "created": {"type": "integer"},
            "model": _CHAT_TEXT,
            "system_fingerprint": {"type": "string", "description": "Begin of the judge's digest."},
            "choices": {"type": "array", "items": {"type": "object"}},
            "usage": {"type": "object"},
        },
    },
    "JudgeModels": {"type": "object", "required": ["object", "data"]},
}


def chat_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """The paths; `problems` are the answers of calls that fail."""
    return {
        CHAT_PATH: {
            "post": {
                "operationId": "chat",
                "summary": "What a judge says next in a chat.",
                "requestBody": {"required": True, "content": _chat_json("ChatRequest")},
                "responses": {
                    "200": {"description": "What it says.", "content": _chat_json("ChatCompletion")},
                    **problems,
                },
            }
        },
        MODELS_PATH: {
            "get": {
                "operationId": "judges",
                "summary": "The judges that can be asked.",
                "responses": {"200": {"description": "They.", "content": _chat_json("JudgeModels")}, **problems},
            }
        },
    }


def _chat_json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": reference(schema)}}


_DECISION_TEXT: Final[Schema] = {"type": "string"}
_FILLED: Final[Schema] = {"type": "string", "pattern": "\\S"}
_MODEL: Final[Schema] = {
    "type": "string",
    "description": "A judge of GET /v1/models; default: the server's own. correctness grades an answer.",
}
_USAGE: Final[Schema] = {"type": "object", "required": ["input_tokens", "output_tokens"]}
_SYSTEM_ONE_QUESTION: Final[Schema] = {
    "type": "object",
    "required": ["type", "instructions"],
    "properties": {
        "type": {"enum": ["noul", "choice", "score"]},
        "instructions": _FILLED,
        "criteria": {
            "oneOf": [
                {
                    "type": "object",
                    "additionalProperties": _DECISION_TEXT,
                    "minProperties": 2,
                    "maxProperties": MAX_OPTIONS,
                },
                {"type": "array", "items": _DECISION_TEXT, "minItems": 2, "maxItems": MAX_OPTIONS},
            ]
        },
    },
}


def _listed(name: str, kind: str, key: str, value: Schema) -> Schema:
    option = {"type": "object", "required": [key], "properties": {key: value, "description": _DECISION_TEXT}}
    listed = {"type": "array", "items": option, "minItems": 2, "maxItems": MAX_OPTIONS}
    properties = {"type": {"const": kind}, "name": _DECISION_TEXT, "instructions": _FILLED, name: listed}
    return {"type": "object", "required": ["type", "instructions", name], "properties": properties}


_OPENAI_QUESTION: Final[Schema] = {
    "oneOf": [
        {
            "type": "object",
            "required": ["type", "instructions"],
            "properties": {"type": {"const": "predicate"}, "name": _DECISION_TEXT, "instructions": _FILLED},
        },
        _listed("choices", "choice", "value", {"type": ["string", "boolean"]}),
        _listed("levels", "score", "label", _DECISION_TEXT),
    ]
}
DECISION_SCHEMAS: Final[dict[str, Schema]] = {
    "SystemOneRequest": {
        "type": "object",
        "required": ["state", "questions"],
        "properties": {
            "model": _MODEL,
            "state": {"description": "A text, or a value of JSON.", "not": {"type": "null"}},
            "questions": {
                "type": "object",
                "additionalProperties": _SYSTEM_ONE_QUESTION,
                "minProperties": 1,
                "maxProperties": MAX_QUESTIONS,
            },
        },
    },
    "SystemOneReply": {
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {"model": _DECISION_TEXT, "answers": {"type": "object"}, "usage": _USAGE},
    },
    "DecisionsRequest": {
        "type": "object",
        "required": ["input", "questions"],
        "properties": {
            "model": _MODEL,
            "input": {"oneOf": [_DECISION_TEXT, {"type": "array", "items": {"type": "object"}}]},
            "questions": {"type": "array", "items": _OPENAI_QUESTION, "minItems": 1, "maxItems": MAX_QUESTIONS},
        },
    },
    "DecisionsReply": {
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {
            "model": _DECISION_TEXT,
            "answers": {"type": "array", "items": {"type": "object"}},
            "usage": _USAGE,
        },
    },
}


def decision_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """The paths; `problems` are the answers of calls that fail."""
    forms = {SYSTEM_ONE_PATH: ("systemOne", "SystemOne"), DECISIONS_PATH: ("decisions", "Decisions")}
    return {
        path: {
            "post": {
                "operationId": name,
                "summary": "Typed questions about a state, answered with probabilities.",
                "requestBody": {"required": True, "content": _decision_json(f"{schema}Request")},
                "responses": {
                    "200": {"description": "The answers.", "content": _decision_json(f"{schema}Reply")},
                    **problems,
                },
            }
        }
        for path, (name, schema) in forms.items()
    }


def _decision_json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": reference(schema)}}


_PAGE_TEXT: Final[Schema] = {"type": "string"}
PAGE_SCHEMAS: Final[dict[str, Schema]] = {
    "PageAccess": {
        "type": "object",
        "required": ["token"],
        "properties": {
            "token": {
                "enum": ["none", "known", "needed", "unknown"],
                "description": "none: the server asks for no token; needed: it does, and there is none; unknown: the "
                "server does not know it.",
            },
            "scoring": {**_PAGE_TEXT, "description": "Why the token is not good for scoring; empty where it is."},
            "figures": {**_PAGE_TEXT, "description": "Why it is not good for Monitoring.Snapshot; empty where it is."},
            "report": {
                "type": "object",
                "required": ["available", "maxBytes"],
                "properties": {"available": {"type": "boolean"}, "maxBytes": {"type": "integer"}},
            },
        },
    },
    "ScoredRow": {
        "type": "object",
        "required": ["row", "scores"],
        "properties": {
            "row": {"type": "object", "description": "As a file of gradewire agree has it, with a label."},
            "scores": {
                "type": "object",
                "additionalProperties": {"type": "object"},
                "description": "By metric, as gradewire score writes them.",
            },
        },
    },
}


def page_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """The paths; `problems` are the answers of calls that fail."""
    return {
        "/": {
            "get": {
                "operationId": "page",
                "summary": "The page for people.",
                "responses": {"200": {"description": "It.", "content": {"text/html": {"schema": _PAGE_TEXT}}}},
            }
        },
        ACCESS_PATH: {
            "get": {
                "operationId": "access",
                "summary": "What the caller's token is good for; 200 also where it is good for nothing.",
                "responses": {
                    "200": {
                        "description": "What.",
                        "content": {"application/json": {"schema": reference("PageAccess")}},
                    },
                    **problems,
                },
            }
        },
        REPORT_PATH: {
            "post": {
                "operationId": "report",
                "summary": "The report of gradewire agree over rows with labels and scores, a row a line.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/x-ndjson": {"schema": _PAGE_TEXT, "x-item-schema": reference("ScoredRow")},
                    },
                },
                "responses": {
                    "200": {"description": "It.", "content": {"text/html": {"schema": _PAGE_TEXT}}},
                    **problems,
                },
            }
        },
    }


_REWARD_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _REWARD_TEXT}
_ANSWERS: Final[Schema] = {
    "description": "Right answers: a text, a number, a list of these, or an object with one of them.",
    "oneOf": [_REWARD_TEXT, {"type": "number"}, {"type": "array", "items": {"type": ["string", "number"]}}],
}
_INFO: Final[Schema] = {
    "type": "object",
    "required": ["gradewire_status", "gradewire_reason", "gradewire_answer", "gradewire_line", "gradewire_digest"],
    "additionalProperties": _REWARD_TEXT,
}
_FIGURES: Final[Schema] = {"type": "object", "additionalProperties": {"type": "number"}}
REWARD_SCHEMAS: Final[dict[str, Schema]] = {
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
            "prompt": {"oneOf": [_REWARD_TEXT, {"type": "array", "items": {"type": "object"}}]},
            "response": _REWARD_TEXT,
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
