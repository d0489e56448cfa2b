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


@pytest.mark.parametrize(
    ("target", "references"),
    [
        ("3 + 5 = <<3+5=8>>8\n#### 8", "8"),
        ("He has 1,000.\n#### 1,500 \n", "1,500"),
        ("#### Notes", "#### Notes"),
        ("first\n#### a\nsecond", "first\n#### a\nsecond"),
        ("nothing\n####", "nothing\n####"),
        ("C#### 4", "C#### 4"),
    ],
)
def test_of_a_worked_solution_the_answer_at_its_end_is_right(tmp_path: Path, target: str, references: str) -> None:
    """GSM8K's own target is the whole solution: "8" had lm-eval's exact_match 1 and ours 0."""
    fields = read(tmp_path, target=target, filtered_resps=["8"]).fields or {}
    assert (fields["references"], fields["target"]) == (references, target)


@pytest.mark.parametrize(
    "options",
    [
        {"options": ["owl", "swan", "ox"]},
        {"choices": {"A": "owl", "B": "swan", "C": "ox"}},
        {"choices": {"text": ["owl", "swan", "ox"], "label": ["A", "B", "C"]}},
    ],
)
@pytest.mark.parametrize(
    ("answer", "prediction"), [("B", "swan"), ("(a)", "owl"), ("[invalid]", "[invalid]"), ("E", "E")]
)
def test_letters_that_a_model_wrote_become_the_texts_of_the_document_s_choices(
    tmp_path: Path, options: dict[str, Any], answer: str, prediction: str
) -> None:
    doc = {"text": "Which flies?", **options}
    fields = read(tmp_path, doc=doc, target="B", filtered_resps=[answer]).fields or {}
    assert (fields["references"], fields["prediction"]) == ("swan", prediction)
    assert fields["choices"] == ["owl", "swan", "ox"]


def test_a_letter_is_a_letter_where_the_target_is_none(tmp_path: Path) -> None:
    fields = read(tmp_path, doc={"text": "Vitamin?", "options": ["x", "y"]}, target="C1", filtered_resps=["A"]).fields
    assert fields is not None
    assert (fields["references"], fields["prediction"], "choices" in fields) == ("C1", "A", False)


def test_a_letter_that_is_a_choice_itself_is_that_choice(tmp_path: Path) -> None:
    doc = {"text": "Which vitamin?", "choices": ["C", "D", "A"]}
    fields = read(tmp_path, doc=doc, target="C", filtered_resps=["vitamin C"]).fields or {}
    assert (fields["references"], fields["prediction"]) == ("C", "vitamin C")


@pytest.mark.parametrize(
    ("labels", "references"),
    [([1, 1, 0], ["good", "fine"]), ([0, 0, 0], ["good"]), ([1, 0], ["good"]), ([1, "x", []], ["good"])],
)
def test_all_choices_that_a_document_marks_are_right(tmp_path: Path, labels: Any, references: list[str]) -> None:
    """TruthfulQA's mc2 names the first one as its target, and several are true."""
    offered = [" good", " fine", " bad"]
    fields = read(
        tmp_path,
        doc={"question": "Q?", "mc2_targets": {"choices": ["good", "fine", "bad"], "labels": labels}},
        target="0",
        arguments={f"gen_args_{place}": {"arg_0": "Q?", "arg_1": text} for place, text in enumerate(offered)},
        resps=[[["-1.0", "False"]] for _ in offered],
        filtered_resps=[["-2.0", "False"], ["-1.0", "False"], ["-3.0", "False"]],
    ).fields
    assert fields is not None
    assert (fields["references"], fields["prediction"]) == (references, "fine")


def test_a_task_that_checks_instructions_has_no_reference(tmp_path: Path) -> None:
    """IFEval's target is 0, which was the reference of every answer."""
    doc = {"prompt": "Write in capitals.", "instruction_id_list": ["a:b"], "kwargs": [{}]}
    assert "references" not in (read(tmp_path, doc=doc, target="0").fields or {})


def test_the_prompt_that_lists_choices_is_looked_at(tmp_path: Path) -> None:
    prompt = "Which?\nA. pear\nB. brick\nAnswer:"
    fields = read(
        tmp_path,
        target="1",
        arguments={f"gen_args_{place}": {"arg_0": prompt, "arg_1": f" {letter}"} for place, letter in enumerate("AB")},
        filtered_resps=[["-1.0", "False"], ["-2.0", "False"]],
    ).fields
    assert fields is not None
    assert (fields["references"], fields["prediction"]) == (["brick"], "pear")


def test_of_drop_the_answers_of_the_document_are_right(tmp_path: Path) -> None:
    """lm-eval logs the names of the fields of its object `answer` as the target."""
    doc = {"question": "Who?", "answer": {"number": "", "spans": ["Ann", "Bo"]}, "answers": [["Ann", "Bo"], ["both"]]}
    fields = read(tmp_path, doc=doc, target="number,spans").fields or {}
    assert fields["references"] == ["Ann, Bo", "both"]
    assert (read(tmp_path, doc=doc, target="number").fields or {})["references"] == "number"
    assert "references" not in (read(tmp_path, doc={"a": {"x": 1, "y": 2}}, target="x,y").fields or {})


def test_the_second_round_of_mutual_information_chooses_nothing(tmp_path: Path) -> None:
    """It asks for the same choices without the question, and likes a common word best."""
    asked = [("Q?", " owl"), ("Q?", " swan"), ("", " owl"), ("", " swan")]
    fields = read(
        tmp_path,
        target="0",
        arguments={f"gen_args_{place}": {"arg_0": one, "arg_1": two} for place, (one, two) in enumerate(asked)},
        filtered_resps=[["-2.0", "False"], ["-3.0", "False"], ["-9.0", "False"], ["-1.0", "False"]],
    ).fields
    assert fields is not None
    assert (fields["choices"], fields["prediction"]) == (["owl", "swan"], "owl")


def test_of_fields_whose_names_differ_in_capitals_the_first_counts(tmp_path: Path) -> None:
    fields = read(tmp_path, doc={"Question": "First?", "question": "Second?"}).fields or {}
    assert fields["question"] == "First?"
