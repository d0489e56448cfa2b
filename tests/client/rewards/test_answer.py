"""The final answer of a completion."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.errors import InvalidRequest
from gradewire.rewards import extract_answer
from gradewire.rewards.answer import MAX_READ_CHARACTERS, after_thinking

# No braces and no backslash: the text of a box that needs no counting.
PLAIN = st.text(
    st.characters(exclude_characters="{}\\$*_`.<>|[]#:=\n\r", exclude_categories=["Cs", "Zs", "Cc"]), min_size=1
)
MARKS = [
    *("\\boxed{", "\\fbox{", "\\boxed 5", "{", "}", "\\{", "\\}", "$", "**", "x", ".", " ", "\n"),
    *("<think>", "</think>", "<answer>", "</answer>", "<|channel|>final<|message|>", "<|end|>"),
    *("answer is", "Answer:", "#### "),
]


@pytest.mark.parametrize(
    ("completion", "text", "place"),
    [
        (r"So \boxed{42}.", "42", "boxed"),
        (r"\boxed{\frac{1}{\sqrt{2}}} it is", r"\frac{1}{\sqrt{2}}", "boxed"),
        (r"first \boxed{1}, no: \boxed{2}", "2", "boxed"),
        (r"\boxed{1} and then \boxed{2", "1", "boxed"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}", "boxed"),
        (r"\boxed{a \} b}", r"a \} b", "boxed"),
        (r"\boxed{\boxed{7}}", "7", "boxed"),
        (r"\fbox{7}", "7", "boxed"),
        (r"\boxed 7 is right", "7", "boxed"),
        (r"$\boxed{\text{New York}}$", "New York", "boxed"),
        ("<answer>\n Paris \n</answer>", "Paris", "tagged"),
        (r"<answer>it is \boxed{5}</answer>", "5", "boxed"),
        ("<answer>1</answer> no <answer>2</answer> <answer>3", "2", "tagged"),
        ("The answer is Paris.", "Paris", "phrase"),
        ("The answer is 1. Wait. The final answer is: 2", "2", "phrase"),
        ("**Answer:** the U.S.", "the U.S.", "phrase"),
        ("**The answer is Paris**", "Paris", "phrase"),
        ("**Final Answer**: `snake_case`", "snake_case", "phrase"),
        ("Final Answer: The final answer is $42$. I hope it is correct.", "42", "phrase"),
        ("Final answer:\n\n  A*  \nbye", "A*", "phrase"),
        ("Work: 3 * 4\n#### 12", "12", "phrase"),
        ("答案是:四十二", "四十二", "phrase"),
        ("A small cat.", "A small cat.", "whole"),
        ("I answered him.", "I answered him.", "whole"),
    ],
)
def test_answers_are_found_where_models_write_them(completion: str, text: str, place: str) -> None:
    found = extract_answer(completion)
    assert (found.text, found.position) == (text, place)


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        (r"<think>maybe \boxed{1}</think>It is a dog.", "It is a dog."),
        (r"the template began it: \boxed{1}</think> \boxed{2}", "2"),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("<think>a</think>said<think>and never ends", "said"),
        ("◁think▷x◁/think▷y", "y"),
        ("[THINK]x[/THINK]y", "y"),
        ("<|begin_of_thought|>x<|end_of_thought|>y", "y"),
        ("<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>y<|return|>", "y"),
    ],
)
def test_what_is_thought_is_not_said(completion: str, text: str) -> None:
    assert extract_answer(completion).text == text


def after_each_end_of_thinking(text: str) -> str | None:
    """What is said after the thinking, which is cut off at one end after another."""
    spoken = text
    while (end := re.search(r"</think>|\[/THINK\]", spoken, re.IGNORECASE)) is not None:
        spoken = spoken[end.end() :]
    said, start, _ = re.sub(r"<THINK>|\[THINK\]", "<think>", spoken, flags=re.IGNORECASE).partition("<think>")
    if not start:
        return spoken
    return spoken[: len(said)] if said.strip() and spoken != text else None


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "[THINK]", "[/THINK]", "</Think>", "<Think>", "x", " ", "<"])).map(
        "".join
    )
)
def test_thinking_is_left_out_as_one_end_after_another_would_be(text: str) -> None:
    assert after_thinking(text) == after_each_end_of_thinking(text)


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        (r"<think>it must be \boxed{1}", "during the thinking"),
        ("well <think>hm", "during the thinking"),
        ("<|channel|>analysis<|message|>hm", "during the thinking"),
        ("<think>x</think>  ", "nothing follows"),
        (r"so \boxed{}", "empty"),
        ([], "empty"),
        ([{"role": "user", "content": "2"}], "empty"),
        ([{"role": "assistant", "content": None, "tool_calls": []}], "empty"),
    ],
)
def test_where_there_is_no_answer_the_reason_says_so(completion: object, reason: str) -> None:
    found = extract_answer(completion)  # type: ignore[arg-type]  # a list of mappings
    assert (found.text, found.position) == ("", "nothing")
    assert reason in found.reason


def test_of_a_chat_the_last_message_of_the_assistant_is_read() -> None:
    chat = [
        {"role": "assistant", "content": "the answer is 1"},
        {"role": "user", "content": "the answer is 2"},
        {"role": "assistant", "content": [{"type": "text", "text": "<think>x</think>"}, {"type": "text", "text": "3"}]},
        {"role": "tool", "content": "4"},
    ]
    assert extract_answer(chat).text == "3"


@pytest.mark.parametrize(
    ("extraction", "text", "reason"),
    [("boxed", "", "boxed"), ("tagged", "", "<answer>"), ("phrase", "4", ""), ("whole", "Answer: 4", "")],
)
def test_one_place_can_be_asked_for(extraction: str, text: str, reason: str) -> None:
    found = extract_answer("Answer: 4", extraction)  # type: ignore[arg-type]  # one of the literals
    assert found.text == text
    assert reason in found.reason


def test_a_function_of_ones_own_reads_what_is_said() -> None:
    assert extract_answer("<think>a</think>x; y ", lambda spoken: spoken.split(";")[1]).text == "y"
    assert extract_answer("x", lambda _: "").position == "nothing"


def test_an_unknown_place_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="extraction='boxes': give one of auto, boxed"):
        extract_answer("x", "boxes")  # type: ignore[arg-type]  # the test's point


@given(PLAIN, st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(lambda text: "\\" not in text))
def test_any_text_in_a_box_comes_back_whatever_stands_before(content: str, before: str) -> None:
    marked = before.replace("<", " ").replace("◁", " ").replace("[", " ")
    assert extract_answer(f"{marked}\\boxed{{{content}}}", "boxed").text == content.strip()


@given(
    st.recursive(st.just("x"), lambda inner: st.tuples(inner, inner).map(lambda pair: "{" + pair[0] + "}" + pair[1]))
)
def test_braces_nest_to_any_depth(content: str) -> None:
    assert extract_answer(f"\\boxed{{{content}}} }} {{", "boxed").text == content


@given(st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=3))).map("".join))
def test_nothing_that_a_model_writes_raises(completion: str) -> None:
    found = extract_answer(completion)
    assert bool(found.text) == (found.position != "nothing") == (not found.reason)


@pytest.mark.parametrize("mark", [*MARKS, "answer ", "answer  is ", "\\boxed   ", "$$", "<|channel|>", "\\text{"])
def test_hostile_repeats_are_read_in_time(mark: str) -> None:
    # What is quadratic would take hours here: the suite's own time limit ends it.
    completion = mark * (2_000_000 // len(mark))
    assert len(extract_answer(completion).text) <= MAX_READ_CHARACTERS
