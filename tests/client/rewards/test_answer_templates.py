"""Completions in texts that hold the prompt too."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.rewards.answer import completion_in, without_end

TEXT = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"], exclude_characters="<|>[]｜"), min_size=1)  # noqa: RUF001 - DeepSeek's bar

END = re.compile(
    r"(?:<\|(?:im_end|eot_id|endoftext|end_of_text|end|eom_id)\|>|</s>|<end_of_turn>|<｜end▁of▁sentence｜>|<pad>|\s)+\Z"  # noqa: RUF001 - as above
)
"""The marks at the end of a turn, searched from the beginning: plain, and quadratic where blanks have no end."""
PIECES = (
    *("<|im_end|>", "<|end|>", "</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "<pad>", "<|eot_id|>"),  # noqa: RUF001 - as above
    *(" ", "\n", "\u2028", "\x1c", "x", "<", ">", "|>", "<|im_end", "pad>"),
)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12).map("".join))
def test_the_end_of_a_turn_is_the_one_that_a_search_from_the_beginning_finds(text: str) -> None:
    assert without_end(text) == END.sub("", text)


@given(
    prompt=TEXT, said=TEXT, end=st.sampled_from(["", "<|im_end|>", "<|eot_id|>\n", "</s>", "<end_of_turn>\n<pad><pad>"])
)
def test_what_follows_the_prompt_is_the_completion(prompt: str, said: str, end: str) -> None:
    query = prompt + "\n" + said + end
    assert completion_in(query, prompt + "\n") == said


@pytest.mark.parametrize(
    "opening",
    [
        "<|im_start|>assistant\n",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<start_of_turn>model\n",
        "[/INST]",
    ],
)
def test_a_template_tells_it_where_the_prompt_was_changed(opening: str) -> None:
    assert completion_in(f"<s> asked {opening}said</s>", "as ked") == "said"


def test_without_prompt_and_template_it_cannot_be_told() -> None:
    assert completion_in("asked said", "other") is None
    assert completion_in("asked said", "") is None


def test_only_the_end_of_a_turn_is_taken_away() -> None:
    assert without_end("a </s> b <|im_end|>") == "a </s> b"
    assert len(without_end("x" * 500_000 + "</s>" * 500)) == 500_000
