"""choice_match: its verdict and parts, what references name, and where it does not apply."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.engines.programs import Table

from gradewire_proto.choices import GradedAnswer
from gradewire_proto.parts import ChoiceMatchParts
from gradewire_server.domain.items import Failure, Item, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.choices.choice_match import ChoiceMatch, choice_of
from gradewire_server.metrics.choices.grading import grade_choice
from gradewire_server.metrics.choices.options import any_letters, find_options
from gradewire_server.metrics.choices.references import wanted_of
from gradewire_server.metrics.common import AnswerParameters

PETS = "Which one barks? A) cat B) dog C) wild dog"
DEVELOPMENT = Path(__file__).resolve().parents[4] / "examples" / "choices" / "development.jsonl"
LEAST_RIGHT = 0.985


def grade(
    prediction: str, *references: str, question: str = PETS, choices: tuple[str, ...] = (), **parameters: Any
) -> Any:
    item = Item("1", question, references, prediction, choices=choices)
    return Table().run(ChoiceMatch().score(item, AnswerParameters(**parameters), NO_MODEL))


def test_the_verdict_and_its_parts() -> None:
    result = grade("(A) is wrong, so B", "B")
    assert (result.score, result.correct, result.matched_reference, result.warnings) == (1.0, True, 0, ())
    assert result.parts == ChoiceMatchParts(options=3, chosen=("B",), expected=("B",), by="letter", reason="")
    wrong = grade("B) cat", "B")
    assert (wrong.score, wrong.correct) == (0.0, False)
    assert (wrong.parts.chosen, wrong.parts.reason) == ((), "conflict")


def test_options_that_the_item_gives() -> None:
    result = grade("It's the dog.", "dog", question="Which one barks?", choices=("cat", "dog"))
    assert (result.score, result.parts.options, result.parts.by) == (1.0, 2, "text")


def test_the_final_answer_alone() -> None:
    said = "I like the cat.\n\nFinal answer: B"
    assert grade(said, "B", answer=GradedAnswer.FINAL).score == 1


@pytest.mark.parametrize(
    ("references", "sets"),
    [
        (("B",), [{1}]),
        (("(b)",), [{1}]),
        (("dog",), [{1}]),
        (("the DOG",), [{1}]),
        (("B) dog",), [{1}]),
        (("B. dog",), [{1}]),
        (("B", "C"), [{1}, {2}]),
        (("A, C",), [{0, 2}]),
        (("AC",), [{0, 2}]),
        (("cat, wild dog",), [{0, 2}]),
        (("B) cat",), []),
        (("F",), []),
        (("cow",), []),
    ],
)
def test_options_that_references_name(references: tuple[str, ...], sets: list[set[int]]) -> None:
    options = find_options(PETS)
    assert options is not None
    assert list(map(set, wanted_of(references, options).sets)) == sets


def test_references_are_one_set_where_the_question_asks_for_all() -> None:
    question = "Select all that apply. A) cat B) dog C) stone"
    assert grade("A and B", "A", "B", question=question).score == 1
    assert grade("A", "A", "B", question=question).score == 0


def test_a_number_is_a_label_where_options_have_numbers() -> None:
    question = "How many? (1) 2 (2) 3 (3) 1"
    assert grade("There are 3 of them.", "2", question=question).score == 1
    assert grade("Option 3", "2", question=question).score == 0


@pytest.mark.parametrize(
    ("question", "references", "message"),
    [
        ("Which one barks?", ("dog",), "question: contains no options"),
        (PETS, ("cow",), "references[0]: 'cow' names none of the options A to C"),
        (PETS, ("C", "cow"), "references[1]: 'cow' names none"),
    ],
)
def test_items_to_which_it_does_not_apply(question: str, references: tuple[str, ...], message: str) -> None:
    result = grade("B", *references, question=question)
    assert (result.status, result.score) == (Status.INVALID_INPUT, None)
    assert message in result.message


def test_a_reference_without_an_option_does_not_matter_beside_a_right_one() -> None:
    assert grade("C", "cow", "C").matched_reference == 1


def test_a_letter_is_compared_without_options() -> None:
    result = grade("She got a B.", "A", question="What grade did she get?")
    assert (result.score, result.parts.options, result.parts.chosen) == (0.0, 0, ("B",))


def test_choice_of_leaves_other_items_alone() -> None:
    others = (
        Item("1", "Where is Paris?", ("France",), "In France."),
        Item("1", PETS, ("cow",), "B"),
        Item("1", "What grade did she get?", ("A",), "She got a B."),
        Item("1", "How many of these hold?\n1. x\n2. y\n3. z", ("2",), "2"),
        Item("1", "List the steps.\n1. mix\n2. bake", ("2",), "2"),
        Item("1", "What is the highest scoring letter in scrabble", ("Q",), "K"),
    )
    assert [choice_of(item) for item in others] == [None] * len(others)
    graded = choice_of(Item("1", "Pick one of A to D.", ("A",), "ANSWER: **A**"))
    assert graded is not None
    assert graded.right


def test_the_development_items_are_graded_as_people_do() -> None:
    rows = [json.loads(line) for line in DEVELOPMENT.read_text("utf-8").splitlines()]
    right = 0
    for row in rows:
        item = Item(
            "1", row["question"], tuple(row["references"]), row["prediction"], choices=tuple(row.get("choices", ()))
        )
        graded = grade_choice(item, find_options(item.question, item.choices) or any_letters(item.question))
        right += not isinstance(graded, Failure) and graded.right == bool(row["label"])
    assert right >= LEAST_RIGHT * len(rows)


@pytest.mark.parametrize(("count", "characters"), [(1, 200_000), (64, 250)])
def test_long_references_are_read_in_bounded_time(count: int, characters: int) -> None:
    references = (("A, B, C, " * 25_000)[:characters],) * count
    started = time.perf_counter()
    grade("B", *references)
    assert time.perf_counter() - started < 0.5


def test_a_reference_that_is_a_long_text() -> None:
    texts = tuple(f"{name} " + "went home and slept " * 150 for name in ("Ada", "Bob"))
    assert grade("B", texts[1], question="Who?", choices=texts).score == 1
    assert grade("A", texts[1], question="Who?", choices=texts).score == 0
