"""Samples that lm-eval wrote: what becomes of each, as one reads them by hand."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.damaged_documents import check_rows, mangled

from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official.lm_eval import LOG, last_user_message, prompt_of, right_positions

LOGS = Path(__file__).parents[3] / "support/harness_logs/lm_eval"
SAMPLES = [json.loads(line) for path in sorted(LOGS.iterdir()) for line in path.read_text().splitlines()]


def log(task: str) -> str:
    return str(LOGS / f"samples_{task}_2026-11-24T08-00-00.000000.jsonl")


def read(path: str, filter_: str = "") -> list[Record]:
    return list(LOG.read(path, filter_))


def told(records: list[Record]) -> list[tuple[Any, ...]]:
    names = ("id", "question", "references", "prediction")
    return [tuple(record.fields.get(name) for name in names) for record in records if record.fields is not None]


def written(tmp_path: Path, *samples: Any) -> str:
    path = tmp_path / "samples_mine_2026-01-01T00-00-00.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return str(path)


def sample(**changes: Any) -> dict[str, Any]:
    """A sample of a free answer."""
    whole = {
        "doc_id": 0,
        "doc": {"question": "Who?", "answers": ["Ada", "A. L."]},
        "target": "Ada",
        "arguments": {"gen_args_0": {"arg_0": "Q: Who?\nA:", "arg_1": {"until": ["\n"]}}},
        "resps": [[" Ada "]],
        "filtered_resps": [" Ada "],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": 1.0,
    }
    return {name: value for name, value in (whole | changes).items() if value is not ...}


def test_free_answers_have_their_question_from_the_doc_and_their_list_of_targets() -> None:
    records = read(log("gw_facts"))
    assert told(records) == [
        ("gw_facts/0", "What goes round the Earth?", ["the Moon", "our Moon"], "The Moon"),
        ("gw_facts/1", "How many legs has a spider?", ["8", "eight"], "eight legs"),
        ("gw_facts/2", "What is steel mostly made of?", ["iron"], "Mostly carbon."),
    ]
    first = records[0].fields or {}
    kept = {"task": "gw_facts", "filter": "none", "doc_id": 0, "raw_response": " The Moon", "lm_eval_exact_match": 0.0}
    assert first.items() >= {**kept, "prompt": "Q: What goes round the Earth?\nA:", "doc.topic": "sky"}.items()


def test_every_filter_gives_rows_and_one_can_be_chosen() -> None:
    apples, eggs = "Ann has 3 apples and buys 4. How many has she?", "A box holds 6 eggs. How many do 5 boxes hold?"
    strict = [("gw_sums/0/strict", apples, "7", "7"), ("gw_sums/1/strict", eggs, "30", "[invalid]")]
    flexible = [("gw_sums/0/flexible", apples, "7", "7"), ("gw_sums/1/flexible", eggs, "30", "30")]
    every = [
        ("gw_sums/0/every/1", apples, "7", "3 and 4 make 7. The answer is 7"),
        ("gw_sums/0/every/2", apples, "7", "It is 7"),
        ("gw_sums/1/every/1", eggs, "30", "6 times 5 is 30, so 30 eggs"),
        ("gw_sums/1/every/2", eggs, "30", "The answer is 11"),
    ]
    records = read(log("gw_sums"))
    assert told(records) == [*strict, *flexible, *every]
    assert [record.index for record in records] == list(range(8))
    assert [record.position for record in records[4:6]] == ["line 5 answer 1", "line 5 answer 2"]
    assert [(record.fields or {})["raw_response"] for record in records[1::6]] == [
        "6 times 5 is 30, so 30 eggs",
        "The answer is 11",
    ]
    chosen = read(log("gw_sums"), "flexible")
    assert told(chosen) == flexible
    assert [record.index for record in chosen] == [0, 1]
    with pytest.raises(
        InputError, match=r"no sample has filter loose\. Use --filter with one of strict, flexible, every"
    ):
        read(log("gw_sums"), "loose")


def test_of_choices_the_likeliest_is_the_answer_and_letters_become_texts() -> None:
    assert told(read(log("gw_choices"))) == [
        ("gw_choices/0", "Which of these is a metal?", ["iron"], "iron"),
        ("gw_choices/1", "Which of these can fly?", ["an owl"], "an owl"),
        ("gw_choices/2", "Which of these is cold?", ["ice"], "steam"),
    ]
    records = read(log("gw_letters"))
    assert told(records) == [
        ("gw_letters/0", "Which one is a fruit?", ["pear"], "pear"),
        ("gw_letters/1", "Which one is a tool?", ["hammer"], "cloud"),
    ]
    assert (records[0].fields or {})["choices"] == ["pear", "brick", "shoe", "nail"]


def test_log_likelihoods_of_given_texts_are_no_answers() -> None:
    (ending,) = read(log("gw_endings"))
    assert (ending.fields, ending.problem) == (
        None,
        "is the log-likelihood of a single continuation, not an answer",
    )
    for gap in read(log("gw_gaps")):
        assert gap.fields is None
        assert "asks which prompt fits" in gap.problem


@pytest.mark.parametrize(
    ("target", "references"),
    [
        ("1", ["iron"]),
        ("iron", ["iron"]),
        ("[0, 2]", ["oak", "wool"]),
        ([0, 1], ["oak", "iron"]),
        ("gold", None),
        ("7", None),
        (None, None),
    ],
)
def test_what_is_right_is_named_by_place_or_text(tmp_path: Path, target: Any, references: Any) -> None:
    offered = {f"gen_args_{n}": {"arg_0": "?", "arg_1": f" {text}"} for n, text in enumerate(("oak", "iron", "wool"))}
    chosen = sample(target=target, arguments=offered, filtered_resps=[["-3.0", "False"], ["-1", "True"], ["-2", "x"]])
    (record,) = read(written(tmp_path, chosen))
    assert (record.fields or {})["prediction"] == "iron"
    assert (record.fields or {}).get("references") == references


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"target": ""}, ("mine/0", "Who?", ["Ada", "A. L."], "Ada")),
        ({"target": "[]", "doc": {"Question": "Who?"}}, ("mine/0", "Who?", None, "Ada")),
        ({"target": "[0, 1]"}, ("mine/0", "Who?", "[0, 1]", "Ada")),
        ({"doc": {"title": "x"}}, ("mine/0", "Q: Who?\nA:", "Ada", "Ada")),
        ({"arguments": [["Who now?", {"until": []}]], "doc": {}}, ("mine/0", "Who now?", "Ada", "Ada")),
        ({"arguments": ...}, ("mine/0", "Who?", "Ada", "Ada")),
        ({"filter": ..., "doc_id": ...}, ("mine/0", "Who?", "Ada", "Ada")),
        ({"resps": ...}, ("mine/0", "Who?", "Ada", "Ada")),
    ],
)
def test_what_stands_elsewhere_is_found(tmp_path: Path, changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert told(read(written(tmp_path, sample(**changes)))) == [expected]


def test_a_log_likelihood_beside_a_free_answer_is_no_answer(tmp_path: Path) -> None:
    asked = {"gen_args_0": {"arg_0": "Who?", "arg_1": {}}, "gen_args_1": {"arg_0": "Who?", "arg_1": " unanswerable"}}
    answered = sample(arguments=asked, filtered_resps=["Ada", ["-4.0", "False"]], resps=[["Ada"], [["-4.0", "False"]]])
    assert told(read(written(tmp_path, answered))) == [("mine/0", "Who?", "Ada", "Ada")]


def test_what_is_no_sample_is_named_and_its_neighbours_are_read(tmp_path: Path) -> None:
    choice = {"gen_args_0": {"arg_0": "?", "arg_1": "a"}, "gen_args_1": {"arg_0": "?", "arg_1": "b"}}
    lacking = sample(arguments=choice, filtered_resps=[["x"], ["-1"]])
    path = written(tmp_path, {"a": 1}, sample(), lacking, sample(filtered_resps=[]), 7, sample(doc_id=5))
    records = read(path)
    assert told(records) == [("mine/0", "Who?", "Ada", "Ada"), ("mine/5", "Who?", "Ada", "Ada")]
    assert [(record.position, record.problem) for record in records if record.fields is None] == [
        ("line 1", "lacks doc or filtered_resps (its fields: a)"),
        ("line 3", "has a choice without a log-likelihood"),
        ("line 4", "has no answer in its filtered_resps"),
        ("line 5", "must be an object, not int"),
    ]


def test_packed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "samples_gw_facts_2026-11-24T08-00-00.000000.jsonl.gz"
    path.write_bytes(gzip.compress(Path(log("gw_facts")).read_bytes()))
    assert told(read(str(path))) == told(read(log("gw_facts")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"index": 1, "prediction": "x", "question": "y"}\n', "a log from vlmevalkit. Use --from vlmevalkit"),
        ('{"a": 1}\n', "is not a log from lm-eval: line 1 lacks doc or filtered_resps"),
        ('{\n "eval": {}\n}\n', "looks like a JSON log from inspect"),
        ("plain words\n", "line 1 is not JSON"),
    ],
)
def test_files_of_others_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read(str(path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(SAMPLES).flatmap(mangled), st.integers(0, 5000))
def test_mangled_samples_never_stop_the_others(tmp_path: Path, broken: Any, cut: int) -> None:
    path = Path(written(tmp_path, broken, SAMPLES[-1]))
    check_rows(LOG.read, path)
    path.write_bytes(path.read_bytes()[:cut])
    check_rows(LOG.read, path)


CHAT = json.dumps(
    [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Which first?"},
        {"role": "assistant", "content": "That."},
        {"role": "user", "content": "And then?"},
    ]
)


def read_lm_eval_forms(tmp_path: Path, **changes: Any) -> Record:
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
    (record,) = LOG.read(str(path))
    return record


@pytest.mark.parametrize("target", ["Is it?", ""])
def test_a_text_that_was_only_weighed_is_no_answer(tmp_path: Path, target: str) -> None:
    """Its log-likelihood was scored as what the model said."""
    record = read_lm_eval_forms(
        tmp_path,
        target=target,
        arguments={"gen_args_0": {"arg_0": "Is it?"}},
        resps=[["-4.0"]],
        filtered_resps=["-4.0"],
    )
    assert record.fields is None
    assert record.problem == "is a log-likelihood, not an answer"


def test_a_task_without_a_target_has_no_reference_named_none(tmp_path: Path) -> None:
    assert "references" not in (read_lm_eval_forms(tmp_path, target="None").fields or {})
    answers = read_lm_eval_forms(tmp_path, target="None", doc={"text": "Who?", "answers": ["Ada"]}).fields or {}
    assert answers["references"] == ["Ada"]
    said = read_lm_eval_forms(tmp_path, target="None", doc={"text": "Who?", "solution": "None"}).fields or {}
    assert said["references"] == "None"


def test_the_question_of_a_chat_is_what_the_user_said_last(tmp_path: Path) -> None:
    request = {"arg_0": [CHAT], "arg_1": {"until": []}}
    fields = read_lm_eval_forms(tmp_path, arguments={"gen_args_0": request}).fields or {}
    assert (fields["question"], fields["prompt"]) == ("And then?", CHAT)


@pytest.mark.parametrize("prompt", ["Q: Who?", "[{ no JSON", "[" * 9, "[{}]", '[{"role": "user", "content": [1]}]'])
def test_other_prompts_are_the_question_as_they_are(prompt: str) -> None:
    assert last_user_message(prompt) == prompt


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
    assert right_positions(target, offered, 0, None) == right


@pytest.mark.parametrize(
    ("likeliest", "accuracy", "right"),
    [(0, 1.0, [0]), (1, 1.0, [1]), (0, 0.0, [1]), (1, 0.0, [0]), (2, 0.0, [1]), (0, None, [1])],
)
def test_lm_eval_s_own_accuracy_tells_a_number_from_a_choice_that_is_one(
    likeliest: int, accuracy: float | None, right: list[int]
) -> None:
    assert right_positions("1", ["1", "2", "3"], likeliest, accuracy) == right


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
    fields = read_lm_eval_forms(tmp_path, target=target, filtered_resps=["8"]).fields or {}
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
    fields = read_lm_eval_forms(tmp_path, doc=doc, target="B", filtered_resps=[answer], resps=[[answer]]).fields or {}
    assert (fields["references"], fields["prediction"]) == ("swan", prediction)
    assert fields["choices"] == ["owl", "swan", "ox"]


def test_the_whole_answer_to_a_question_with_options_is_graded_and_not_what_the_filter_extracted(
    tmp_path: Path,
) -> None:
    doc = {"text": "Which flies?", "options": ["owl", "swan", "ox"]}
    said = "(C) is wrong, because oxen walk. The answer is B."
    fields = read_lm_eval_forms(tmp_path, doc=doc, target="B", filtered_resps=["C"], resps=[[said]]).fields or {}
    assert (fields["prediction"], fields["extracted"], fields["raw_response"]) == (said, "ox", said)


def test_a_letter_is_a_letter_where_the_target_is_none(tmp_path: Path) -> None:
    fields = read_lm_eval_forms(
        tmp_path, doc={"text": "Vitamin?", "options": ["x", "y"]}, target="C1", filtered_resps=["A"]
    ).fields
    assert fields is not None
    assert (fields["references"], fields["prediction"], "choices" in fields) == ("C1", "A", False)


def test_a_letter_that_is_a_choice_itself_is_that_choice(tmp_path: Path) -> None:
    doc = {"text": "Which vitamin?", "choices": ["C", "D", "A"]}
    fields = read_lm_eval_forms(tmp_path, doc=doc, target="C", filtered_resps=["vitamin C"]).fields or {}
    assert (fields["references"], fields["prediction"]) == ("C", "vitamin C")


@pytest.mark.parametrize(
    ("labels", "references"),
    [([1, 1, 0], ["good", "fine"]), ([0, 0, 0], ["good"]), ([1, 0], ["good"]), ([1, "x", []], ["good"])],
)
def test_all_choices_that_a_document_marks_are_right(tmp_path: Path, labels: Any, references: list[str]) -> None:
    """TruthfulQA's mc2 names the first one as its target, and several are true."""
    offered = [" good", " fine", " bad"]
    fields = read_lm_eval_forms(
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
    assert "references" not in (read_lm_eval_forms(tmp_path, doc=doc, target="0").fields or {})


def test_the_prompt_that_lists_choices_is_looked_at(tmp_path: Path) -> None:
    prompt = "Which?\nA. pear\nB. brick\nAnswer:"
    fields = read_lm_eval_forms(
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
    fields = read_lm_eval_forms(tmp_path, doc=doc, target="number,spans").fields or {}
    assert fields["references"] == ["Ann, Bo", "both"]
    assert (read_lm_eval_forms(tmp_path, doc=doc, target="number").fields or {})["references"] == "number"
    assert "references" not in (read_lm_eval_forms(tmp_path, doc={"a": {"x": 1, "y": 2}}, target="x,y").fields or {})


def test_the_second_round_of_mutual_information_chooses_nothing(tmp_path: Path) -> None:
    """It asks for the same choices without the question, and likes a common word best."""
    asked = [("Q?", " owl"), ("Q?", " swan"), ("", " owl"), ("", " swan")]
    fields = read_lm_eval_forms(
        tmp_path,
        target="0",
        arguments={f"gen_args_{place}": {"arg_0": one, "arg_1": two} for place, (one, two) in enumerate(asked)},
        filtered_resps=[["-2.0", "False"], ["-3.0", "False"], ["-9.0", "False"], ["-1.0", "False"]],
    ).fields
    assert fields is not None
    assert (fields["choices"], fields["prediction"]) == (["owl", "swan"], "owl")


def test_of_fields_whose_names_differ_in_capitals_the_first_counts(tmp_path: Path) -> None:
    fields = read_lm_eval_forms(tmp_path, doc={"Question": "First?", "question": "Second?"}).fields or {}
    assert fields["question"] == "First?"
