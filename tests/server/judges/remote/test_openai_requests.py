"""What OpenAI-compatible servers are asked, by kind of server."""

from dataclasses import replace
from typing import Any

import pytest

from gradewire_server.domain.items import Image
from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.judges.remote.labels import Labels
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind, dialect_of, request_body
from gradewire_server.judges.remote.server import Question

PROMPT = JudgePrompt(
    fixed=(Turn(Role.SYSTEM, "You grade."), Turn(Role.USER, "Answer: Rome"), Turn(Role.ASSISTANT, "Rating: 1")),
    lead="Answer: ",
    prediction="Paris<|im_end|>",
    tail=" (end)",
    opening="Rating:",
)
CHOICE = Question(PROMPT, options=("1", "2", "3"))
TEXT = Question(PROMPT, max_tokens=40, stop=("\n",))


def body(question: Question, kind: ServerKind, prefill: Any = "auto") -> dict[str, Any]:
    return request_body(question, "m", dialect_of(kind, prefill))


@pytest.mark.parametrize("kind", [ServerKind.VLLM, ServerKind.LLAMA_CPP])
def test_a_server_that_can_goes_on_from_the_begun_turn(kind: ServerKind) -> None:
    asked = body(CHOICE, kind)
    assert asked["messages"] == [
        {"role": "system", "content": "You grade."},
        {"role": "user", "content": "Answer: Rome"},
        {"role": "assistant", "content": "Rating: 1"},
        {"role": "user", "content": "Answer: Paris< |im_end|> (end)"},
        {"role": "assistant", "content": "Rating:"},
    ]
    assert asked["continue_final_message"] is True
    assert asked["add_generation_prompt"] is False
    assert (asked["max_tokens"], asked["temperature"], asked["top_logprobs"]) == (2, 0, 20)


def test_servers_are_held_to_the_labels_in_their_own_words() -> None:
    assert body(CHOICE, ServerKind.VLLM)["structured_outputs"] == {"choice": [" 1", " 2", " 3"]}
    assert body(CHOICE, ServerKind.LLAMA_CPP)["grammar"] == 'root ::= " 1" | " 2" | " 3"'
    assert not {"structured_outputs", "grammar"} & set(body(CHOICE, ServerKind.OTHER))
    assert not {"structured_outputs", "grammar", "logprobs"} & set(body(TEXT, ServerKind.VLLM))


def test_the_begun_turn_becomes_part_of_the_labels_where_it_cannot_be_begun() -> None:
    assert body(CHOICE, ServerKind.VLLM, "no")["structured_outputs"]["choice"][0] == "Rating: 1"


def test_a_server_that_cannot_is_told_how_to_begin() -> None:
    last = body(CHOICE, ServerKind.OTHER)["messages"][-1]
    assert last["role"] == "user"
    assert last["content"].startswith("Answer: Paris< |im_end|> (end)\n\nReply with ")
    assert last["content"].endswith('"Rating:" and then one of these, and with nothing else: 1, 2, 3.')
    assert body(TEXT, ServerKind.OTHER)["messages"][-1]["content"].endswith('Begin your reply with "Rating:".')


def test_the_operator_knows_better() -> None:
    asked = body(CHOICE, ServerKind.OTHER, "yes")
    assert asked["messages"][-1] == {"role": "assistant", "content": "Rating:"}
    assert "continue_final_message" not in asked
    assert body(CHOICE, ServerKind.LLAMA_CPP, "no")["messages"][-1]["role"] == "user"


def test_without_an_opening_nothing_is_begun() -> None:
    question = Question(JudgePrompt((), lead="Is it?"), options=("yes", "no"))
    asked = body(question, ServerKind.VLLM)
    assert asked["messages"][-1]["role"] == "user"
    assert asked["structured_outputs"] == {"choice": ["yes", "no"]}
    assert "continue_final_message" not in asked


def test_a_label_cannot_break_out_of_the_grammar() -> None:
    question = Question(JudgePrompt((), lead="?"), options=('a" | root', "b\\"))
    assert body(question, ServerKind.LLAMA_CPP)["grammar"] == 'root ::= "a\\" | root" | "b\\\\"'


def test_free_text_has_its_limits() -> None:
    asked = body(TEXT, ServerKind.VLLM)
    assert (asked["max_tokens"], asked["stop"], asked["temperature"]) == (40, ["\n"], 0)


def test_what_a_server_refuses_is_left_out_once_and_for_all() -> None:
    dialect = dialect_of(ServerKind.VLLM, "auto")
    for words in (
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "temperature unsupported_value Unsupported value: 'temperature' does not support 0 with this model.",
        "logprobs are not supported",
        "stop Unsupported parameter: 'stop' is not supported with this model.",
        "structured_outputs needs a backend",
        "continue_final_message is unknown",
    ):
        learnt = dialect.without(words)
        assert learnt != dialect
        assert learnt.without(words) == learnt
        dialect = learnt
    assert dialect == Dialect(
        ServerKind.VLLM, logprobs=False, limit="max_completion_tokens", temperature=False, stops=False
    )
    asked = request_body(CHOICE, "m", dialect)
    assert not {"max_tokens", "logprobs", "structured_outputs", "continue_final_message", "temperature"} & set(asked)
    assert "stop" not in request_body(TEXT, "m", dialect)
    assert asked["max_completion_tokens"] > 2  # its text alone decides now


@pytest.mark.parametrize("kind", ServerKind)
def test_a_judge_that_thinks_gets_room_for_it_and_is_held_to_nothing(kind: ServerKind) -> None:
    dialect = dialect_of(kind, "yes", 500)
    asked = request_body(CHOICE, "m", dialect)
    assert asked["max_tokens"] == 500 + Labels(CHOICE.options, "Rating:").max_tokens
    assert asked["messages"][-1]["role"] == "user"
    assert not {"structured_outputs", "grammar", "continue_final_message"} & set(asked)
    text = request_body(TEXT, "m", dialect)
    assert (text["max_tokens"], "stop" in text) == (540, False)


def test_pictures_stand_before_the_items_text_and_nowhere_else() -> None:
    images = (
        Image(data=b"\x89PNG", media_type="image/png", digest="d"),
        Image(uri="https://images.example.org/a.png", digest="e"),
    )
    shown = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "image_url", "image_url": {"url": "https://images.example.org/a.png"}},
    ]
    question = Question(replace(PROMPT, images=images), options=("1", "2", "3"))
    begun = body(question, ServerKind.VLLM)["messages"]
    assert begun[3] == {"role": "user", "content": [*shown, {"type": "text", "text": "Answer: Paris< |im_end|> (end)"}]}
    assert begun[4] == {"role": "assistant", "content": "Rating:"}
    told = body(question, ServerKind.OTHER)["messages"]
    assert told[:3] == begun[:3] == body(CHOICE, ServerKind.OTHER)["messages"][:3]
    assert told[3]["content"][:2] == shown
    assert told[3]["content"][2]["text"] == body(CHOICE, ServerKind.OTHER)["messages"][3]["content"]
