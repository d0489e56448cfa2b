"""The first sentence of what a judge wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.scoring.synthetic.first_sentence import MAX_CHARACTERS, first_sentence


@pytest.mark.parametrize(
    ("text", "sentence", "ended"),
    [
        ("Paris is the capital. It has parks.", "Paris is the capital.", True),
        ("Paris is the capital", "Paris is the capital", False),
        ("\n  Paris is the capital.\nIt has parks.", "Paris is the capital.", True),
        ('"Paris is the capital."', "Paris is the capital.", True),
        ("\u201cParis is the capital.\u201d", "Paris is the capital.", True),
        ('"Hamlet" is by the author of "Othello"', '"Hamlet" is by the author of "Othello"', False),
        ('He said "yes." Then he left.', 'He said "yes."', True),
        ("J. K. Rowling wrote it. She was born in 1965.", "J. K. Rowling wrote it.", True),
        ("Dr. Smith lives on St. John St. The house is old.", "Dr. Smith lives on St. John St.", True),
        ("Scurvy comes from a lack of vitamin C. It can be cured.", "Scurvy comes from a lack of vitamin C.", True),
        ("The U.S. was first. France came later.", "The U.S. was first.", True),
        ("It is 3.5 km long. That is far.", "It is 3.5 km long.", True),
        ("It is No. 5 of them. The end.", "It is No. 5 of them.", True),
        ("The answer is no. Dogs bark.", "The answer is no.", True),
        ("Albee wrote Who's Afraid? in 1962. He died.", "Albee wrote Who's Afraid? in 1962.", True),
        ("Wait... What? No.", "Wait...", True),
        (
            "\u6771\u4eac\u3067\u3059\u3002\u5927\u962a\u3067\u306f\u306a\u3044\u3002",
            "\u6771\u4eac\u3067\u3059\u3002",
            True,
        ),
        (
            "\u092f\u0939 \u0926\u093f\u0932\u094d\u0932\u0940 \u0939\u0948\u0964 \u0914\u0930",
            "\u092f\u0939 \u0926\u093f\u0932\u094d\u0932\u0940 \u0939\u0948\u0964",
            True,
        ),
        ("", "", False),
        (" \n\t", "", False),
        ('"', '"', False),
    ],
)
def test_where_the_first_sentence_ends(text: str, sentence: str, ended: bool) -> None:  # noqa: FBT001 - a table's column
    assert first_sentence(text) == (sentence, ended)


def test_marks_of_the_answer_end_no_sentence() -> None:
    text = "It was Yahoo! Inc. that bought it."
    assert first_sentence(text) == ("It was Yahoo!", True)
    assert first_sentence(text, keep="Yahoo! Inc.") == (text, True)


@pytest.mark.parametrize("piece", [".", ".'", "A. ", "a.b ", "\u3002", "?!", "...x", '"', "No. 5 "])
def test_long_texts_of_marks_take_no_time(piece: str) -> None:
    # Were it quadratic in what it is given, this would take minutes.
    sentence, _ = first_sentence(piece * 1_000_000)
    assert len(sentence) <= MAX_CHARACTERS


@given(st.text(max_size=60), st.text(max_size=8))
def test_a_sentence_is_a_piece_of_one_line(text: str, keep: str) -> None:
    sentence, ended = first_sentence(text, keep=keep)
    assert sentence in text
    assert "\n" not in sentence
    assert sentence == sentence.strip()
    assert not (ended and not sentence)
    assert first_sentence(sentence, keep=keep)[0] in sentence
