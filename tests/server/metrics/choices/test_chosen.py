"""The option that an answer chooses: by letter, text or exclusion, after corrections, without rejected options."""

import time
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.choices.chosen import Choice, find_choice
from gradewire_server.metrics.choices.options import Options, any_letters, find_options

CITIES = ("Sydney", "Melbourne", "Canberra", "Perth")
HOSTILE = (
    "A) ",
    "no wait, ",
    "not A ",
    "\\boxed{",
    "(",
    "A, B, C, ",
    "the cat ",
    "**",
    "A. No. ",
    "不选A",
    '{"answer": "',
)


def chosen(answer: str, question: str = "What is the capital of Australia?", texts: tuple[str, ...] = CITIES) -> str:
    """Return the labels of the chosen options, or the reason why there is no single choice."""
    options = find_options(question, texts) or any_letters(question)
    choice = find_choice(answer, options)
    return choice.reason or "".join(options.labels[option] for option in choice.options)


@pytest.mark.parametrize(
    "answer",
    [
        "C", "c.", "(C)", "[[C]]", "**C**", "Answer: C", "$\\boxed{\\text{C}}$", "<answer>C</answer>",
        "Option C", "选C", "The answer is (C).", "C – Canberra", "#### C", "<think>A? B?</think>C",
        "Canberra", "It is canberra.", "The capital of Australia is Canberra, not Sydney.", "Canberra (C)",
        "C. Canberra was chosen as a compromise between Sydney and Melbourne.",
        "(A) is wrong because it is only the largest city, so C", "Not A. C.", "I considered A, but it is C.",
        "A is tempting, but C is right.",
        "C fits, whereas A and B don't.",
        "Many people think it is Sydney, but it is Canberra.",
        "A. No wait, C.", "~~A~~ C", "The answer is A. Sorry, I meant C.", "I change my answer from A to C.",
        "Answer: A\n\nLet me check that.\n\nAnswer: C", "Is it A? No. Is it C? Yes.",
        "Not A, not B and not D.", "A and B can be eliminated, and so can D.", "All but C are wrong.",
        "A: incorrect. B: incorrect. C: correct. D: incorrect.", "Rather than A, I choose C.",
        "A is the largest city, B was the interim capital, D is in the west. The answer is C.",
    ],
)  # fmt: skip
def test_an_answer_chooses_one_option(answer: str) -> None:
    assert chosen(answer) == "C"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "none"),
        ("I don't know.", "none"),
        ("The answer is not A.", "none"),
        ("Australia is a beautiful country.", "none"),
        ("<think>The answer is C.", "none"),
        ("A or C", "several"),
        ("It could be B, or maybe C.", "several"),
        ("Both A and C are right.", "several"),
        ("C) Sydney", "conflict"),
        ("Canberra (B)", "conflict"),
        ("The correct choice is D: Sydney", "conflict"),
    ],
)
def test_an_answer_without_a_single_choice(answer: str, reason: str) -> None:
    assert chosen(answer) == reason


TEN = ("Rome", "Paris", "Tokyo", "Berlin", "Madrid", "Oslo", "Vienna", "Athens", "London", "Moscow")


@pytest.mark.parametrize(
    ("answer", "texts", "expected"),
    [
        ("I think it is C.", TEN, "C"),
        ("I", TEN, "I"),
        ("The answer is I", TEN, "I"),
        ("I believe London hosted them.", TEN, "I"),
        ("A dog", ("hamster", "dog"), "B"),
        ("I would say a cat", ("cat", "dog"), "A"),
        ("25 C is pleasant, so it's warm.", ("icy", "warm", "hot"), "B"),
        ("Oranges are rich in vitamin C.", ("oranges", "nuts", "plums"), "A"),
        ("Their Plan B is a bike tour.", ("a picnic", "a game", "a bike tour"), "C"),
        ("Va a la escuela.", ("a la playa", "a la escuela"), "B"),
        ("wild cat", ("cat", "wild cat", "black cat"), "B"),
        ("It has not been vaccinated.", ("It has been vaccinated", "It has not been vaccinated"), "B"),
        ("30 m", ("30 mm", "30 cm", "30 m"), "C"),
        ("-3", ("3", "-3", "13"), "B"),
        ("two kilograms", ("2 kg", "20 kg", "2 g"), "A"),
        ("None of these is prime.", ("4", "6", "none of the above"), "C"),
        ("All of them.", ("Mars", "Venus", "all of the above"), "C"),
        ("自行车", ("车", "火车", "自行车", "电动自行车"), "C"),
        ("不是", ("是", "不是"), "B"),
    ],
)
def test_words_are_no_letters_and_the_longest_text_counts(answer: str, texts: tuple[str, ...], expected: str) -> None:
    assert chosen(answer, "Which?", texts) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A penguin is not a mammal.", "C"),
        ("Whales, bats and horses are mammals.", "C"),
        ("A, B and D are mammals. That leaves C.", "C"),
        ("The bat is not a mammal.", "B"),
        ("I can rule out A and B.", "none"),
    ],
)
def test_a_question_for_the_exception(answer: str, expected: str) -> None:
    assert chosen(answer, "Which of these is not a mammal?", ("whale", "bat", "penguin", "horse")) == expected


@pytest.mark.parametrize(
    ("question", "answer", "label"),
    [
        ("Pick one of A to J.", "The answer is C because I computed the integral.", "C"),
        ("Pick one of A to D.", "ANSWER: **A**", "A"),
        ("Pick one of A to D.", "I considered (A), but it is incorrect. Final answer: D.", "D"),
        ("Pick one of A to J.", "Answer: I think it is C", "C"),
        ("Which option?", "Option A", "A"),
        ("Which option?", "I think it is C.", "C"),
        ("What grade did she get?", "She got a B.", "B"),
    ],
)
def test_reported_answers_whose_letters_were_misread(question: str, answer: str, label: str) -> None:
    assert chosen(answer, question, ()) == label


@pytest.mark.parametrize(
    "answer", ["A and C", "AC", "C, A", "A\nC", "- A) 2\n- C) 5", "2 and 5", "So A and C. B and D are not prime."]
)
def test_several_options(answer: str) -> None:
    options = find_options("Select all that apply. Which are prime? A) 2 B) 4 C) 5 D) 9")
    assert options is not None
    assert find_choice(answer, options, several=True).options == (0, 2)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_the_options_changes_the_letter_alone(order: tuple[int, ...]) -> None:
    texts = ("a red kite", "an umbrella", "a bucket of sand")
    options = Options(tuple(texts[place] for place in order), "upper", "What is it?")
    for answer in ("It is the umbrella.", "Not a red kite, but an umbrella", "umbrella"):
        assert find_choice(answer, options).options == (order.index(1),)


@given(st.text(max_size=300) | st.text("ABCabc (),.:;不选\n*\\{}", max_size=300), st.booleans())
def test_no_answer_raises(answer: str, several: bool) -> None:  # noqa: FBT001 - Hypothesis passes it
    options = Options(CITIES, "upper", "Which?")
    choice = find_choice(answer, options, several=several)
    assert isinstance(choice, Choice)
    assert set(choice.options) <= set(range(4))
    assert bool(choice.options) or choice.reason in {"none", "conflict"}


@pytest.mark.parametrize("part", HOSTILE)
def test_long_answers_take_bounded_time(part: str) -> None:
    options = Options(CITIES, "upper", "Which?")
    find_choice("warm", options)
    start = time.perf_counter()
    find_choice(part * (200_000 // len(part)), options)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("part", ["x ", "the cat sat on the mat ", "A. "])
def test_long_options_take_bounded_time(part: str) -> None:
    for text in ("x " * 1_000, "the cat sat on the mat"):
        options = Options((text,) * 26, "upper", "Which?")
        find_choice("warm", options)
        start = time.perf_counter()
        find_choice(part * (20_000 // len(part)), options)
        assert time.perf_counter() - start < 3
