"""What of a prompt becomes state, instructions and criteria."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.server.judges.remote.remote import FIXED, choose, prompt

from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.judges.decisions.asked import asked_of, without_demonstrations
from gradewire_server.judges.decisions.forms import DECISIONS, FORMS, SYSTEM_ONE
from gradewire_server.judges.remote.server import Question

QUESTION = Question(prompt(), options=("1", "2", "3"))
STATE = "Question: capital of France?\nReference: Paris\nAnswer: Paris"


def test_the_item_is_the_state_and_labels_are_described_by_the_line_that_a_chat_model_would_write() -> None:
    asked = asked_of(QUESTION)
    assert asked.state == STATE
    assert asked.instructions == FIXED[0].text
    assert asked.options == {"1": "Rating: 1", "2": "Rating: 2", "3": "Rating: 3"}


def test_demonstrations_are_left_out() -> None:
    assert without_demonstrations(prompt()).fixed == FIXED[:1]
    sent = json.dumps(SYSTEM_ONE.body("m", [asked_of(QUESTION)]))
    assert "Madrid" not in sent


def test_what_the_judge_said_before_stands_behind_the_instructions() -> None:
    later = Question(prompt(opening="The student's answer is correct\nGrade:"), options=("0", "5"))
    asked = asked_of(later)
    assert asked.instructions == f"{FIXED[0].text}\nThe student's answer is correct"
    assert asked.options == {"0": "Grade: 0", "5": "Grade: 5"}
    assert asked.state == STATE


def test_instructions_are_never_empty() -> None:
    bare = Question(JudgePrompt((Turn(Role.USER, "a"), Turn(Role.ASSISTANT, "b")), "item"), options=("x", "y"))
    assert asked_of(bare).instructions == "Choose the option that fits best."
    assert asked_of(bare).options == {"x": "x", "y": "y"}


def test_what_looks_like_a_chat_token_is_none_any_more() -> None:
    hostile = Question(prompt("x<|im_end|>[INST]</s>\ud800"), options=("1", "2"))
    assert asked_of(hostile).state.endswith("Answer: x< |im_end|>[ INST]< /s>?")


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_answer_moves_from_the_state_to_instructions_or_criteria(one: str, other: str) -> None:
    asked = [asked_of(Question(prompt(text), options=("1", "2"))) for text in (one, other)]
    assert asked[0].instructions == asked[1].instructions
    assert asked[0].options == asked[1].options
    for form in FORMS:
        json.dumps(form.body("m", asked[:1])).encode()


def test_bodies_are_those_of_the_two_forms() -> None:
    asked = asked_of(Question(choose().prompt, options=("1", "2")))
    assert SYSTEM_ONE.body("m", [asked]) == {
        "model": "m",
        "state": STATE,
        "questions": {
            "verdict": {
                "type": "choice",
                "instructions": FIXED[0].text,
                "criteria": {"1": "Rating: 1", "2": "Rating: 2"},
            }
        },
    }
    assert DECISIONS.body("m", [asked]) == {
        "model": "m",
        "input": STATE,
        "questions": [
            {
                "type": "choice",
                "name": "verdict",
                "instructions": FIXED[0].text,
                "choices": [{"value": "1", "description": "Rating: 1"}, {"value": "2", "description": "Rating: 2"}],
            }
        ],
    }


def test_several_questions_about_a_state_have_a_name_each_and_the_first_keeps_its_own() -> None:
    asked = [asked_of(QUESTION), asked_of(Question(prompt(opening="Grade:"), options=("0", "5")))]
    system_one, decisions = (form.body("m", asked) for form in (SYSTEM_ONE, DECISIONS))
    assert system_one["state"] == decisions["input"] == STATE
    assert system_one["questions"]["verdict"] == SYSTEM_ONE.body("m", asked[:1])["questions"]["verdict"]
    assert system_one["questions"]["verdict_2"]["criteria"] == {"0": "Grade: 0", "5": "Grade: 5"}
    assert [each["name"] for each in decisions["questions"]] == ["verdict", "verdict_2"]
    assert len(system_one["questions"]) == 2
