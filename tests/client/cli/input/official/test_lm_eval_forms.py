"""Forms of lm-eval 0.4.13 that its own runs showed: chats, truth values, choices that are numbers, texts that it only
weighs, tasks without a target.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from gradewire.cli.input.official.lm_eval import lm_eval_records
from gradewire.cli.input.official.lm_eval_forms import last_said, prompt_of, right_places
from gradewire.cli.input.record import Record

CHAT = json.dumps(
    [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Which first?"},
        {"role": "assistant", "content": "That."},
        {"role": "user", "content": "And then?"},
    ]
)


def read(tmp_path: Path, **changes: Any) -> Record:
    sample = {
        "doc_id": 0,
        "doc": {"text": "Who?"},
        "target": "Ada",
        "arguments": {"gen_args_0": {"arg_0": "Q: Who?", "arg_1": {"until": ["\n"]}}},
        "resps": [["Ada"]],
        "filtered_resps": ["Ada"],
        "filter": "none",
        "metrics": [],
    }
    path = tmp_path / "samples_t.jsonl"
    path.write_text(json.dumps(sample | changes))
    (record,) = lm_eval_records(str(path))
    return record


@pytest.mark.parametrize("target", ["Is it?", ""])
def test_a_text_that_was_only_weighed_is_no_answer(tmp_path: Path, target: str) -> None:
    """Its log-likelihood was scored as what the model said."""
    record = read(
        tmp_path,
        target=target,
        arguments={"gen_args_0": {"arg_0": "Is it?"}},
        resps=[["-4.0"]],
        filtered_resps=["-4.0"],
    )
    assert record.fields is None
    assert record.problem == "is the log-likelihood of a text: there is no answer to grade"


def test_a_task_without_a_target_has_no_reference_named_none(tmp_path: Path) -> None:
    assert "references" not in (read(tmp_path, target="None").fields or {})
    answers = read(tmp_path, target="None", doc={"text": "Who?", "answers": ["Ada"]}).fields or {}
    assert answers["references"] == ["Ada"]
    said = read(tmp_path, target="None", doc={"text": "Who?", "solution": "None"}).fields or {}
    assert said["references"] == "None"


def test_the_question_of_a_chat_is_what_the_user_said_last(tmp_path: Path) -> None:
    request = {"arg_0": [CHAT], "arg_1": {"until": []}}
    fields = read(tmp_path, arguments={"gen_args_0": request}).fields or {}
    assert (fields["question"], fields["prompt"]) == ("And then?", CHAT)


@pytest.mark.parametrize("prompt", ["Q: Who?", "[{ no JSON", "[" * 9, "[{}]", '[{"role": "user", "content": [1]}]'])
def test_other_prompts_are_the_question_as_they_are(prompt: str) -> None:
    assert last_said(prompt) == prompt


def test_a_request_without_a_text_has_no_prompt() -> None:
    assert [prompt_of(request) for request in ([], [[]], [None], [{"a": 1}], [["x"]], ["y"])] == [*[""] * 4, "x", "y"]


@pytest.mark.parametrize(
    ("target", "offered", "right"),
    [
        ("1", ["no", "yes"], [1]),
        ("[0, 2]", ["a", "b", "c"], [0, 2]),
        ([1], ["a", "b"], [1]),
        ("b", ["a", "b", "b"], [1]),
        ("1.0", ["no", "yes"], [1]),
        ("True", ["no", "yes"], [1]),
        ("False", ["no", "yes"], [0]),
        ("True", ["True", "False"], [0]),
        ("-100", ["a", "b"], []),
        ("7", ["a", "b"], []),
        ("None", ["a", "b"], []),
        ("1", ["3", "4"], [1]),
    ],
)
def test_what_is_right_is_named_in_many_ways(target: Any, offered: list[str], right: list[int]) -> None:
    assert right_places(target, offered, 0, None) == right


@pytest.mark.parametrize(
    ("likeliest", "accuracy", "right"),
    [(0, 1.0, [0]), (1, 1.0, [1]), (0, 0.0, [1]), (1, 0.0, [0]), (2, 0.0, [1]), (0, None, [1])],
)
def test_lm_eval_s_own_accuracy_tells_a_number_from_a_choice_that_is_one(
    likeliest: int, accuracy: float | None, right: list[int]
) -> None:
    assert right_places("1", ["1", "2", "3"], likeliest, accuracy) == right
