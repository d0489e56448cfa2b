"""The confidence in a found answer: what lowers it, and what does not."""

import pytest

from gradewire_proto.final_answer import find_final_answer

SINGLE = find_final_answer("Answer: 12").confidence
PROSE = "This follows from the table in the third section, which lists all of them in order. " * 3


@pytest.mark.parametrize(
    "completion",
    [
        *("Answer: 12", "\\boxed{12}", "<answer>12</answer>", '{"answer": "12"}', "#### 12", "The answer is 12."),
        *("3 times 4 is 12.\n\nAnswer: 12", "The answer is **12**, because 3 · 4 = 12.", "Antwort: 12", "答案：12"),
        *("The answer is $\\boxed{12}$.", "Answer: 12\n\nThe answer is \\boxed{12}", "\\boxed{12}, so \\boxed{12}"),
        *(
            "<answer>12</answer>\n<answer>12</answer>",
            "Answer: 12\n\nFinal answer: 12",
            "Answer: 12. I hope this helps!",
        ),
        *("La réponse est 12.", "La respuesta es 12.", "La risposta è 12.", "Ответ: 12"),
        # one answer, written in several ways
        *("\\boxed{1,5} is 1.5", "\\boxed{1,234} is 1234", "Answer: 1,5\n\nAnswer: 1.5", "Answer: 12\n\nAnswer: 12 km"),
        *(
            "Answer: \\frac{1}{2}\n\nAnswer: 1/2",
            "Answer: 12\n\nAnswer: 12, because 3 · 4 = 12.",
            "答案：12\n答案：12个",
        ),
    ],
)
def test_a_single_marked_answer_is_most_certain(completion: str) -> None:
    assert find_final_answer(completion).confidence == SINGLE == 0.98


@pytest.mark.parametrize(
    "completion",
    [
        # several different marked answers
        *("Answer: 12\n\nAnswer: 13", "\\boxed{12}, so \\boxed{13}", "Answer: 12. \\boxed{13}", "答案：12\n答案：13"),
        *("<answer>12</answer>\n<answer>13</answer>", "Antwort: 12\n\nDie Antwort ist 13.", "#### 12\n#### 13"),
        *("The answer is Rome. The answer is Paris.", '{"answer": "Rome"}\n\nThe answer is Paris.'),
        *("La réponse est 12. La réponse est 13.", "La respuesta es 12. La respuesta es 13."),
        # ... that begin alike, or differ in a sign or inside a command of LaTeX
        *("Answer: 1\n\nAnswer: 12", "Answer: Ann\n\nAnswer: Anna", "Answer: x>3\n\nAnswer: x<3"),
        *("Answer: \\frac{1}{2}\n\nAnswer: \\frac{1}{3}", "Answer: 1.5\n\nAnswer: 1", "答案：北京\n答案：北海"),
        *("Answer: \\sqrt{2}\n\nAnswer: \\sqrt{3}", "Answer: 5%\n\nAnswer: 5 km"),
        # another number after the mark
        *("\\boxed{12}\nSo the total is 13.", "<answer>12</answer>\nThe result of 6 + 7 = 13"),
        # hedges
        *(
            "I think the answer is 12",
            "Answer: probably 12",
            "The answer is 12, but I am not sure.",
            "Answer: maybe 12",
        ),
        *("Antwort: vermutlich 12", "Ich glaube, die Antwort ist 12.", "Je pense que la réponse est 12."),
        *("Creo que la respuesta es 12.", "Forse la risposta è 12.", "Acho que a resposta é 12.", "答案：可能是12"),
        *("Наверное, ответ: 12", "Ik denk dat het antwoord 12 is"),
        # the text goes on
        *(f"Answer: Paris\n\n{PROSE}", f"\\boxed{{Paris}} {PROSE}", f"<answer>Paris</answer>\n{PROSE}"),
        # nothing is marked
        *("Paris", "It is Paris.", PROSE, PROSE * 4, "I think it's Paris.", "3 + 4 is 7, so each gets 7 apples."),
    ],
)
def test_doubts_lower_the_confidence(completion: str) -> None:
    assert find_final_answer(completion).confidence < SINGLE


def test_a_longer_unmarked_text_is_less_certain() -> None:
    shares = [find_final_answer("a word " * count).confidence for count in (2, 20, 60, 200)]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) == len(shares)


def test_reasons_to_doubt_multiply() -> None:
    rival = find_final_answer("Answer: 12\n\nAnswer: 13").confidence
    hedged = find_final_answer("Answer: 12\n\nAnswer: 13, I think").confidence
    assert hedged < rival


def test_a_hedge_of_another_sentence_does_not_count() -> None:
    assert find_final_answer("I think hard about it. The answer is 12.").confidence == SINGLE
    assert find_final_answer("The answer is 12. It is probably the smallest one.").confidence == SINGLE


def test_an_answer_of_nothing_is_fairly_certain() -> None:
    assert find_final_answer("").confidence == find_final_answer("Can you help me?").confidence == 0.9
