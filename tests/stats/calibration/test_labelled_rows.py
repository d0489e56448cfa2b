"""Halves of labelled rows, by question."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_stats.calibration.labelled_rows import half_of, question_key


@pytest.mark.parametrize(
    "written", ["Who wrote Hamlet?", "who  wrote hamlet", " WHO_wrote\tHamlet ?!", "who wrote \uff48amlet"]
)
def test_a_question_is_the_same_however_it_is_written(written: str) -> None:
    assert question_key(written) == "who wrote hamlet"
    assert half_of(written) == half_of("who wrote hamlet")


def test_the_half_is_the_parity_of_the_hash() -> None:
    # Worked out here from the definition, so that a change of it, which would move rows across, is seen.
    halves = {question: half_of(question) for question in map(str, range(200))}
    for question, half in halves.items():
        even = hashlib.blake2b(question.encode(), digest_size=8).digest()[0] % 2 == 0
        assert half == ("a" if even else "b")
    assert 70 < list(halves.values()).count("a") < 130


@given(st.text(st.characters(max_codepoint=0x24F)))
def test_a_key_is_its_own_key(question: str) -> None:
    assert question_key(question_key(question)) == question_key(question)
