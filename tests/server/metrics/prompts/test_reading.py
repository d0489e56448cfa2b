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
        ("It is not correct.", WORDS, "a question or a negation"),
        ("It isn't correct", WORDS, "a question or a negation"),
        ("Is it correct?", WORDS, "a question or a negation"),
        ("B, because A is worse", VERDICT, "several labels"),
        ("a and b", VERDICT, "none of the labels A, B, C"),
        ("Correctness matters", WORDS, "none of the labels"),
        ("4 out of 5", ("1", "5"), "none of the labels"),
    ],
)
def test_the_last_label_of_a_text(text: str, labels: tuple[str, ...], label: str) -> None:
    assert read(text, ReadingRule(Reading.LAST_LABEL, labels)).removeprefix("the judge wrote ").startswith(label)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("\\boxed{A} - CORRECT", "CORRECT"),
        ("CORRECT", "CORRECT"),
        ("\\boxed{A} - INCORRECT", "the judge wrote several labels"),
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
        ("13", "no label (1, 2, 3) as its last character"),
        ("2.3", "no label"),
        ("2/3", "no label"),
        ("rating=3 (sure)", "no label"),
        ("x3", "no label"),
    ],
)
def test_the_last_character_of_a_text(text: str, label: str) -> None:
    found = read(text, ReadingRule(Reading.LAST_CHARACTER, RATING))
    assert found.removeprefix("the judge wrote ").startswith(label)


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


@given(st.text(st.characters(exclude_characters="{}<>"), max_size=60), st.sampled_from(RULES))
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
