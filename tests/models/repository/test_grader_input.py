import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, processors

from gradewire_models.repository.grader_input import MAX_PIECES, MAX_TOKENS, begin_and_separator, grader_input

# Written by a program that builds the sequences from their definition, without this code.
GOLDEN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("grader_input.golden.json").read_text("utf-8"))
BEGIN, SEPARATOR = 101, 102
IDS = st.lists(st.integers(1000, 30_000), max_size=300)


@pytest.mark.parametrize("row", GOLDEN, ids=range(len(GOLDEN)))
def test_token_ids_of_real_texts(row: dict[str, Any], minilm: Path) -> None:
    tokenizer = Tokenizer.from_file(str(minilm / "all-MiniLM-L6-v2" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    ids = [
        tokenizer.encode(unicodedata.normalize("NFC", row[name]), add_special_tokens=False).ids
        for name in ("question", "reference", "answer")
    ]
    found = grader_input(*ids, begin=BEGIN, separator=SEPARATOR)
    assert [list(piece.ids) for piece in found.pieces] == row["pieces"]
    assert {piece.answer_start for piece in found.pieces} == {row["answer_start"]}
    assert found.truncated == row["truncated"]


@given(IDS, IDS, st.lists(st.integers(1000, 30_000), max_size=1500))
def test_every_token_of_the_answer_is_read_or_it_says_so(q: list[int], r: list[int], answer: list[int]) -> None:
    found = grader_input(q, r, answer, begin=BEGIN, separator=SEPARATOR)
    assert 1 <= len(found.pieces) <= MAX_PIECES
    read = 0
    for number, piece in enumerate(found.pieces):
        assert len(piece.ids) <= MAX_TOKENS
        assert piece.ids[0] == BEGIN
        # A text cannot write what parts texts.
        assert [at for at, each in enumerate(piece.ids) if each == SEPARATOR] == [
            min(len(q), 64) + 1,
            piece.answer_start - 1,
            len(piece.ids) - 1,
        ]
        room = MAX_TOKENS - piece.answer_start - 1
        part = list(piece.ids[piece.answer_start : -1])
        start = number * (room // 2)
        assert part == answer[start : start + room]
        read = max(read, start + len(part))
    assert found.truncated == (len(q) > 64 or len(r) > 64 or read < len(answer))


def test_an_answer_that_just_fits_is_one_piece() -> None:
    room = MAX_TOKENS - 4
    assert len(grader_input([], [], [7] * room, begin=BEGIN, separator=SEPARATOR).pieces) == 1
    assert len(grader_input([], [], [7] * (room + 1), begin=BEGIN, separator=SEPARATOR).pieces) == 2


def tokenizer_with(template: str) -> Tokenizer:
    """The vocabulary has the tokens of BERT and of RoBERTa, as mpnet's has."""
    marks = ["<pad>", "[CLS]", "[SEP]", "<s>", "</s>", "w"]
    tokenizer = Tokenizer(models.WordLevel({mark: number for number, mark in enumerate(marks)}))
    used = [(mark, number) for number, mark in enumerate(marks) if mark in template.split()]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    tokenizer.enable_padding(length=16)
    return tokenizer


@pytest.mark.parametrize(("template", "ids"), [("<s> $A </s>", (3, 4)), ("[CLS] $A [SEP]", (1, 2))])
def test_what_parts_texts_is_what_the_tokenizer_adds(template: str, ids: tuple[int, int]) -> None:
    assert begin_and_separator(tokenizer_with(template)) == ids


@pytest.mark.parametrize("template", ["$A", "$A </s>", "<s> [CLS] $A </s>"])
def test_a_tokenizer_that_adds_other_tokens_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="one token before and one token after"):
        begin_and_separator(tokenizer_with(template))
