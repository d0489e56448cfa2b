"""Answers that refuse, hedge or deny, and right answers in the same words."""

from collections.abc import Sequence

import pytest
from tests.server.metrics.correctness.test_features import of


def test_refusals_are_counted() -> None:
    assert of("I'm sorry, I cannot say. It was not Paris.", "Paris")["refusals"] == 2.0
    assert of("It was Paris, not Rome.", "Paris")["refusals"] == 0.0


@pytest.mark.parametrize(
    "prediction",
    [
        "I cannot determine net income from the text; revenue was $4.2 million.",
        "I'm sorry, I don't know whether it was $4.2 million.",
        "The filing does not state whether it was $4.2 million.",
        "There is not enough information to answer. The document names $4.2 million.",
        "I\u2019m sorry, but I couldn\u2019t find any information about that.",
        "It is not possible to calculate net income; $4.2 million is revenue.",
    ],
)
def test_a_refusal_in_front_of_a_figure(prediction: str) -> None:
    assert of(prediction, "$4.2 million", question="What was net income in 2019?")["refused"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("Net income was $4.2 million.", "$4.2 million"),
        ("I cannot determine it exactly, but it was $4.2 million.", "$4.2 million"),
        ("I don't know much about it; it should be $4.2 million.", "$4.2 million"),
        ("It was $4.2 million. No information on 2020 is given.", "$4.2 million"),
        ("As an AI I have no access to live data. However, it was $4.2 million.", "$4.2 million"),
        ("It cannot be determined", "It cannot be determined"),
        ("It is not known.", "unknown, it is not known"),
        ("I Am Not Your Negro", "I Am Not Your Negro"),
        ("He did not say the best games ever", "He did not say that"),
    ],
)
def test_an_answer_in_words_of_refusals(prediction: str, reference: str) -> None:
    assert of(prediction, reference, question="What was it in 2019?")["refused"] == 0.0


@pytest.mark.parametrize(
    ("prediction", "others"),
    [
        ("Lyon or Paris", 1),
        ("Paris or Lyon or Nice", 2),
        ("either Paris or Lyon, I cannot say which", 1),
        ("Paris/Lyon/Nice", 2),
        ("It is Lyon, or else Paris, or perhaps Nice or Lille.", 3),
        ("Maybe Paris, maybe Lyon, maybe Nice.", 2),
        ("I would say Lyon. If that is not it, then Paris. If not that either, Nice.", 2),
        ("Possible answers: Lyon, Nice, Paris, Lille", 3),
        ("It could be any of these: Paris, Lyon, Nice, Lille.", 3),
        ("1) Lyon 2) Nice 3) Paris 4) Lille 5) Brest", 4),
        ("Lyon? Nice? Paris?", 2),
        ("Lyon; Nice; Paris; Lille", 3),
    ],
)
def test_candidates_that_an_answer_does_not_choose_between(prediction: str, others: float) -> None:
    assert of(prediction, "Paris", question="Which city is it?")["alternatives"] == others


@pytest.mark.parametrize(
    ("prediction", "reference", "question"),
    [
        ("Paris", "Paris", "Which city?"),
        ("It could be Paris.", "Paris", "Which city?"),
        ("Paris, and not Lyon or Nice.", "Paris", "Which city?"),
        ("The prod is called a goad or prod.", "Goad", "What is the prod called?"),
        ("It is a goad or prod.", "Goad", "What is it called?"),
        ("Persian (or Farsi)", "Persian", "Which language?"),
        ("a turlough, or turlach", "turlough", "What is it called?"),
        ("10 or more", "10", "How many?"),
        ("Lyon, Paris and Nice", "Paris, Lyon and Nice", "Which cities?"),
        ("hot or cold", "hot or cold", "How may it be?"),
        ("Tilda Swinton played the Witch, or Ice Queen, in Narnia.", "Tilda Swinton", "who played ice queen in narnia"),
        ("Lyon or Nice", "Paris", "Which city?"),  # the right one is not among them
    ],
)
def test_what_is_no_list_of_candidates(prediction: str, reference: str, question: str) -> None:
    assert of(prediction, reference, question=question)["alternatives"] == 0.0


_CITIES = ("Lyon", "Nice", "Paris", "Lille", "Brest", "Dijon")


@pytest.mark.parametrize("bullet", ["- ", "* ", "• ", "{}. ", "{}) "])
def test_a_line_for_each_candidate(bullet: str) -> None:
    lines = [f"{bullet.format(number)}{city}" for number, city in enumerate(_CITIES, 1)]
    assert of("\n".join(lines), "Paris", question="Which city is it?")["alternatives"] == 5.0
    introduced = of("\n".join(["It is one of these:", "", *lines]), "Paris", question="Which city is it?")
    assert introduced["alternatives"] == 5.0


@pytest.mark.parametrize(
    ("answer", "reference", "question"),
    [
        (
            "Steven Spielberg\n\n- Film: Jaws\n- Director: Steven Spielberg\n- Studio: Universal\n- Lead: Roy Scheider",
            "Steven Spielberg",
            "Who directed Jaws?",
        ),
        (
            "The group's revenue is 42:\n- Europe: 10\n- Asia: 12\n- Africa: 9\n- America: 11\n- Group: 42",
            "42",
            "What is the revenue of the group?",
        ),
        (
            "By size:\n1. Jupiter\n2. Saturn\n3. Uranus\n4. Neptune\n5. Earth\n6. Venus\n\n**So it is Jupiter.**",
            "Jupiter",
            "Which planet is the largest?",
        ),
        (
            "Washington was the first.\n1. Washington\n2. Adams\n3. Jefferson\n4. Madison\n5. Monroe",
            "Washington",
            "Who was the first president?",
        ),
        ("- Lyon\n- Nice\n- Paris ✓\n- Lille\n- Brest\n- Dijon", "Paris", "Which city is it?"),
        ("- Lyon\n- Nice\n- Paris (correct)\n- Lille\n- Brest\n- Dijon", "Paris", "Which city is it?"),
        ("- Lyon: no\n- Nice: no\n- Paris: yes\n- Lille: no\n- Brest: no", "Paris", "Which city is it?"),
    ],
)
def test_a_list_beside_an_answer_or_with_a_choice_is_no_list_of_candidates(
    answer: str, reference: str, question: str
) -> None:
    assert of(answer, reference, question=question)["alternatives"] == 0.0


def test_a_long_list_is_no_answer_whatever_is_asked() -> None:
    towns = [
        f"{first}{second}" for first in ("Al", "Bel", "Cor", "Dun", "Er") for second in ("ton", "ville", "wick", "by")
    ]
    listed = ", ".join([*towns, "Paris", "what is left is here"])
    for question in ("Which city is it?", "Where was Alton and Corby signed?", "Name a city"):
        assert of(listed, "Paris", question=question)["alternatives"] == 8.0
    assert of(", ".join([*towns[:6], "Paris"]), "Paris", question="Name a city")["alternatives"] == 0.0
    clauses = ["it is so", "he was there", "they were not"]
    assert of(", ".join([*towns[:6], *clauses, "Paris"]), "Paris", question="Which city?")["alternatives"] == 0.0


@pytest.mark.parametrize(
    ("lines", "references", "question"),
    [
        (_CITIES[:4], ["Paris"], "Which city is it?"),  # too few to be a list without "or"
        (_CITIES, ["Rome"], "Which city is it?"),  # the right one is not among them
        (_CITIES, ["Paris", "Lyon"], "Which city is it?"),  # several right ones
        (_CITIES, ["Paris"], "Name a city in France"),
        (_CITIES, ["Paris", "Bordeaux", "Nantes"], "Which cities have a tram?"),
        (
            ["It lies on the Seine", "It has two million people", *(f"It has been {each}" for each in "abcd"), "Paris"],
            ["Paris"],
            "Which city is it?",
        ),
    ],
)
def test_lines_that_are_no_candidates(lines: Sequence[str], references: Sequence[str], question: str) -> None:
    answer = "\n".join(f"- {line}" for line in lines)
    assert of(answer, *references, question=question)["alternatives"] == 0.0


def test_other_references_are_no_candidates() -> None:
    assert of("Persian or Farsi", "Farsi", "Persian", question="Which language?")["alternatives"] == 0.0


@pytest.mark.parametrize(
    ("prediction", "denied"),
    [
        ("It is Paris.", False),
        ("It is Paris, not Rome.", False),
        ("Not only Paris", False),
        ("It is not Lyon, but Paris", False),
        ("However, it is Paris", False),
        ("It is not Paris, he said. It is Paris, he said then.", False),
        ("It did not fall before Paris did, no doubt: Paris", False),
        ("None other than Paris", False),
        ("It is not Paris.", True),
        ("It isn\u2019t Paris", True),
        ("It was never in Paris; it was Rome", True),
    ],
)
def test_an_answer_that_denies_what_it_names(prediction: str, denied: bool) -> None:  # noqa: FBT001 - a case's outcome
    assert of(prediction, "Paris", question="Which city?")["denied"] == denied


@pytest.mark.parametrize(
    "reference",
    [
        "St. Louis",
        "J. K. Rowling",
        "Paris, France",
        "1,000",
        "10:30",
        "Dr. Seuss",
        "Washington, D.C.",
        "(What?) (Why!)",
    ],
)
def test_marks_inside_a_reference_hide_no_denial(reference: str) -> None:
    assert of(f"It is not {reference}.", reference, question="Which?")["denied"] == 1.0
    assert of(f"It is {reference}.", reference, question="Which?")["denied"] == 0.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("unknown", "unknown"),
        ("It did not fall until 1989", "1989"),
        ("No doubt Paris", "Paris"),
        ("They don't need oxygen", "They do not need oxygen"),
    ],
)
def test_words_of_denials_that_deny_nothing(prediction: str, reference: str) -> None:
    assert of(prediction, reference, question="Which?")["denied"] == 0.0


def test_a_negation_of_the_question_denies_nothing() -> None:
    found = of("He did not win the French Open", "French Open", question="Which did he not win?")
    assert (found["denied"], found["negated"]) == (0.0, 0.0)
