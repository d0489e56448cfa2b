"""Promises of the search as a whole: offsets, wrappers, idempotence, hostile input, and the development half."""

import json
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.final_answer import find_final_answer

ROWS: Final[list[dict[str, Any]]] = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "examples/final_answers/development.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
LEAST_SHARE: Final = 0.97
LEAST_ROWS: Final = 15
"""Languages with fewer rows are counted together."""

SHORT: Final = st.lists(st.from_regex(r"[B-Zb-z][a-z]{3,9}", fullmatch=True), min_size=1, max_size=3).map(" ".join)
"""Short answers of made-up words."""
WRAPPERS: Final = [
    *("{}", "{}.", " {}\n", "**{}**", "`{}`", "```\n{}\n```", "<think>x</think>{}", "{}<|im_end|>", "{}</s>"),
    *("<answer>{}</answer>", "<final_answer>\n{}\n</final_answer>", '{{"answer": "{}"}}', "[ANSWER]{}[/ANSWER]"),
    *("\\boxed{{{}}}", "$\\boxed{{\\text{{{}}}}}$", "Finish[{}]", "[[{}]]", '```json\n{{"final_answer": "{}"}}\n```'),
    *("Answer: {}", "**Answer:** {}", "**Final answer: {}**", "### Final Answer\n\n{}", "#### {}", "> Answer: {}"),
    *("The answer is {}.", "Final answer — {}", "Antwort: {}", "Die Antwort lautet {}.", "Réponse : {}"),
    *(
        "La réponse est {}.",
        "Respuesta: {}",
        "La respuesta es {}.",
        "答案是{}。",
        "答案：{}",
        "Risposta: {}",
        "Resposta: {}",
    ),
    *(
        "Ответ: {}",
        "答え：{}",
        "정답: {}",
        "Antwoord: {}",
        "Odpowiedź: {}",
        "~~wrong~~ {}",
        "Answer: wrong\nAnswer: {}",
    ),
]
MARKS: Final = [
    *(
        "\\boxed{",
        "\\fbox{",
        "\\boxed 5",
        "{",
        "}",
        "[",
        "[[",
        "(",
        ")",
        '"',
        "'",
        "`",
        "```",
        "$",
        "*",
        "**",
        "__",
        "~~",
    ),
    *("<think>", "</think>", "<answer>", "</answer>", "<answer", "[ANSWER]", '"answer": ', '"answer": "', "answer = "),
    *(
        "answer",
        "Answer: ",
        "answer is ",
        "the answer ",
        "answer (",
        "answer\n",
        "#### ",
        "final ",
        "correct ",
        "答案",
        "答案是",
    ),
    *(
        "no wait, ",
        "Actually, ",
        "I mean ",
        "not ",
        "not but ",
        "isn't ",
        "? No, ",
        "wrong; ",
        "at first ",
        "but ",
        "不是",
        "，",
    ),
    *(
        ", because ",
        "= ",
        "1 = 1 ",
        "A. ",
        "Option A ",
        "A is correct. ",
        "choose ",
        "submit(",
        "so ",
        "So it is ",
        "Sure! ",
    ),
    *(
        "<|im_end|>",
        "<|im_start|>assistant\n",
        "\nQ: ",
        "Hope this helps. ",
        ". ",
        "...",
        ": ",
        "- ",
        "– ",
        "| a |\n",
        "- a\n",
    ),
    *("\n", "\n\n", " ", "\t", "\0", "\ud800", "\\", "\\text{", "1", "x", "é", "\u2028", "（", "「"),
]


def normal(text: str) -> str:
    stripped = unicodedata.normalize("NFC", text).strip()
    return stripped[:-1].rstrip() if stripped.endswith((".", "。")) else stripped


def is_right(row: dict[str, Any]) -> bool:
    return normal(find_final_answer(row["text"]).text) in {normal(each) for each in (row["want"], *row.get("also", ()))}


@pytest.mark.parametrize("field", ["kind", "language"])
def test_the_development_half_is_right(field: str) -> None:
    counts: dict[str, list[bool]] = defaultdict(list)
    rows = [row[field] for row in ROWS]
    for row in ROWS:
        counts[row[field] if rows.count(row[field]) >= LEAST_ROWS else "others"].append(is_right(row))
    assert {name: share for name, right in counts.items() if (share := sum(right) / len(right)) < LEAST_SHARE} == {}


def test_a_confident_answer_of_the_development_half_is_right() -> None:
    confident = [row for row in ROWS if find_final_answer(row["text"]).confidence >= 0.95]
    assert len(confident) > len(ROWS) / 3
    assert all(map(is_right, confident))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_offsets_point_to_the_answer_and_its_own_answer_is_itself(row: dict[str, Any]) -> None:
    found = find_final_answer(row["text"])
    if found.start is not None:
        assert row["text"][found.start : found.end] == found.text
    if found.text:
        assert normal(find_final_answer(found.text).text) == normal(found.text)


@given(st.sampled_from(WRAPPERS), SHORT)
def test_a_short_answer_is_found_in_any_wrapper(wrapper: str, answer: str) -> None:
    found = find_final_answer(wrapper.format(answer))
    assert found.text.rstrip(".") == answer
    assert find_final_answer(found.text).text == found.text


@given(st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=3))).map("".join))
def test_nothing_that_a_model_writes_raises(completion: str) -> None:
    found = find_final_answer(completion)
    assert bool(found.text) == (found.position != "nothing") == (not found.reason)
    assert found.text == found.text.strip()
    assert 0 <= found.confidence <= 1
    assert (found.start is None) == (found.end is None)
    if found.start is not None:
        assert completion[found.start : found.end] == found.text


@pytest.mark.parametrize("mark", MARKS)
def test_hostile_repeats_are_read_in_time(mark: str) -> None:
    # A quadratic search would take minutes here: the suite's own time limit ends it.
    completion = mark * (1_000_000 // len(mark))
    find_final_answer(completion)
    find_final_answer(f"x. {completion}\nend")
