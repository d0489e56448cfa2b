"""An answer that is longer than the encoder reads, piece by piece: nothing is lost, and no piece is wasted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.engines.limited_encoder import READ, LimitedEncoder, numbered
from tests.support.examples import example_count

from gradewire_server.domain.needs import Vectors
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.smile.formula import Similarities
from gradewire_server.metrics.smile.parameters import SmileParameters
from gradewire_server.metrics.smile.rounds import gather
from gradewire_server.metrics.smile.texts import smile_texts, whole_texts
from gradewire_server.metrics.smile.whole_answer import MAX_PIECES, gather_to_the_end

PARAMETERS = SmileParameters(model="m", preset="one_pass", sentence_weight=0.3)


def read(
    prediction: str, *references: str, encoder: LimitedEncoder | None = None, words: int = 2_048, end: int = 16_384
) -> Similarities:
    texts = whole_texts(prediction, references, end=end, most_words=words)
    found: Similarities = (encoder or LimitedEncoder()).run(gather_to_the_end(texts, PARAMETERS, end=end))
    return found


def cosines(found: Similarities) -> Mapping[int, float]:
    return {index: keyword.cosine for index, keyword in found.keywords.items()}


@pytest.mark.parametrize("references", [("w3 w4",), ("w3 x",), ("y z", "w1", "w2 w3 w9")])
def test_a_short_answer_is_what_one_pass_says(references: tuple[str, ...]) -> None:
    mine, smiles = LimitedEncoder(), LimitedEncoder()
    found = read(numbered(12), *references, encoder=mine)
    texts = smile_texts(numbered(12), references, references)
    expected = smiles.run(gather(texts, PARAMETERS))
    assert found.keywords == expected.keywords
    assert found.sentences == expected.sentences
    assert (found.truncated, mine.pieces) == (False, smiles.pieces)


@settings(max_examples=example_count(80))
@given(
    words=st.lists(st.sampled_from([f"v{number}" for number in range(40)] + ["a,b", "U.S."]), min_size=1, max_size=150),
    blanks=st.sampled_from([" ", "\n\n", " " * 90]),
    references=st.lists(
        st.lists(st.sampled_from([f"v{number}" for number in range(45)]), min_size=1, max_size=3).map(" ".join),
        min_size=1,
        max_size=4,
    ),
    limit=st.integers(16, 60),
)
@example(words=["v1"] * 100 + ["v2"], blanks=" ", references=["v2 v3"], limit=16)
def test_windows_of_all_pieces_are_those_of_an_encoder_without_a_limit(
    words: list[str], blanks: str, references: list[str], limit: int
) -> None:
    text = blanks.join(words)
    found = read(text, *references, encoder=LimitedEncoder(limit))
    expected = cosines(read(text, *references, encoder=LimitedEncoder(100_000)))
    for index, cosine in cosines(found).items():
        # Where one is said word for word, SMILE leaves out those that cannot be better.
        assert cosine == pytest.approx(expected.get(index, cosine), abs=1e-5)
    assert set(found.keywords) >= set(expected)
    assert not found.truncated


@pytest.mark.parametrize("count", [21, 40, 200, 600])
def test_every_word_is_read_in_few_pieces(count: int) -> None:
    encoder = LimitedEncoder()
    found = read(numbered(count), "x", encoder=encoder)
    seen = {word for piece in encoder.pieces for word in piece.split()[:READ]}
    assert seen >= set(numbered(count).split())
    # Each piece takes up three quarters of what is read; the first is asked for twice, by SMILE's rounds too.
    assert len(encoder.pieces) <= 2 + (count - READ) / (0.7 * READ) + 1
    assert (encoder.most_at_once, found.truncated) == (1, False)


def test_the_sentence_of_the_closest_piece_counts() -> None:
    text = f"{numbered(60)} the cat sat"
    found = read(text, "the cat sat")
    assert found.sentences[0] > read(numbered(60), "the cat sat").sentences[0] + 0.1
    assert found.keywords[0].cosine == 1.0  # said word for word


def test_the_best_window_is_named_where_it_stands() -> None:
    found = read(f"{numbered(70)} big red dog {numbered(30)}", "red dog house")
    assert found.keywords[0].window in {"big red dog", "red dog w0"}


@pytest.mark.parametrize(
    ("text", "references", "words", "end"),
    [
        (numbered(101), ("x",), 100, 16_384),  # more words than are looked at
        (numbered(101), ("x",), 2_048, len(numbered(100))),  # more characters
        (numbered(10), (numbered(30),), 2_048, 16_384),  # the reference is cut
        (numbered(60), (numbered(30),), 2_048, 16_384),  # the reference is cut, and the answer is read on
        (numbered(int(MAX_PIECES * 0.8 * READ) + 60), ("x",), 2_048, 16_384),  # more pieces
    ],
)
def test_what_is_not_read_is_told(text: str, references: tuple[str, ...], words: int, end: int) -> None:
    assert read(text, *references, words=words, end=end).truncated


@pytest.mark.parametrize("text", [numbered(100), numbered(100) + " " * 20_000, numbered(60) + "\u200b" * 3_000])
def test_what_was_read_to_the_end_is_not_called_truncated(text: str) -> None:
    assert not read(text, "x", words=100).truncated


def test_a_text_without_white_space_is_read_too() -> None:
    text = ",".join(f"w{number}" for number in range(90))
    encoder = LimitedEncoder()
    found = read(text, "w85 w86", encoder=encoder)
    assert not found.truncated
    assert text.endswith(encoder.pieces[-1])
    assert 3 < len(encoder.pieces) < 20


@pytest.mark.parametrize("after", [0, 1, 2, 4])
def test_a_failure_in_any_round_is_the_result(after: int) -> None:
    texts = whole_texts(numbered(100), ("x",), end=16_384, most_words=2_048)
    found = LimitedEncoder(fails_after=after).run(gather_to_the_end(texts, PARAMETERS, end=16_384))
    assert found == Failure(Status.TIMEOUT, "late")


def test_blanks_before_the_answer_take_no_room() -> None:
    texts = whole_texts(" " * 500 + numbered(50), ("x",), end=500 + len(numbered(50)), most_words=2_048)
    encoder = LimitedEncoder()
    found = encoder.run(gather_to_the_end(texts, PARAMETERS, end=500 + len(numbered(50))))
    assert "w49" in encoder.pieces[-1]
    assert not found.truncated


@pytest.mark.parametrize("count", range(21, 60))
def test_the_last_piece_is_no_remnant(count: int) -> None:
    encoder = LimitedEncoder()
    read(numbered(count), "x", encoder=encoder)
    assert len(encoder.pieces[-1]) > 0.8 * len(" ".join(numbered(count).split()[:READ]))


def test_where_no_window_is_read_whole_the_closest_piece_stands_for_it() -> None:
    reference = " ".join(f"x{number}" for number in range(18))  # a window as long is in no piece of these words
    text = "-".join(f"a{number}" for number in range(70))
    pieces = [read(part, reference).keywords[0].cosine for part in (text[:60], text[-60:])]
    found = read(text, reference)
    assert found.keywords[0].cosine >= found.sentences[0] - 1e-6
    assert found.keywords[0].cosine >= min(pieces)


class Heedless(LimitedEncoder):
    """Looks at the first 1 000 characters alone, as tokenizers do of a long text."""

    def _answer(self, need: Any) -> Any:
        found = super()._answer(replace(need, texts=tuple(text[:1_000] for text in need.texts)))
        long = np.array([len(text) > 1_000 for text in need.texts], dtype=np.bool_)
        if isinstance(found, Vectors):
            return Vectors(found.values, found.truncated | long)
        return tuple(replace(one, truncated=one.truncated or more) for one, more in zip(found, long, strict=True))


@pytest.mark.parametrize("blanks", [" " * 1_500, "\n" * 999 + " " * 3])
@pytest.mark.parametrize("count", [1, 12, 90])
def test_an_answer_behind_more_blanks_than_are_looked_at_is_read_all_the_same(blanks: str, count: int) -> None:
    end = len(blanks) + len(numbered(count))
    found, plain = (
        read(blanks + numbered(count), "w0 y", "w80", encoder=Heedless(), end=end),
        read(numbered(count), "w0 y", "w80"),
    )
    assert cosines(found) == pytest.approx(cosines(plain))
    assert found.sentences == pytest.approx(plain.sentences)
    assert not found.truncated
