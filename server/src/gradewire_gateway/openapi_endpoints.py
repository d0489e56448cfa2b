"""Endpoints without a gRPC twin in the OpenAPI document: chat, typed questions, the page, reward posts."""

from typing import Any, Final

from gradewire_gateway.chat import CHAT_PATH, MODELS_PATH
from gradewire_gateway.decisions import DECISIONS_PATH, MAX_OPTIONS, MAX_QUESTIONS, SYSTEM_ONE_PATH
from gradewire_gateway.openapi_schemas import Schema, reference
from gradewire_gateway.page import ACCESS_PATH, REPORT_PATH
from gradewire_gateway.problems import MEDIA_TYPE
from gradewire_gateway.rewards import AGGREGATE_PATH, OPENRLHF_PATH, SEED_PATH, SLIME_PATH, VERIFY_PATH

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_OBJECT: Final[Schema] = {"type": "object"}


def _object(required: str = "", **properties: Schema) -> Schema:
    """Return the schema of an object; `required` has the names of the properties that must be there."""
    found: Schema = {"type": "object"}
    if required:
        found["required"] = required.split()
    return found | ({"properties": properties} if properties else {})


def _list(items: Schema, **bounds: int) -> Schema:
    return {"type": "array", "items": items, **bounds}


def _described(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text}


_PART: Final[Schema] = {
    "oneOf": [
        _object("type text", type={"const": "text"}, text=_TEXT),
        _object("type image_url", type={"const": "image_url"}, image_url=_object("url", url=_TEXT)),
    ]
}
_MESSAGE: Final[Schema] = _object(
    "role content",
    role={"enum": ["system", "developer", "user", "assistant"]},
    content={"oneOf": [_TEXT, _list(_PART)]},
)
_TOKENS: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 4096}
_FILLED: Final[Schema] = {"type": "string", "pattern": "\\S"}
_MODEL: Final[Schema] = _described(
    _TEXT, "A judge of GET /v1/models; default: the server's own. correctness grades an answer."
)
_USAGE: Final[Schema] = _object("input_tokens output_tokens")
_SYSTEM_ONE_QUESTION: Final[Schema] = _object(
    "type instructions",
    type={"enum": ["noul", "choice", "score"]},
    instructions=_FILLED,
    criteria={
        "oneOf": [
            _OBJECT | {"additionalProperties": _TEXT, "minProperties": 2, "maxProperties": MAX_OPTIONS},
            _list(_TEXT, minItems=2, maxItems=MAX_OPTIONS),
        ]
    },
)


def _question(kind: str, name: str, key: str, value: Schema) -> Schema:
    options = _list(_object(key, **{key: value}, description=_TEXT), minItems=2, maxItems=MAX_OPTIONS)
    return _object(
        f"type instructions {name}", type={"const": kind}, name=_TEXT, instructions=_FILLED, **{name: options}
    )


_OPENAI_QUESTION: Final[Schema] = {
    "oneOf": [
        _object("type instructions", type={"const": "predicate"}, name=_TEXT, instructions=_FILLED),
        _question("choice", "choices", "value", {"type": ["string", "boolean"]}),
        _question("score", "levels", "label", _TEXT),
    ]
}
_ANSWERS: Final[Schema] = {
    "description": "Right answers: a text, a number, a list of these, or an object with one of them.",
    "oneOf": [_TEXT, _NUMBER, _list({"type": ["string", "number"]})],
}
_INFO: Final[Schema] = _object("gradewire_status gradewire_reason gradewire_answer gradewire_line gradewire_digest") | {
    "additionalProperties": _TEXT
}
_MEANS: Final[Schema] = _OBJECT | {"additionalProperties": _NUMBER}

PAGE_SCHEMAS: Final[dict[str, Schema]] = {
    "PageAccess": _object(
        "token",
        token={
            "enum": ["none", "known", "needed", "unknown"],
            "description": "none: the server asks for no token; needed: it does, and there is none; unknown: the "
            "server does not know it.",
        },
        scoring=_described(_TEXT, "Why the token is not good for scoring; empty where it is."),
        figures=_described(_TEXT, "Why it is not good for Monitoring.Snapshot; empty where it is."),
        report=_object("available maxBytes", available={"type": "boolean"}, maxBytes={"type": "integer"}),
    ),
    "ScoredRow": _object(
        "row scores",
        row=_described(_OBJECT, "As a file of gradewire agree has it, with a label."),
        scores=_OBJECT | {"additionalProperties": _OBJECT, "description": "By metric, as gradewire score writes them."},
    ),
}
SCHEMAS: Final[dict[str, Schema]] = {
    "ChatRequest": _object(
        "messages",
        model=_described(_TEXT, "A judge of GET /v1/models; default: the server's own."),
        messages=_list(_MESSAGE, minItems=1, maxItems=256),
        max_tokens=_TOKENS,
        max_completion_tokens=_TOKENS,
        stop={"oneOf": [_TEXT, _list(_TEXT, maxItems=4)]},
        temperature={"const": 0},
    ),
    "ChatCompletion": _object(
        "id object created model choices",
        id=_TEXT,
        object={"const": "chat.completion"},
        created={"type": "integer"},
        model=_TEXT,
        system_fingerprint=_described(_TEXT, "Begin of the judge's digest."),
        choices=_list(_OBJECT),
        usage=_OBJECT,
    ),
    "JudgeModels": _object("object data"),
    "SystemOneRequest": _object(
        "state questions",
        model=_MODEL,
        state={"description": "A text, or a value of JSON.", "not": {"type": "null"}},
        questions=_OBJECT
        | {"additionalProperties": _SYSTEM_ONE_QUESTION, "minProperties": 1, "maxProperties": MAX_QUESTIONS},
    ),
    "SystemOneReply": _object("model answers usage", model=_TEXT, answers=_OBJECT, usage=_USAGE),
    "DecisionsRequest": _object(
        "input questions",
        model=_MODEL,
        input={"oneOf": [_TEXT, _list(_OBJECT)]},
        questions=_list(_OPENAI_QUESTION, minItems=1, maxItems=MAX_QUESTIONS),
    ),
    "DecisionsReply": _object("model answers usage", model=_TEXT, answers=_list(_OBJECT), usage=_USAGE),
    "OpenRlhfPost": _object(
        "query prompts labels",
        query=_described(_list(_TEXT), "Each holds its prompt and the completion."),
        prompts=_list(_TEXT),
        labels=_list(_ANSWERS),
    ),
    "OpenRlhfReply": _object(
        "rewards scores extra_logs gradewire",
        rewards=_list(_NUMBER),
        scores=_list(_NUMBER),
        extra_logs=_OBJECT,
        gradewire=_list(_INFO),
    ),
    "SlimePost": _object(
        "prompt response label", prompt={"oneOf": [_TEXT, _list(_OBJECT)]}, response=_TEXT, label=_ANSWERS
    ),
    "SlimeReply": {"type": ["number", "object"], "description": "An object where rewards_slime_key names its member."},
    "GymVerify": _object(
        "responses_create_params response",
        responses_create_params=_described(_OBJECT, "What was asked: input is the prompt."),
        response=_object("output", output=_list(_OBJECT)),
        expected_answer=_ANSWERS,
    ),
    "GymVerified": _described(
        _object("reward gradewire", reward=_NUMBER, gradewire=_INFO),
        "The request's members, and these. With mask_sample the reward is no measurement.",
    ),
    "GymSession": _OBJECT,
    "GymRewards": _object(
        "verify_responses",
        verify_responses=_list(_object("reward", reward=_NUMBER, _ng_task_index={"type": "integer"})),
    ),
    "GymMetrics": _object(
        "group_level_metrics agent_metrics key_metrics",
        group_level_metrics=_list(_MEANS),
        agent_metrics=_MEANS,
        key_metrics=_MEANS,
    ),
}
_NO_REWARD: Final[Schema] = {
    "description": "A problem: a sample has no reward, and the same post would not be given one.",
    "content": {MEDIA_TYPE: {"schema": reference("Problem")}},
}


_REWARD: Final[Schema] = {
    "tags": ["rewards"],
    "parameters": [{"$ref": "#/components/parameters/Timeout"}, {"$ref": "#/components/parameters/RequestId"}],
}


def endpoint_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """Return the paths without a gRPC twin; `problems` are the answers of calls that fail."""
    decision = "Typed questions about a state, answered with probabilities."
    posts = {
        CHAT_PATH: ("chat", "What a judge says next in a chat.", "ChatRequest", "ChatCompletion"),
        SYSTEM_ONE_PATH: ("systemOne", decision, "SystemOneRequest", "SystemOneReply"),
        DECISIONS_PATH: ("decisions", decision, "DecisionsRequest", "DecisionsReply"),
    }
    scored_posts = {
        OPENRLHF_PATH: ("openrlhf", "Rewards for OpenRLHF.", "OpenRlhfPost", "OpenRlhfReply"),
        SLIME_PATH: ("slime", "The reward of a sample for slime.", "SlimePost", "SlimeReply"),
        VERIFY_PATH: ("verify", "The reward of a rollout for NeMo Gym.", "GymVerify", "GymVerified"),
    }
    gym_posts = {
        SEED_PATH: ("seedSession", "Begins a session of NeMo Gym.", "GymSession", "GymSession"),
        AGGREGATE_PATH: ("aggregateMetrics", "Means of rewards for NeMo Gym.", "GymRewards", "GymMetrics"),
    }
    scored = {**problems, "422": _NO_REWARD}
    return {
        **{path: {"post": _post(*post, problems)} for path, post in posts.items()},
        **{path: {"post": _post(*post, scored) | _REWARD} for path, post in scored_posts.items()},
        **{path: {"post": _post(*post, problems) | _REWARD} for path, post in gym_posts.items()},
        MODELS_PATH: {"get": _operation("judges", "The judges that can be asked.", _json("JudgeModels"), problems)},
    }


def page_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """Return the paths of the page; `problems` are the answers of calls that fail."""
    html = {"text/html": {"schema": _TEXT}}
    rows = {"application/x-ndjson": {"schema": _TEXT, "x-item-schema": reference("ScoredRow")}}
    access = "What the caller's token is good for; 200 also where it is good for nothing."
    report = "The report of gradewire agree over rows with labels and scores, a row a line."
    body = {"requestBody": {"required": True, "content": rows}}
    return {
        "/": {"get": _operation("page", "The page for people.", html, {})},
        ACCESS_PATH: {"get": _operation("access", access, _json("PageAccess"), problems)},
        REPORT_PATH: {"post": _operation("report", report, html, problems) | body},
    }


def _post(name: str, summary: str, request: str, reply: str, others: Schema) -> Schema:
    body = {"requestBody": {"required": True, "content": _json(request)}}
    return _operation(name, summary, _json(reply), others) | body


def _operation(name: str, summary: str, content: Schema, others: Schema) -> Schema:
    reply = {"description": "The reply.", "content": content}
    return {"operationId": name, "summary": summary, "responses": {"200": reply, **others}}


def _json(schema: str) -> Schema:
    return {"application/json": {"schema": reference(schema)}}
