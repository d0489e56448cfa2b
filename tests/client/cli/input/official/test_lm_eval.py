"""Samples that lm-eval wrote: what becomes of each, as one reads them by hand."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.mangled import check_rows, mangled

from gradewire.cli.input.official.lm_eval import lm_eval_records
from gradewire.cli.input.record import Record
from gradewire.cli.problems import InputError

LOGS = Path(__file__).parents[4] / "support/harness_logs/lm_eval"
SAMPLES = [json.loads(line) for path in sorted(LOGS.iterdir()) for line in path.read_text().splitlines()]


def log(task: str) -> str:
    return str(LOGS / f"samples_{task}_2026-11-24T08-00-00.000000.jsonl")


def read(path: str, filter_: str = "") -> list[Record]:
    return list(lm_eval_records(path, filter_))


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
    assert [record.place for record in records[4:6]] == ["line 5 answer 1", "line 5 answer 2"]
    assert [(record.fields or {})["raw_response"] for record in records[1::6]] == [
        "6 times 5 is 30, so 30 eggs",
        "The answer is 11",
    ]
    chosen = read(log("gw_sums"), "flexible")
    assert told(chosen) == flexible
    assert [record.index for record in chosen] == [0, 1]
    with pytest.raises(InputError, match="no sample is of the filter loose; --filter can be strict, flexible, every"):
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
        "is the log-likelihood of one given text: there is no answer to grade",
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
    assert [(record.place, record.problem) for record in records if record.fields is None] == [
        ("line 1", "has no doc with filtered_resps (it has: a)"),
        ("line 3", "has a choice without a log-likelihood"),
        ("line 4", "has no answer in its filtered_resps"),
        ("line 5", "is not an object but int"),
    ]


def test_packed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "samples_gw_facts_2026-11-24T08-00-00.000000.jsonl.gz"
    path.write_bytes(gzip.compress(Path(log("gw_facts")).read_bytes()))
    assert told(read(str(path))) == told(read(log("gw_facts")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"index": 1, "prediction": "x", "question": "y"}\n', "looks like one of vlmevalkit: give --from vlmevalkit"),
        ('{"a": 1}\n', "is no log of lm-eval: line 1 has no doc with filtered_resps"),
        ('{\n "eval": {}\n}\n', "one JSON document of many lines, as inspect writes it"),
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
    check_rows(lm_eval_records, path)
    path.write_bytes(path.read_bytes()[:cut])
    check_rows(lm_eval_records, path)
