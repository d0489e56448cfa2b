"""Tests of long texts: marks are found anywhere, all else near the end, in a bounded number of steps."""

import subprocess
import sys
from typing import Final

import pytest
from tests.hostile.gateway_readers import steps

from gradewire_proto.final_answer import MAX_READ_CHARACTERS, find_final_answer

PROSE: Final = "This sentence explains a step of the work in other words. " * 700


@pytest.mark.parametrize(
    "mark",
    [
        *("\\boxed{42}", "\\fbox{42}", "\\boxed{\\text{42}}", "<answer>42</answer>", "<ANSWER>42</ANSWER>"),
        *("[ANSWER]42[/ANSWER]", '{"answer": "42"}', "{'answer': 42}", '{"final_answer": "42"}'),
    ],
)
def test_a_mark_is_found_far_before_the_end(mark: str) -> None:
    assert find_final_answer(f"{PROSE}{mark}\n\n{PROSE}").text == "42"


def test_a_tag_around_a_long_text_ends_where_it_is_closed() -> None:
    found = find_final_answer(f"{PROSE}<answer>{PROSE}</answer>")
    assert (found.position, found.text) == ("tagged", PROSE.strip().removesuffix("."))
    assert find_final_answer(f"<answer>{PROSE}The answer is 42.</answer>").text == "42"


def test_the_last_of_many_boxes_counts_and_escaped_ones_do_not() -> None:
    assert find_final_answer("\\boxed{1} " * 1000 + "\\boxed{2} \\\\boxed{3}" + " \\boxed{}" * 20).text == "2"
    assert find_final_answer("{" * 100_000 + "\\boxed{2}" + "}" * 90_000).text == "2"


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|eot_id|>", "</s>"])
def test_an_end_of_turn_is_found_in_the_middle(mark: str) -> None:
    assert find_final_answer(f"{PROSE}The answer is 42.{mark}{PROSE}").text == "42"


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_thinking_is_found_in_any_case(case: type[str]) -> None:
    assert find_final_answer(f"{case('<think>')}{PROSE}{case('</think>')}42").text == "42"
    assert find_final_answer(f"İ<think>{PROSE}</think>42").text == "42"


@pytest.mark.parametrize(
    "part",
    ["a. ", "!", ",", "\n", "<", "<s>", "{", "\\boxed{", "<answer>", '"answer": ', "answer:\n", "final ", "不是"],
)
def test_steps_do_not_grow_beyond_the_part_that_is_searched(part: str) -> None:
    find_final_answer("42")
    half, whole = (part * (size // len(part)) for size in (100_000, 200_000))
    most = steps(lambda: find_final_answer(whole))
    assert most <= 1.1 * steps(lambda: find_final_answer(half)) + 100
    assert most < 60_000


def test_the_search_is_imported_when_it_is_first_used() -> None:
    code = (
        "import sys, gradewire.rewards as rewards; slow = 'gradewire_proto.final_answer.find'; "
        "before = slow in sys.modules; rewards.extract_answer('42'); print(before, slow in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_only_the_end_of_a_text_is_read() -> None:
    assert find_final_answer("\\boxed{1}" + "x" * MAX_READ_CHARACTERS).position != "boxed"
