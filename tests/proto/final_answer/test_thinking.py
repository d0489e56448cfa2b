"""Thinking, special tokens and roles around final answers."""

import pytest

from gradewire_proto.final_answer import MAX_READ_CHARACTERS, find_final_answer


@pytest.mark.parametrize(
    ("completion", "answer", "position"),
    [
        ("<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\nParis<|im_end|>", "Paris", "whole"),
        ("Paris<|end_of_text|>", "Paris", "whole"),
        ("ASSISTANT: Paris", "Paris", "whole"),
        ("Paris\n\nUser: next question", "Paris", "whole"),
        ("Paris\nQuestion: What is next?", "Paris", "whole"),
        ("Paris\n\nHuman: thanks", "Paris", "whole"),
        ("<think>hm</think><answer>Paris</answer>", "Paris", "tagged"),
        ("<|begin_of_solution|>Paris<|end_of_solution|>", "Paris", "whole"),
        ("<think>a</think>\n\n**Oslo**", "Oslo", "line"),
    ],
)
def test_only_the_spoken_turn_is_read(completion: str, answer: str, position: str) -> None:
    found = find_final_answer(completion)
    assert (found.text, found.position) == (answer, position)


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("", "empty"),
        ("<think>it must be", "during the thinking"),
        ("<|channel|>analysis<|message|>hm", "during the thinking"),
        ("assistantanalysisThe user wants", "during the thinking"),
        ("<think>x</think> ", "nothing follows"),
        ("<|im_end|>", "special tokens"),
        ("Do you mean the first or the second?", "question"),
        ("Let me think step by step. First, I need the distance, which is", "ends before"),
    ],
)
def test_there_is_a_reason_where_there_is_no_answer(completion: str, reason: str) -> None:
    found = find_final_answer(completion)
    assert (found.text, found.position, found.start, found.end) == ("", "nothing", None, None)
    assert reason in found.reason


def test_only_the_end_of_a_long_completion_is_read() -> None:
    found = find_final_answer("Answer: 1\n" + "word " * 50_000)
    assert found.position == "whole"
    assert len(found.text) <= MAX_READ_CHARACTERS
