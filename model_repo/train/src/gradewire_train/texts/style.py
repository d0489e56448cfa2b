"""How questions and answers are written: with and without capitals, marks and articles."""

from random import Random

_SEARCHED = 0.45
"""Share of questions as they are typed into a search box: lower-cased, without a question mark."""


def question_style(rng: Random, question: str) -> str:
    """The question as somebody would write it: with its mark, or as it is typed into a search box."""
    bare = question.strip().rstrip("?")
    if rng.random() < _SEARCHED:
        return bare.lower()
    return f"{capitalised(bare)}?"


def answer_style(rng: Random, answer: str) -> str:
    """Now and then with a capital, in capitals, with a full stop, in quotation marks or in small letters."""
    drawn = rng.random()
    if drawn < 0.10:
        return capitalised(answer)
    if drawn < 0.14 and len(answer) < 30:
        return answer.upper()
    if drawn < 0.20:
        return f"{answer}."
    if drawn < 0.22:
        return f'"{answer}"'
    if drawn < 0.28:
        return answer.lower()
    return answer


def capitalised(text: str) -> str:
    """The text beginning with a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def with_article(noun: str) -> str:
    """The noun behind "a" or "an"; by its first letter, which is wrong for few words."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
