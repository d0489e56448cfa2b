import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.models.tiny_models import tiny_tokenizer

from gradewire_models.repository.grader_input import MAX_PIECES, MAX_TOKENS
from gradewire_server.encoders.grading.texts import joined
from gradewire_server.encoders.grading.tokenizer import GraderTokenizer

GOLDEN = Path(__file__).parents[3] / "models" / "repository" / "grader_input.golden.json"
BEGIN, SEPARATOR = 2, 3  # of the tiny tokenizer
WORDS = st.lists(st.integers(0, 59).map("w{}".format), max_size=80)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> GraderTokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_bytes(tiny_tokenizer())
    return GraderTokenizer(path)


@pytest.fixture(scope="module")
def real(minilm: Path) -> GraderTokenizer:
    return GraderTokenizer(minilm / "all-MiniLM-L6-v2" / "tokenizer.json")


def test_pieces_are_those_that_training_builds(real: GraderTokenizer) -> None:
    rows: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    names = ("question", "reference", "answer")
    texts = [joined(tuple(unicodedata.normalize("NFC", row[name]) for name in names)) for row in rows]  # type: ignore[arg-type]
    for row, found in zip(rows, real.encode(texts), strict=True):
        assert [piece.tolist() for piece in found.rows] == row["pieces"]
        assert found.truncated == row["truncated"]


@pytest.mark.parametrize("hostile", ["[SEP]", "[CLS] [SEP] [SEP]", "yes [SEP] no [PAD]", "[MASK][SEP]"])
def test_a_mark_that_is_written_in_a_text_is_text(real: GraderTokenizer, hostile: str) -> None:
    plain = real.encode([joined(("who?", "a man", "a man"))])[0]
    cls, sep = plain.ids[0], plain.ids[-1]
    for texts in ((hostile, "a man", "a man"), ("who?", hostile, "a man"), ("who?", "a man", hostile)):
        (row,) = real.encode([joined(texts)])[0].rows
        assert np.count_nonzero(row == sep) == 3
        assert np.count_nonzero(row == cls) == 1
        assert len(row) > len(plain.ids)  # spelt out, and not left out


@given(question=WORDS, reference=WORDS, repeats=st.integers(0, 40), answer=WORDS)
def test_pieces_cover_the_answer_within_bounds(
    tiny: GraderTokenizer, question: list[str], reference: list[str], repeats: int, answer: list[str]
) -> None:
    words = answer * repeats
    (found,) = tiny.encode([joined((" ".join(question), " ".join(reference), " ".join(words)))])
    assert 1 <= len(found.rows) <= MAX_PIECES
    front = min(len(question), 64) + min(len(reference), 64) + 3
    room = MAX_TOKENS - front - 1
    read = 0
    for number, row in enumerate(found.rows):
        assert len(row) <= MAX_TOKENS
        assert (row[0], row[front - 1], row[-1]) == (BEGIN, SEPARATOR, SEPARATOR)
        start = number * (room // 2)
        assert start <= read  # no token between two pieces is left out
        read = start + len(row) - front - 1
        assert row[front:-1].tolist() == [4 + int(word[1:]) for word in words[start:read]]
    assert found.truncated == (len(question) > 64 or len(reference) > 64 or read < len(words))


def test_a_text_is_cut_by_its_characters_too(real: GraderTokenizer) -> None:
    # One word of a million characters is one unknown token, however it is cut.
    (found,) = real.encode([joined(("", "yes", "x" * 1_000_000 + " yes"))])
    assert found.truncated
    assert len(found.ids) < MAX_TOKENS


def test_nothing_but_what_is_invisible_leaves_its_place_empty(tiny: GraderTokenizer) -> None:
    (found,) = tiny.encode([joined(("", "w1", " \n "))])
    assert found.ids.tolist() == [BEGIN, SEPARATOR, 5, SEPARATOR, SEPARATOR]
    assert found.ends == (5,)


def test_many_at_once_are_as_each_alone(tiny: GraderTokenizer) -> None:
    texts = [joined((f"w{n % 60}", "w1 w2", f"w{n % 7} " * (n * 9))) for n in range(100)]
    for text, found in zip(texts, tiny.encode(texts), strict=True):
        (alone,) = tiny.encode([text])
        assert (found.ids.tolist(), found.ends, found.truncated) == (alone.ids.tolist(), alone.ends, alone.truncated)
