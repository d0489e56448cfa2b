"""A text that passes for prose is no mathematical object, whatever words it has."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.metrics.mathematics.claims import labelled, read
from gradewire_server.metrics.mathematics.parsing import FUNCTIONS, expression
from gradewire_server.metrics.mathematics.prose import reads_as_prose
from gradewire_server.metrics.values.tokens import VOCABULARY

_NAMES = (
    "Paris",
    "Claudia Wells",
    "O'Neal",
    "cats",
    "Lincoln",
    "x",
    "e",
    "pi",
    "A",
    "theof",
    "capi",
    "Saint-Denis",
    "ab",
)


def _strings(found: object) -> Iterator[str]:
    if isinstance(found, dict):
        for each in found.values():
            yield from _strings(each)
    elif isinstance(found, str):
        yield found


def _phrases() -> list[str]:
    """Return the phrases of the vocabulary, with letters and blanks for what its patterns leave open."""
    patterns = (*_strings(VOCABULARY["mathematics"]["words"]), *VOCABULARY["mathematics"]["spoken"])
    pieces = {piece for pattern in patterns for piece in pattern.replace(";", "|").split("|")}
    plain = ("".join(sign if sign.isalpha() or sign == " " else " " for sign in piece) for piece in pieces)
    return sorted({" ".join(each.split()) for each in plain} - {""})


_PIECES = st.sampled_from((*_phrases(), *_NAMES, *FUNCTIONS, *VOCABULARY["numerals"]["small"].split()))
_TEXTS = st.lists(
    st.tuples(
        _PIECES,
        st.sampled_from(
            (" ", " ", " ", "", ", ", "-", " and ", " or ", " of ", " is ", " & ", "'", ". ", " (", ")", ": ", "/", "!")
        ),
    ),
    min_size=1,
    max_size=6,
).map(lambda pairs: "".join(part for pair in pairs for part in pair))


@pytest.mark.parametrize(
    "text",
    [
        "Paris",
        "Claudia Wells",
        "the Death Star",
        "William Shakespeare and John Fletcher",
        "Shaquille O'Neal",
        "J. K. Rowling",
    ],
)
def test_names_are_prose(text: str) -> None:
    assert reads_as_prose(text)


@pytest.mark.parametrize(
    "text",
    [
        *("x", "ab", "5", "x = 3", "no solution", "all real numbers", "infinitely many", "Hundreds of infinitely many"),
        *(
            "multiples of three",
            "multiples ofthree",
            "taproot of x",
            "capi",
            "theof x",
            "kfor all x",
            "Paris is equal to x",
            "face hex",
        ),
        *("sinX", "(x) meters", "array(x)", "any thex tal que b", "nentier n"),
        *("Raphael e, Leonardo i", "grows without bound", "", "Beyonc\u00e9", "[cats]", "x is at least y"),
    ],
)
def test_what_may_be_an_object_is_no_prose(text: str) -> None:
    assert not reads_as_prose(text)


@example("any thex tal que b")
@example("nentier n")
@settings(max_examples=example_count(500))
@given(_TEXTS)
def test_prose_is_never_read_as_an_object(text: str) -> None:
    if reads_as_prose(text):
        assert read(text) is None
        assert labelled(text) is None


@given(
    st.text("aceinopstx", min_size=1, max_size=7), st.sampled_from(("", "pi", *FUNCTIONS)), st.text("ei", max_size=2)
)
def test_a_word_of_prose_is_no_expression(begin: str, function: str, end: str) -> None:
    word = f"{begin}{function}{end}"
    if reads_as_prose(word):
        assert expression(word) is None
