"""What every metric refuses to grade."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import Item, ReferenceEntry, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Vectors
from gradewire_server.metrics.common import (
    MAX_QUESTION_CHARACTERS,
    TIE,
    check_item,
    check_question,
    check_references,
    first_of_the_highest,
    is_blank,
    is_cut,
)
from gradewire_server.metrics.encoder.bertscore import Bertscore, BertscoreParameters
from gradewire_server.metrics.smile.formula import SmileParameters
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.scoring.corpus import distinct_references

UNSEEN = ["", " ", " \t\n", "\0", "\0\x01\x7f", "\u200b", "\ufeff \u2060", "\u00ad", "\u3000\u200e\u202e"]
UNSEEN += [
    "\u2800",
    "\u3164",
    "\u115f\u1160",
    "\uffa0 \u2800",
    "\u034f",
    "\u17b4\u17b5",
    "\u180b",
    "\ufe0f",
    "\U000e0100",
]
SEEN = [
    "a",
    "\0a",
    "?",
    "\u200b!",
    "\u200b" * 1000 + "\u6f22",
    "_",
    "\u0301",
    "\U0001f389",
    "\u200d\ufe0f\u2764",
    "\u3164a",
    "\u2801",
    "\u1100\u1160",
]


@pytest.mark.parametrize("text", UNSEEN)
def test_a_text_of_which_nothing_is_seen_is_blank(text: str) -> None:
    assert is_blank(text)
    prediction = check_item(Item("1", "", ("a",), text))
    assert prediction is not None
    assert prediction.status is Status.EMPTY_PREDICTION
    reference = check_references(("a", text))
    assert reference is not None
    assert reference.status is Status.INVALID_INPUT
    assert reference.message.startswith("references[1]")


@pytest.mark.parametrize("text", UNSEEN)
def test_a_blank_synthetic_answer_is_invalid(text: str) -> None:
    entry = ReferenceEntry("", ("a", "b"), ("It is a.", text))
    program = Smile().prepare(entry, SmileParameters(synthetic="inline"))  # type: ignore[arg-type] # as it is sent
    with pytest.raises(StopIteration) as stop:
        next(program)
    assert stop.value.value.message.startswith("synthetic_answers[1]")


@pytest.mark.parametrize("text", SEEN)
def test_a_text_of_which_anything_is_seen_is_not(text: str) -> None:
    assert check_item(Item("1", "", (text,), text)) is None


def test_a_question_of_a_megabyte_is_not_copied_for_every_reference() -> None:
    # With a thousand references that was 1.4 GB. In an answer it is a long text like others; sfve keeps its end.
    metric, parameters = Bertscore(), BertscoreParameters(with_question=True)
    question = "q" * (MAX_QUESTION_CHARACTERS + 1)
    item = Item("1", question, ("a",), "a")
    entry = ReferenceEntry(question, ("a",))
    for program in (metric.score(item, parameters, NO_MODEL), metric.prepare(entry, parameters)):
        with pytest.raises(StopIteration) as stop:
            next(program)
        assert stop.value.value.status is Status.INVALID_INPUT
        assert stop.value.value.message.startswith("question: has 32769 characters")
    assert check_question(question[:-1]) is None
    assert distinct_references(((question, ("a",)), ("q", ("b",))), with_question=True) == ["q b"]


@given(st.text(st.characters(categories=["Cc", "Cf", "Zs", "Zl", "Zp", "Lu", "Po", "Mn", "So"]), max_size=4))
def test_blank_is_what_the_definition_says(text: str) -> None:
    # Unicode's Default_Ignorable_Code_Point beyond Cf, and the blank of Braille.
    fillers = {0x2800, 0x2065, *range(0xFFF0, 0xFFF9), 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0}
    selectors = {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}
    ignored = fillers | selectors
    seen = [
        c for c in text if not c.isspace() and unicodedata.category(c) not in {"Cc", "Cf"} and ord(c) not in ignored
    ]
    assert is_blank(text) == (not seen)


NEAR = st.sampled_from([0.5, 0.5 - TIE / 2, 0.5 - TIE, 0.5 - 1.1 * TIE, 0.5 - 2 * TIE, 0.25, -1.0, 1.0])


@given(st.lists(NEAR | st.floats(-1, 1, width=32), min_size=1, max_size=100))
def test_few_and_many_values_have_the_same_first_of_the_highest(values: list[float]) -> None:
    array = np.array(values, np.float32)
    assert first_of_the_highest(array) == int((array >= array.max() - TIE).argmax())


@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=3))
def test_answers_are_cut_if_one_of_their_texts_is(cut: list[list[bool]]) -> None:
    answers = [Vectors(np.zeros((len(each), 1), np.float32), np.array(each, np.bool_)) for each in cut]
    assert is_cut(*answers) is any(map(any, cut))
