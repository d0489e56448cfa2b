"""Samples that lmms-eval wrote: what becomes of each, as one reads them by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.damaged_documents import check_rows, mangled

from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official.lmms_eval import LOG

LOGS = Path(__file__).parents[3] / "support/harness_logs/lmms_eval"
SAMPLES = [json.loads(line) for path in sorted(LOGS.iterdir()) for line in path.read_text().splitlines()]
LETTERS = str(LOGS / "20261124_080000_samples_gw_letters.jsonl")
PICTURES = str(LOGS / "20261124_080000_samples_gw_pictures.jsonl")


def read(path: str, filter_: str = "") -> list[Record]:
    return list(LOG.read(path, filter_))


def told(records: list[Record], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(record.fields.get(name) for name in names) for record in records if record.fields is not None]


def written(tmp_path: Path, *samples: Any) -> str:
    path = tmp_path / "20260101_000000_samples_mine.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return str(path)


def sample(**changes: Any) -> dict[str, Any]:
    whole = {"doc_id": 0, "target": "red", "filtered_resps": "Red", "input": "Which colour?", "exact_match": 0.0}
    return {name: value for name, value in (whole | changes).items() if value is not ...}


def test_questions_are_prompts_and_references_what_annotators_said() -> None:
    after = "\nAnswer the question using a single word or phrase."
    records = read(PICTURES)
    assert told(records, "id", "question", "references", "prediction", "category") == [
        ("gw_pictures/0", f"Which colour has the square?{after}", ["red", "red", "crimson"], "red", "what"),
        ("gw_pictures/1", f"Is the square blue?{after}", ["no", "no", "no"], "No", "yes/no"),
        ("gw_pictures/2", f"How many squares are there?{after}", ["1", "one", "1"], "one", "count"),
    ]
    assert told(records, "raw_response", "lmms_eval_exact_match", "task", "filter")[0] == (
        "<think>It looks red.</think>red",
        1.0,
        "gw_pictures",
        "1",
    )


def test_letters_become_the_texts_that_the_prompt_lists_and_filters_are_numbered() -> None:
    names = ("id", "references", "prediction", "raw_response", "filter")
    first = [
        ("gw_letters/0", "a square", "a square", "B", "1"),
        ("gw_letters/1", "dark", "I", "I", "1"),
    ]
    second = [
        ("gw_letters/0/filter 2", "a square", "a square", "B. a square", "2"),
        ("gw_letters/1/filter 2", "dark", "It is bright (B)", "It is bright (B)", "2"),
    ]
    records = read(LETTERS)
    assert told(records, *names) == [*first, *second]
    assert told(records, "choices")[0] == (["a circle", "a square", "a star"],)
    assert told(read(LETTERS, "2"), *names) == second
    with pytest.raises(InputError, match=r"no sample has filter 3\. Use --filter with one of 1, 2"):
        read(LETTERS, "3")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"target": "['a', 'b']"}, ("mine/0", "Which colour?", ["a", "b"], "Red")),
        ({"target": "[0, 1]"}, ("mine/0", "Which colour?", "[0, 1]", "Red")),
        ({"target": "None"}, ("mine/0", "Which colour?", None, "Red")),
        (
            {"doc": {"question": "Hue?", "answers": [{"answer": "red"}, {"answer": "rose"}]}},
            ("mine/0", "Hue?", [{"answer": "red"}, {"answer": "rose"}], "Red"),
        ),
        ({"submission": {"answers": ["x"]}}, ("mine/0", "Which colour?", "red", "Red")),
        ({"input": {"a": 1}}, ("mine/0", "", "red", "Red")),
        ({"doc_id": ...}, ("mine/0", "Which colour?", "red", "Red")),
    ],
)
def test_what_stands_elsewhere_is_found(tmp_path: Path, changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    (record,) = read(written(tmp_path, sample(**changes)))
    assert told([record], "id", "question", "references", "prediction") == [expected]


def test_several_answers_are_rows_and_log_likelihoods_none(tmp_path: Path) -> None:
    pairs = [["-1.0", "False"], ["-2.0", "True"]]
    records = read(
        written(
            tmp_path,
            sample(filtered_resps=["Red", "Blue"], resps=["Red!", "Blue!"]),
            sample(doc_id=1, filtered_resps=pairs),
            sample(doc_id=2, filtered_resps=["-1.0", "False"]),
            sample(doc_id=3, arguments=[]),
        )
    )
    assert told(records, "id", "prediction") == [("mine/0/1", "Red"), ("mine/0/2", "Blue")]
    assert [record.problem.split(",")[0] for record in records[2:]] == ["has log-likelihoods"] * 2 + ["has arguments"]


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    other = {"doc_id": 0, "doc": {}, "target": "", "filtered_resps": [], "arguments": {}}
    with pytest.raises(InputError, match=r"looks like a log from lm-eval\. Use --from lm-eval"):
        read(written(tmp_path, other))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(SAMPLES).flatmap(mangled), st.integers(0, 1500))
def test_mangled_samples_never_stop_the_others(tmp_path: Path, broken: Any, cut: int) -> None:
    path = Path(written(tmp_path, broken, SAMPLES[-1]))
    check_rows(LOG.read, path)
    path.write_bytes(path.read_bytes()[:cut])
    check_rows(LOG.read, path)


def test_several_answers_of_a_filter_are_rows_and_a_second_answer_true_is_no_likelihood(tmp_path: Path) -> None:
    records = read(written(tmp_path, sample(filtered_resps=[["Red", "True"]])))
    assert told(records, "prediction") == [("Red",), ("True",)]
    weighed = read(written(tmp_path, sample(), sample(filtered_resps=[["-inf", "False"], [-2.0, True]])))
    assert weighed[1].problem.startswith("has log-likelihoods")


def test_small_letters_are_texts_on_both_sides(tmp_path: Path) -> None:
    asked = "Which?\nA. owl\nB. swan\n"
    records = read(written(tmp_path, sample(input=asked, target="b", filtered_resps=["(b)"])))
    assert told(records, "references", "prediction") == [("swan", "swan")]
