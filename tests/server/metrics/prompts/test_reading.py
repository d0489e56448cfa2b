"""Which label a judge's text states, by each of the rules of published protocols."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import Failure, Status
from gradewire_server.metrics.prompts.reading import Reading, ReadingRule, described, example, read_label

RATING = ("1", "2", "3")
VERDICT = ("A", "B", "C")
WORDS = ("Correct", "Incorrect")


def read(text: str, rule: ReadingRule, *, whole: bool = True) -> str:
    """The label, or the reason why there is none."""
    found = read_label(text, rule, whole=whole)
    if isinstance(found, Failure):
        assert found.status is Status.UNPARSABLE
        return found.message
    return rule.labels[found]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Most people (4 of 5) say so. So rating=3", "3"),
        ("2 of 3 people say so, so rating=1", "1"),
        ("First I thought rating=3. No: so rating = **1**.", "1"),
        ("The Rating:\n2", "2"),
        ("rating is 2", "2"),
        ("rating=3/3", "3"),
        ("rating=3.0", "3"),
        ("rating=[[2]]", "2"),
        ("Rating: $\\boxed{\\text{2}}$ - fair", "2"),
        ("<think>rating=1</think>rating=3", "3"),
        ("rating=4", 'no label after its last "rating"'),
        ("rating=2.5", 'no label after its last "rating"'),
        ("rating=2/5", 'no label after its last "rating"'),
        ("rating=12", 'no label after its last "rating"'),
        ("rating=3. The rating is hard to give", 'no label after its last "rating"'),
        ("I am berating=3 ratings=2", 'no "rating"'),
        ("3", 'no "rating"'),
        ("<think>rating=3", "nothing after its thoughts"),
        (" \n", "nothing"),
        ("", "nothing"),
    ],
)
def test_the_label_after_the_last_opening(text: str, label: str) -> None:
    assert (
        read(text, ReadingRule(Reading.LAST_LABEL, RATING, "rating")).removeprefix("the judge wrote ").startswith(label)
    )


@pytest.mark.parametrize(
    ("text", "labels", "label"),
    [
        ("The answer agrees.\n\nCorrect", WORDS, "Correct"),
        ("It says 5. That is incorrect.", WORDS, "Incorrect"),
        ("At first it seems correct. Judgement: INCORRECT", WORDS, "Incorrect"),
        ("\\boxed{B}", VERDICT, "B"),
        ("A good try, but it stops early.\nC", VERDICT, "C"),
        ("(4 of 5) say so. So rating=3", RATING, "3"),
        ("[[A]]", ("[[A]]", "[[B]]"), "[[A]]"),
        ("8 out of 10 criteria are met. 10", ("1", "10"), "10"),
        ("It is not correct.", WORDS, "a label only in a question"),
        ("It isn't correct", WORDS, "a label only in a question"),
        ("Is it correct?", WORDS, "a label only in a question"),
        ("B, because A is worse", VERDICT, "a label only in"),
        ("a and b", VERDICT, "none of the labels"),
        ("Correctness matters", WORDS, "none of the labels"),
        ("4 out of 5", ("1", "5"), "none of the labels"),
    ],
)
def test_the_last_label_of_a_text(text: str, labels: tuple[str, ...], label: str) -> None:
    assert read(text, ReadingRule(Reading.LAST_LABEL, labels)).removeprefix("the judge wrote ").startswith(label)


COMPASS = ReadingRule(
    Reading.LAST_LABEL, ("A", "CORRECT", "B", "INCORRECT", "C", "INVALID"), meanings=(1, 1, 0, 0, None, None)
)
XVERIFY = ReadingRule(Reading.LAST_LABEL, WORDS)
DIGITS = ReadingRule(Reading.LAST_LABEL, RATING)
LETTERS = ReadingRule(Reading.LAST_LABEL, VERDICT)
NO_LABEL = "the judge wrote "


@pytest.mark.parametrize(
    ("rule", "text", "label"),
    [
        (COMPASS, "B\n\nA common error here.", "B"),
        (COMPASS, "B. A typical mistake was made by the student.", "B"),
        (COMPASS, "INCORRECT. A different city was named.", "INCORRECT"),
        (COMPASS, "Correct? No, incorrect.", "INCORRECT"),
        (COMPASS, "INCORRECT\nVitamin C was asked.", NO_LABEL),
        (COMPASS, "B: INCORRECT", NO_LABEL),
        (COMPASS, "A: CORRECT\nB: INCORRECT\nC: INVALID", NO_LABEL),
        (COMPASS, "A\nB", NO_LABEL),
        (COMPASS, "A? no", NO_LABEL),
        (COMPASS, "The answer would be A if it were right", NO_LABEL),
        (COMPASS, "the answer is A, not B", NO_LABEL),
        (LETTERS, "Answer: A", "A"),
        (LETTERS, "(B)", "B"),
        (LETTERS, "[A]", "A"),
        (LETTERS, "A\nThe answer is not wrong.", "A"),
        (LETTERS, "A (it agrees)", "A"),
        (LETTERS, "B, since the year differs", "B"),
        (LETTERS, '{"verdict": "C"}', "C"),
        (LETTERS, "C, D and E are vitamins.", NO_LABEL),
        (LETTERS, "Vitamin C", NO_LABEL),
        (XVERIFY, "Incorrect. The correct answer is 12.", "Incorrect"),
        (XVERIFY, "[Correct]", "Correct"),
        (XVERIFY, "The correct answer is Paris, but the candidate said London.", NO_LABEL),
        (XVERIFY, "correct only if the year is ignored", NO_LABEL),
        (XVERIFY, "Correct if you ignore the year.", NO_LABEL),
        (XVERIFY, "Correct answer: Paris", NO_LABEL),
        (XVERIFY, "Far from correct.", NO_LABEL),
        (XVERIFY, "It fails to be correct.", NO_LABEL),
        (XVERIFY, "It is anything but correct.", NO_LABEL),
        (XVERIFY, "No way is this correct.", NO_LABEL),
        (XVERIFY, "partially correct", NO_LABEL),
        (XVERIFY, "without being correct", NO_LABEL),
        (XVERIFY, "Correct: no", NO_LABEL),
        (XVERIFY, "Correct... no, wait", NO_LABEL),
        (DIGITS, "I give 2. There were 3 dogs.", "2"),
        (DIGITS, "I'd say 2\n\n(1 = wrong)", "2"),
        (DIGITS, "2 (out of 10)", NO_LABEL),
        (DIGITS, "-1", NO_LABEL),
        (DIGITS, "rate 2-3", NO_LABEL),
    ],
)
def test_a_label_counts_only_if_it_is_stated(rule: ReadingRule, text: str, label: str) -> None:
    assert read(text, rule).startswith(label)


VISIT = ReadingRule(Reading.LAST_LABEL, ("A", "B"), "Overall, Response")
JUDGMENT = ReadingRule(Reading.LAST_LABEL, ("CORRECT", "INCORRECT", "INVALID"), "Final Judgment:")
PRESET = ReadingRule(Reading.LAST_LABEL, ("A", "B"), "Better answer:")
SCALE = ReadingRule(Reading.LAST_LABEL, RATING, "Rating:")


@pytest.mark.parametrize(
    ("rule", "text", "label"),
    [
        (VISIT, "Overall, Response A is better.", "A"),
        (VISIT, "Overall, **Response B** is better", "B"),
        (VISIT, 'Overall, Response "B" wins', "B"),
        (VISIT, "Overall, Response A is better than Response B.", "A"),
        (VISIT, "Overall, Response A is better because Response B is not helpful.", "A"),
        (VISIT, "Overall, Response A is the better choice.\nResponse B is not bad.", "A"),
        (VISIT, "Overall, Response B is worse than Response A.", NO_LABEL),
        (VISIT, "Overall, Response A is not better.", NO_LABEL),
        (VISIT, "Overall, Response A and Response B are equally good", NO_LABEL),
        (VISIT, "Overall, Response A or Response B?", NO_LABEL),
        (VISIT, "Overall, Response A/B", NO_LABEL),
        (VISIT, "Overall, Response A is less helpful, so B wins", NO_LABEL),
        (VISIT, "Overall, Response A is beaten by the other.", NO_LABEL),
        (VISIT, "Overall, Response A is good, since it is short, but so Response B", NO_LABEL),
        (VISIT, "Overall, Response A is better. But Response B wins.", NO_LABEL),
        (VISIT, "Overall, Response A is better. So the winner is B", NO_LABEL),
        (VISIT, "Overall, Response A is good.\nOverall, both are", NO_LABEL),
        (VISIT, "I can't say that Overall, Response A", NO_LABEL),
        (PRESET, "Better answer: B is not better than A", NO_LABEL),
        (PRESET, "Better answer: B", "B"),
        (JUDGMENT, "Final Judgment: CORRECT? No, INCORRECT", NO_LABEL),
        (JUDGMENT, "Final Judgment: CORRECT/INCORRECT", NO_LABEL),
        (JUDGMENT, "Final Judgment: CORRECT if year ignored", NO_LABEL),
        (JUDGMENT, "Final Judgment: CORRECT or INCORRECT?", NO_LABEL),
        (JUDGMENT, "Final Judgment: CORRECT because it fits, only if dates are ignored", NO_LABEL),
        (JUDGMENT, "Final Judgment: CORRECT\nOn reflection, INCORRECT", NO_LABEL),
        (JUDGMENT, "## Final Judgment\nCORRECT", "CORRECT"),
        (JUDGMENT, "Final Judgment:\n\\boxed{A} - CORRECT", "CORRECT"),
        (JUDGMENT, "Final Judgment: $\\boxed{\\text{INCORRECT}}$", "INCORRECT"),
        (JUDGMENT, "Final Judgment: INCORRECT, because it is not Paris.", "INCORRECT"),
        (SCALE, "Rating: 2-3", NO_LABEL),
        (SCALE, "Rating: 1 or 2", NO_LABEL),
        (SCALE, "Rating: 2 to 3", NO_LABEL),
        (SCALE, "Rating: 1\u20132", NO_LABEL),
        (SCALE, "Rating: 2 (out of 10)", NO_LABEL),
        (SCALE, "Rating: 3 stars out of 5", NO_LABEL),
        (SCALE, "Rating: 2+", NO_LABEL),
        (SCALE, "not Rating: 3", NO_LABEL),
        (SCALE, "Rating: 3!", "3"),
        (SCALE, "It is not there, so Rating: 1 because nobody says 2.", "1"),
        (SCALE, "Rating: 1\n\nThe answer isn't right.", "1"),
    ],
)
def test_the_rest_of_a_sentence_may_deny_the_label_after_an_opening(rule: ReadingRule, text: str, label: str) -> None:
    assert read(text, rule).startswith(label)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("\\boxed{A} - CORRECT", "CORRECT"),
        ("CORRECT", "CORRECT"),
        ("\\boxed{A} - INCORRECT", "the judge wrote a label only in"),
    ],
)
def test_labels_with_one_meaning_agree(text: str, label: str) -> None:
    found = read(text, ReadingRule(Reading.LAST_LABEL, ("A", "B", "CORRECT", "INCORRECT"), meanings=(1, 0, 1, 0)))
    assert found.startswith(label)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("So rating=3", "3"),
        ("So rating=3.\n", "3"),
        ('"rating": **2**', "2"),
        ("1", "1"),
        ("13", "no label (1, 2, 3) that is announced or alone as its last character"),
        ("2.3", "no label"),
        ("2/3", "no label"),
        ("rating=3 (sure)", "no label"),
        ("x3", "no label"),
        ("rating=3)", "3"),
        ("2 of 3 say so, so rating=1", "1"),
        ("It is not in the list, so I give it a 1", "1"),
        ("2 out of 3", "no label"),
        ("rating 2 of 3", "no label"),
        ("2 / 3", "no label"),
        ("from 1 to 3", "no label"),
        ("from rating 1 to rating 3", "no label"),
        ("rating 2 - 3", "no label"),
        ("1\u20133", "no label"),
        ("2: 3", "no label"),
        ("rating = 3?", "no label"),
        ("1\n2\n3", "several labels on lines of their own"),
    ],
)
def test_the_last_character_of_a_text(text: str, label: str) -> None:
    found = read(text, ReadingRule(Reading.LAST_CHARACTER, RATING))
    assert found.removeprefix("the judge wrote ").startswith(label)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("[A]", "A"),
        ("(A)", "A"),
        ("\\boxed{A}", "A"),
        ("$\\boxed{\\text{B}}$.", "B"),
        ("Vitamins are named.\n**C**", "C"),
        ("The answer is A", "A"),
        ("not A", NO_LABEL),
        ("I choose B, not A", NO_LABEL),
        ("don't choose A", NO_LABEL),
        ("Vitamin C", NO_LABEL),
        ("A or B", NO_LABEL),
        ("A/B", NO_LABEL),
        ("U.S.A.", NO_LABEL),
    ],
)
def test_a_letter_at_the_end_must_be_alone_or_announced(text: str, label: str) -> None:
    assert read(text, ReadingRule(Reading.LAST_CHARACTER, VERDICT)).startswith(label)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('{"pred": "yes", "score": 4}', "4"),
        ("{'pred': 'yes', 'score': 4}", "4"),
        ("{'pred': 'no', 'score': '2',}", "2"),
        ('```json\n{"score": 5.0}\n```', "5"),
        ('{"score": 1} and, on reflection, {"score": 5}', "5"),
        ('{"score": 1} {"other": 5}', "1"),
        ('{"why": "they wrote {\\"score\\": 5}", "score": 0}', "0"),
        ("{'why': \"they wrote 'score': 5, 'x'\", 'score': 0}", "0"),
        ('{"parts": {"score": 5}, "score": 1}', "1"),
        ("{'parts': {'score': 5}, 'score': 1}", "1"),
        ('<think>{"score": 5}</think>{"score": 2}', "2"),
        ('{"score": 4, "score": 1}', "several values"),
        ('{"score": 7}', "'7' in the field"),
        ('{"score": 4.5}', "'4.5' in the field"),
        ('{"score": true}', "'true' in the field"),
        ('{"score": null}', "'None' in the field"),
        ('{"Score": 4}', "no dictionary with the field"),
        ("score: 4", "no dictionary with the field"),
        ("{'score': 1", "no dictionary with the field"),
        ('{"score": 4/10}', "'4/10' in the field"),
        ("{'score': 3-4}", "'3-4' in the field"),
        ("{'score': 5 (out of 10)}", "'5 (out of 10)' in the field"),
        ("{'score': 4 out of 5}", "'4 out of 5' in the field"),
        ("{'score': '4' of 5}", "\"'4' of 5\" in the field"),
        ('{"score": "4/5"}', "'4/5' in the field"),
        ("{'score': 1} {'score': 4/10}", "'4/10' in the field"),
        ("{'score': 1} {'score': {'of': 5}, 'x': y}", "'{' in the field"),
        ("{'why': 'it's fine, isn't it', 'score': 4}", "4"),
        ("{'score': 2, 'why': 'it's 'score': 5'}", "2"),
        ('{"score": 1} ' * 31, "1"),
        ('{"score": 1} ' * 40 + '{"score": 5}', "no dictionary with the field"),
        ('{"score": 1', "no dictionary with the field"),
    ],
)
def test_a_field_of_the_last_dictionary(text: str, label: str) -> None:
    rule = ReadingRule(Reading.DICTIONARY, tuple("012345"), field="score")
    assert read(text, rule).removeprefix("the judge wrote ").startswith(label)
    # A dictionary that is whole can be read from a text that was cut off later.
    assert read(text, rule, whole=False).removeprefix("the judge wrote ").startswith(label)


@pytest.mark.parametrize("reading", [Reading.LAST_LABEL, Reading.LAST_CHARACTER])
def test_a_text_that_was_cut_off_may_not_have_said_its_last_word(reading: Reading) -> None:
    rule = ReadingRule(reading, RATING)
    assert read("So rating=3", rule) == "3"
    assert read("So rating=3", rule, whole=False).startswith("the judge wrote a text that was cut off before its end")


def test_thoughts_are_left_out_before_the_end_of_a_text_is_taken() -> None:
    draft = "<think>" + "x " * 20_000
    for rule, verdict in (
        (ReadingRule(Reading.DICTIONARY, RATING, field="score"), "{'score': 3}"),
        (ReadingRule(Reading.LAST_CHARACTER, RATING), "\n3"),
        (ReadingRule(Reading.LAST_LABEL, RATING), "\n3"),
        (ReadingRule(Reading.LAST_LABEL, RATING, "rating"), "rating=3"),
    ):
        for whole in (True, False):
            assert read(f"{draft}{verdict}", rule, whole=whole) == "the judge wrote nothing after its thoughts"
        assert read(f"{draft}{verdict}</think>{verdict}", rule) == "3"


RULES = (
    ReadingRule(Reading.LAST_LABEL, RATING, "rating"),
    ReadingRule(Reading.LAST_LABEL, ("[[A]]", "a b", "10", "1"), "Final verdict:"),
    ReadingRule(Reading.LAST_LABEL, WORDS),
    ReadingRule(Reading.LAST_CHARACTER, VERDICT),
    ReadingRule(Reading.DICTIONARY, ("yes", "no"), field="pred"),
)
TEXTS = st.text(st.sampled_from("rating=123ABC{}'\"\\:,. \n[]<think>/pred yesno?not"), max_size=300)


@given(TEXTS | st.text(max_size=100), st.sampled_from(RULES), st.booleans())
def test_any_text_has_a_label_or_a_reason(text: str, rule: ReadingRule, whole: bool) -> None:  # noqa: FBT001 - drawn
    found = read_label(text, rule, whole=whole)
    if isinstance(found, Failure):
        assert found.status is Status.UNPARSABLE
        assert found.message.startswith("the judge wrote ")
    else:
        assert 0 <= found < len(rule.labels)


@given(st.text(st.sampled_from("xyz wvu.,;(\n\u00e9\u4e2d"), max_size=60), st.sampled_from(RULES))
def test_a_text_that_ends_as_asked_is_read_whatever_stands_before(reason: str, rule: ReadingRule) -> None:
    for place, label in enumerate(rule.labels):
        if rule.reading is Reading.DICTIONARY:
            ending = json.dumps({"why": reason, rule.field: label})
        else:
            ending = f"{rule.opening} {label}".strip()
        assert read_label(f"{reason}\n\n{ending}", rule, whole=True) == place


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.reading)
def test_an_example_is_readable(rule: ReadingRule) -> None:
    assert read_label(example([rule], "Because."), rule, whole=True) == 0
    assert described(rule)


@pytest.mark.parametrize(
    "text", ["{" * 100_000, "{'" * 50_000, '{"\\"' * 30_000, "rating " * 30_000, "<think>" * 20_000, "1/" * 50_000]
)
def test_hostile_texts_are_read_at_once(text: str) -> None:
    for rule in RULES:
        assert isinstance(read_label(text, rule, whole=True), Failure)
