"""Verdicts as bytes: exactly what they were, and nothing where the bytes are no verdict."""

import math
import struct
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.judges.verdicts.codec import canonical, decode_answer, encode_answer, why_no_answer

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
COUNT = st.none() | st.integers(0, 2**32 - 2)
TURN = st.builds(Turn, st.sampled_from(Role), TEXT)
PROMPT = st.builds(JudgePrompt, st.lists(TURN, max_size=3).map(tuple), TEXT, TEXT, TEXT, TEXT)
NEED = st.one_of(
    st.builds(Choose, st.just(""), PROMPT, st.lists(TEXT, min_size=2, max_size=4, unique=True).map(tuple)),
    st.builds(Generate, st.just(""), PROMPT, st.integers(1, 99), st.lists(TEXT, max_size=2).map(tuple)),
)


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    weights = draw(st.lists(st.floats(1e-9, 1), min_size=2, max_size=6))
    shares = tuple(weight / math.fsum(weights) for weight in weights)
    return Choice(shares, draw(st.none() | st.floats(0, 1)), draw(COUNT), draw(st.booleans()), draw(COUNT))


def need_of(answer: Choice | Generated) -> Choose | Generate:
    prompt = JudgePrompt((), "lead")
    if isinstance(answer, Choice):
        return Choose("", prompt, tuple(map(str, range(len(answer.probabilities)))))
    return Generate("", prompt, 9)


GENERATED = st.builds(Generated, TEXT, st.booleans(), COUNT, COUNT, st.booleans())
ANSWER = choices() | GENERATED


@given(ANSWER)
def test_an_answer_comes_back_bit_by_bit(answer: Choice | Generated) -> None:
    assert why_no_answer(need_of(answer), answer) == ""
    assert decode_answer(need_of(answer), encode_answer(answer)) == answer


@given(st.binary(min_size=2, max_size=80))
def test_bytes_that_are_no_verdict_are_none_and_never_an_answer_that_cannot_be(body: bytes) -> None:
    for need in (
        need_of(Choice((0.5, 0.5), None, 1)),
        need_of(Generated("", complete=True, prompt_tokens=0, generated_tokens=0)),
    ):
        answer = decode_answer(need, body)
        assert answer is None or why_no_answer(need, answer) == ""


@given(ANSWER, st.data())
def test_a_verdict_of_other_labels_is_none(answer: Choice | Generated, data: st.DataObject) -> None:
    other = data.draw(NEED)
    decoded = decode_answer(other, encode_answer(answer))
    assert decoded is None or why_no_answer(other, decoded) == ""


def test_a_text_that_no_wire_can_carry_is_no_answer() -> None:
    broken = Generated("\ud800", complete=True, prompt_tokens=1, generated_tokens=1)
    assert why_no_answer(need_of(broken), broken)


@given(NEED, NEED)
def test_only_equal_needs_have_equal_names(one: Choose | Generate, other: Choose | Generate) -> None:
    assert (canonical(one, "int8") == canonical(other, "int8")) == (one == other)
    assert canonical(one, "int8") != canonical(one, "q4")


@given(PROMPT, TEXT, TEXT)
def test_text_that_moves_from_one_field_to_the_next_makes_another_name(prompt: JudgePrompt, a: str, b: str) -> None:
    def named(**fields: str) -> str:
        return canonical(Generate("", replace(prompt, **fields), 5), "c")

    if a:
        assert named(lead=a, prediction=b) != named(lead="", prediction=a + b)
        assert named(tail=a, opening=b) != named(tail="", opening=a + b)


def test_choices_kept_before_written_tokens_were_counted_are_still_known() -> None:
    need = need_of(Choice((0.25, 0.75), None, 1))

    def kept(prompt_tokens: int) -> bytes:
        return struct.pack("<cIdH2d", b"c", prompt_tokens, 0.5, 2, 0.25, 0.75) + b"\0\0"

    assert decode_answer(need, kept(7)) == Choice((0.25, 0.75), 0.5, 7)
    assert decode_answer(need, kept(0)) == Choice((0.25, 0.75), 0.5, None)
