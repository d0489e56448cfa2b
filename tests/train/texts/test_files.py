"""Examples as JSON lines."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_train import TrainingError
from gradewire_train.examples import TASKS, Example, texts
from gradewire_train.texts.files import read_examples, write_examples

WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=4)


def answers(head: str) -> st.SearchStrategy[str]:
    """Of any characters, and different from those of another head."""
    return WORDS.map(lambda word: head + word)


NEGATIVES = st.lists(answers("wrong "), max_size=2).map(tuple)
EXAMPLES = st.builds(Example, st.sampled_from(TASKS), WORDS, answers("said "), answers("right "), NEGATIVES)
GOOD = {"task": "nli", "question": "", "anchor": "a", "positive": "b", "negatives": ["c"]}


@settings(max_examples=example_count(30))
@given(examples=st.lists(EXAMPLES, min_size=1, max_size=3))
def test_examples_are_read_back(examples: list[Example], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("examples") / "examples.jsonl"
    write_examples(examples, path)
    assert read_examples(path) == examples


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "line 2: Invalid JSON"),
        ("3", "line 2: must be an object"),
        (json.dumps({**GOOD, "anchor": None}), "line 2: anchor must be a valid string"),
        (json.dumps({**GOOD, "negatives": "c"}), "line 2: negatives must be a valid array"),
        (json.dumps({**GOOD, "task": "nlp"}), "line 2: task must be one of nli,"),
        (
            json.dumps({**GOOD, "question": "\ud800"}),
            "line 2: Invalid JSON: .* hex escape",
        ),
        (
            json.dumps({**GOOD, "negatives": ["\udfff"]}),
            "line 2: Invalid JSON: .* hex escape",
        ),
        (json.dumps({**GOOD, "positive": "a"}), "line 2: anchor and positive must be different texts"),
        (json.dumps({**GOOD, "positive": " "}), "line 2: anchor, positive and negatives must not be blank"),
        (json.dumps({**GOOD, "negatives": ["c", " B. "]}), "line 2: the negative ' B. ' equals the anchor or the"),
        ('{"task": 1' + "0" * 5_000 + "}", "line 2: Invalid JSON"),
    ],
)
def test_a_line_that_is_no_example_is_named(line: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{line}\n", encoding="utf-8")
    with pytest.raises(TrainingError, match=says):
        read_examples(path)


@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        ("C++", "C#"),
        ("5", "-5"),
        ("-5", "5"),
        ("A+", "A-"),
        ("A", "A*"),
        ("vitamin", "vitamin A"),
        ("résumé", "resume"),
    ],
)
def test_signs_accents_and_articles_may_be_all_that_tells_answers_apart(
    positive: str, negative: str, tmp_path: Path
) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text(json.dumps({**GOOD, "positive": positive, "negatives": [negative]}), encoding="utf-8")
    assert read_examples(path) == [Example("nli", "", "a", positive, (negative,))]


@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        ("New  York", "new york"),
        ("Straße", "STRASSE"),
        ("caf\u00e9", "Cafe\u0301"),
        ("it is red", "It is red ."),
        ("\u6771\u4eac", "\u6771\u4eac\u3002"),
        ("\u00a0B\t", "b"),
    ],
)
def test_the_same_answer_in_another_form_is_no_negative(positive: str, negative: str, tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    for one, other in ((positive, negative), (negative, positive)):
        path.write_text(json.dumps({**GOOD, "positive": one, "negatives": [other]}), encoding="utf-8")
        with pytest.raises(
            TrainingError, match=r"line 1: the negative .* equals the anchor or the positive except for case"
        ):
            read_examples(path)


def test_an_example_without_negatives_is_one(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text(json.dumps({**GOOD, "negatives": []}), encoding="utf-8")
    assert read_examples(path) == [Example("nli", "", "a", "b", ())]


def test_an_empty_file_is_no_training_set(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(TrainingError, match="contains no example"):
        read_examples(path)


def test_the_texts_an_encoder_reads() -> None:
    asked = Example("numbers", "How many?", "2", "two", ("3",))
    assert texts(asked) == (
        "Question: How many? Answer: 2", "Question: How many? Answer: two", "Question: How many? Answer: 3"
    )  # fmt: skip
    assert texts(Example("nli", "", "a", "b", ("c", "d"))) == ("a", "b", "c", "d")
