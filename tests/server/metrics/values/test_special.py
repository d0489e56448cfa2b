"""References that are one special value as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.values.reading import Kind, Outcome
from gradewire_server.metrics.values.special import compare_special

FOUND, CONTRADICTED, MISSING = Outcome.FOUND, Outcome.CONTRADICTED, Outcome.MISSING


@pytest.mark.parametrize(
    ("question", "reference", "answer", "outcome"),
    [
        ("Is 91 prime?", "no", "False", FOUND),
        ("Is 91 prime?", "no", "Yes, it is.", CONTRADICTED),
        ("Is 91 prime?", "false", "That is not true.", FOUND),
        ("Ist 97 eine Primzahl?", "ja", "Ja, 97 ist eine Primzahl.", FOUND),
        ("地球是最大的行星吗？", "否", "不是，最大的是木星。", FOUND),
        ("Is it so?", "yes", "Yes and no.", MISSING),
        ("What was the final score?", "3-1", "3:1", FOUND),
        ("What was the final score?", "3-1", "They lost 1-3.", CONTRADICTED),
        ("What was the final score?", "3-1", "6-2", CONTRADICTED),
        ("Give the set scores.", "6-4, 3-6, 7-5", "She won 6-4, 3-6, 7-5.", FOUND),
        ("Give the set scores.", "6-4, 3-6, 7-5", "6-4, 6-3, 7-5", CONTRADICTED),
        ("What is the ratio of cats to dogs?", "4:7", "4 to 7", FOUND),
        ("What is the ratio of cats to dogs?", "4:7", "8 : 14", FOUND),
        ("What is the ratio of cats to dogs?", "4:7", "7:4", CONTRADICTED),
        ("In what ratio are they mixed?", "4:2:1", "4 parts flour, 2 parts sugar and 1 part butter", FOUND),
        ("What are the odds?", "5 to 1", "5/1", FOUND),
        ("How many pencils and pens are there?", "6 pencils, 4 pens", "4 pencils and 6 pens", CONTRADICTED),
        ("Find p and q.", "p = 4, q = 2", "(4, 2)", FOUND),
        ("Find p and q.", "p = 4, q = 2", "(2, 4)", CONTRADICTED),
        ("What are the coordinates of Oslo?", "59.91, 10.75", "10.75, 59.91", CONTRADICTED),
        ("What is his code number?", "007", "Agent 7", CONTRADICTED),
        ("What is his code number?", "007", "Agent 007", FOUND),
        ("How many errors were found?", "0", "No errors were found.", FOUND),
        ("Which unit is used?", "MW", "megawatts", FOUND),
        ("Which unit is used?", "mW", "MW", CONTRADICTED),
        ("Which formula?", "CO", "Co", CONTRADICTED),
        ("Which gas is released?", "CO2", "carbon dioxide", FOUND),
        ("In which chapter and verse is it?", "3:16", "chapter 3, verse 16", FOUND),
        ("Which verse is quoted?", "John 3:16", "John 3.17", CONTRADICTED),
        ("Which version is shipped?", "3.10", "v3.10", FOUND),
        ("Which version is shipped?", "3.10", "3.1", CONTRADICTED),
        ("Write 1994 in Roman numerals.", "MCMXCIV", "MCMXCVI", CONTRADICTED),
        ("Which pope was it?", "XI", "Pius XI", FOUND),
    ],
)
def test_outcomes(question: str, reference: str, answer: str, outcome: Outcome) -> None:
    found = compare_special(question, reference, answer)
    assert found is not None
    assert found[1] is outcome


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Who won?", "Real Madrid", "Real Madrid"),
        ("How many people came?", "60", "sixty"),
        ("When was it?", "5-6 May", "5 May"),
        ("How many are left?", "0", "none of the 5"),
        ("What does it cost?", "", "5"),
    ],
)
def test_other_references_are_left_to_other_readers(question: str, reference: str, answer: str) -> None:
    assert compare_special(question, reference, answer) is None


@given(
    st.sampled_from(["score", "ratio", "version", "verse", "unit", "code", "Is it?", "coordinates", "roman numerals"]),
    st.text(max_size=30),
    st.text(max_size=80),
)
def test_no_text_raises_an_error(question: str, reference: str, answer: str) -> None:
    found = compare_special(question, reference, answer)
    assert found is None or (found[0] in Kind and found[1] in Outcome)


@pytest.mark.parametrize(("reference", "answer"), [("XI", "Pius XII"), ("VI", "Super Bowl XVI"), ("II", "Class III")])
def test_a_numeral_is_not_found_in_a_longer_one(reference: str, answer: str) -> None:
    assert compare_special("Which one was it?", reference, answer) is None
