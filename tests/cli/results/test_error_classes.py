"""Classes that rules propose for wrong verdicts."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.results.error_classes import (
    ERROR_CLASSES,
    FAILURE_MODES,
    NOT_GIVEN,
    UNTOLD,
    WrongVerdicts,
    class_named,
    error_class,
    failure_mode,
)


@pytest.mark.parametrize(
    ("line", "score", "reference", "prediction", "expected"),
    [
        ("exact_match/1", 0.0, "blue and white", "white and blue", "structure variation"),
        ("lexical_match/1", 0.0, "the Danube river", "the Danube", "partial match"),
        ("vqa_accuracy/1", 0.0, "field", "grassland", "synonym"),
        ("vqa_accuracy/1", 0.0, "no entry", "you must not drive in", "paraphrasing"),
        ("smile:v1/1?model=m&sentence_weight=0.3", 0.64, "field", "grassland", "threshold sensitivity"),
        ("sbert/1?model=m&threshold=0.8", 0.78, "field", "grassland", "threshold sensitivity"),
        ("sbert/1?model=m", 0.66, "field", "grassland", "synonym"),
        ("sbert/1?model=m", 0.3, "the Danube", f"It is the Danube {'and ' * 12}", "extended answer"),
        ("sbert/1?model=m", 0.3, "the Danube", "the Danube river", ""),
        ("lave/1?model=judge", 0.0, "field", "grassland", ""),
    ],
)
def test_a_right_answer_called_wrong(line: str, score: float, reference: str, prediction: str, expected: str) -> None:
    assert error_class(line, score, ["zzz", reference], prediction, called_right=False) == expected


@pytest.mark.parametrize(
    ("line", "score", "expected"),
    [
        ("lexical_match/1", 1.0, "overall misleading"),
        ("smile:v1/1?model=m&threshold=0.5", 0.9, "contextual misunderstanding"),
        ("smile:v1/1?model=m&threshold=0.5", 0.54, "threshold sensitivity"),
        ("correctness/3?model=m", 0.9, ""),
    ],
)
def test_a_wrong_answer_called_right(line: str, score: float, expected: str) -> None:
    assert error_class(line, score, ["Danube"], "not the Danube", called_right=True) == expected


@pytest.mark.parametrize(
    ("references", "prediction", "mode"),
    [
        (["playing video games"], "playing video game", "same stem"),
        (["blue and white"], "white and blue", "same stem"),
        (["rectangular"], "rectangle", "same stem"),
        (["right"], "on the right", "over- or under-specifying and verbosity"),
        (["pink and orange and red"], "pink", "over- or under-specifying and verbosity"),
        (["green"], "Unknown.", "unknown issue"),
        (["balance", "pushing", "skating"], "fun", "multiple answers"),
        (["field", "plains"], "grassland", ""),
        (["cat"], "car park", ""),
        (["cat"], "car", ""),
    ],
)
def test_the_modes_of_the_papers_examples(references: Sequence[str], prediction: str, mode: str) -> None:
    assert failure_mode(references, prediction) == mode


def test_tables_count_by_class_and_metric_with_the_unknown_last() -> None:
    found = WrongVerdicts()
    item = {"id": "1", "references": ["Danube"], "prediction": "a river"}
    assert found.tables() == []
    found.add(item, "exact_match", {"score": 0.0, "line": "exact_match/1"}, called_right=False)
    found.add(item, "lave", {"score": 0.0, "line": "lave/1"}, called_right=False)
    found.add(item, "lexical_match", {"score": 1.0, "line": "lexical_match/1"}, called_right=True)
    classes, modes = found.tables()
    assert [[str(cell) for cell in row] for row in classes.rows] == [
        ["overall misleading", "0", "0", "1"],
        ["synonym", "1", "0", "0"],
        [UNTOLD, "0", "1", "0"],
    ]
    assert modes.columns == ["class", "exact_match", "lave"]


@given(st.lists(st.text(max_size=30), max_size=3), st.text(max_size=30), st.sampled_from(["exact_match/1", "smile/1"]))
def test_any_text_has_at_most_one_class(references: list[str], prediction: str, line: str) -> None:
    for called_right in (True, False):
        assert isinstance(error_class(line, 0.5, references, prediction, called_right=called_right), str)
    assert isinstance(failure_mode(references, prediction), str)


def add_miss(found: WrongVerdicts, prediction: str, given: str, metric: str = "exact_match") -> None:
    item = {"id": prediction, "references": ["blue and white"], "prediction": prediction}
    found.add(item, metric, {"score": 0.0, "line": f"{metric}/1"}, called_right=False, given=given)


def test_given_classes_are_counted_and_compared_with_the_proposals() -> None:
    """Rules say structure variation, partial match and synonym; annotators say so once, and one gives an own class."""
    found = WrongVerdicts()
    add_miss(found, "white and blue", "Structure Variation Error")
    add_miss(found, "blue", "synonym")
    add_miss(found, "grey", "colour names")
    add_miss(found, "grey", "")
    assert [wrong.given for wrong in found.listed] == ["structure variation", "synonym", "colour names", ""]
    assert found.listed[0].text == "structure variation (given); structure variation and same stem (proposed)"
    assert found.listed[3].text == "paraphrasing (proposed)"
    *_, given, agreement = found.tables()
    assert [[str(cell) for cell in row] for row in given.rows] == [
        ["colour names", "1"],
        ["structure variation", "1"],
        ["synonym", "1"],
        [NOT_GIVEN, "1"],
    ]
    shown = [[str(cell) for cell in row] for row in agreement.rows]
    assert [row[:4] for row in shown] == [
        ["exact_match", "class", "2", "0.500"],
        ["exact_match", "failure mode", "1", "0.000"],
    ]


def test_many_own_classes_are_one_line() -> None:
    found = WrongVerdicts()
    for number in range(60):
        add_miss(found, "grey", f"own class {number}")
    (table,) = [each for each in found.tables() if each.title == "Wrong verdicts by given class"]
    assert len(table.rows) == 41
    assert [str(cell) for cell in table.rows[-1]] == ["other classes", "20"]


@pytest.mark.parametrize("name", [*ERROR_CLASSES, *FAILURE_MODES])
def test_a_class_has_its_name_in_any_spelling(name: str) -> None:
    assert class_named(f" {name.replace(' ', '_').upper()} Error ") == name
    assert class_named("something else") == "something else"


@given(st.text(max_size=100))
def test_a_class_stays_the_same_when_it_is_named_again(text: str) -> None:
    assert class_named(class_named(text)) == class_named(text)
