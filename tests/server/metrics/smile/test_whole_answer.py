"""An answer that is longer than the encoder reads, piece by piece: nothing is lost, and no piece is wasted."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.engines.limited_encoder import READ, LimitedEncoder, numbered
from tests.support.engines.programs import Table, at
from tests.support.examples import example_count

from gradewire_proto.parts import SmileParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL, Calibration
from gradewire_server.domain.needs import TokenVectors, Vectors
from gradewire_server.metrics.common import FailureError
from gradewire_server.metrics.smile.formula import Similarities, SmileParameters
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.rounds import gather
from gradewire_server.metrics.smile.texts import full_texts, smile_texts
from gradewire_server.metrics.smile.whole_answer import MAX_NEAR, MAX_PIECES, gather_to_the_end

PARAMETERS = SmileParameters(model="m", preset="one_pass", sentence_weight=0.3)


def read(
    prediction: str, *references: str, encoder: LimitedEncoder | None = None, words: int = 2_048, end: int = 16_384
) -> Similarities:
    texts = full_texts(prediction, references, end=end, most_words=words)
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
    texts = full_texts(numbered(100), ("x",), end=16_384, most_words=2_048)
    with pytest.raises(FailureError) as stopped:
        LimitedEncoder(fails_after=after).run(gather_to_the_end(texts, PARAMETERS, end=16_384))
    assert stopped.value.failure == Failure(Status.TIMEOUT, "late")


def test_blanks_before_the_answer_take_no_room() -> None:
    texts = full_texts(" " * 500 + numbered(50), ("x",), end=500 + len(numbered(50)), most_words=2_048)
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


WORDS = [f"v{number}" for number in range(40)]
SAID = "was said word for word"


def score(prediction: str, *references: str, encoder: LimitedEncoder | None = None, preset: str = "whole") -> Any:
    parameters = SmileParameters(model="m", preset=preset)
    program = Smile().score(Item("1", "", references, prediction), parameters, NO_MODEL)
    return (encoder or LimitedEncoder()).run(program)


def piece(text: str, sentence: float, angles: dict[str, float], *, truncated: bool) -> TokenVectors:
    """The token vectors of the first words of a text, each at its angle."""
    words = text.split()[: len(angles)]
    return TokenVectors(
        sentence=np.array(at(sentence), np.float32),
        tokens=np.array([at(angles[word]) for word in words], np.float32),
        offsets=np.array([(text.index(word), text.index(word) + len(word)) for word in words], np.int32),
        ids=np.arange(len(words), dtype=np.int32),
        truncated=truncated,
    )


def test_the_score_by_hand() -> None:
    # Four words of three letters are read at once: 15 characters. The next piece begins a quarter of them before their
    # end, 11.25, or where a last piece of 13.5 characters begins, 17.5; that is in "ccc". Then 19.25 or 17.5: "eee".
    whole = "aaa bbb ccc ddd eee fff ggg hhh"
    second, third = whole[8:], whole[16:]
    tokens = {
        whole: piece(whole, 60, {"aaa": 80, "bbb": 70, "ccc": 60, "ddd": 50}, truncated=True),
        second: piece(second, 45, {"ccc": 75, "ddd": 70, "eee": 40, "fff": 30}, truncated=True),
        third: piece(third, 75, {"eee": 20, "fff": 40, "ggg": 10, "hhh": 90}, truncated=False),
    }
    # In context ggg, eee (20 degrees in its better piece) and fff (30) are closest; alone it is fff, by 5 degrees.
    alone = {"x": at(0), "bbb": at(1), "ccc": at(2), "ddd": at(3), "eee": at(35), "fff": at(5), "ggg": at(50)}
    table = Table(alone, tokens=tokens)
    result = table.run(Smile().score(Item("1", "", ("x",), whole), SmileParameters(preset="whole"), NO_MODEL))
    sentence, keyword = (1 + math.cos(math.radians(45))) / 2, (1 + math.cos(math.radians(5))) / 2
    assert table.embedded[-1] == {"eee", "fff", "ggg"}
    assert isinstance(result.parts, SmileParts)
    assert result.parts.best_window == "fff"
    assert result.parts.exact == 0
    assert result.parts.sentence == pytest.approx(sentence)
    assert result.parts.keyword == pytest.approx(keyword)
    assert result.score == pytest.approx(0.3 * sentence + 0.7 * keyword / 2)
    assert ResultWarning.TRUNCATED not in result.warnings


@settings(max_examples=example_count(40))
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=64),
    references=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=4),
    separator=st.sampled_from([" ", ", ", " " * 12]),
)
def test_an_answer_that_is_read_at_once_is_scored_as_fast_does(
    words: list[str], references: list[str], separator: str
) -> None:
    text, limit = separator.join(words), 2 * len(words)
    mine, fast = (
        score(text, *references, encoder=LimitedEncoder(limit), preset=preset) for preset in ("whole", "fast")
    )
    assert mine == fast


@pytest.mark.parametrize("place", [0, 180, 1_500, 2_000])
def test_a_match_is_found_wherever_it_stands_in_two_thousand_words(place: int) -> None:
    words = numbered(2_000).split()
    text = " ".join([*words[:place], "big", "red", "dog", *words[place:]])
    encoder = LimitedEncoder(256)
    result = score(text, "red dog house", "nothing of this", encoder=encoder)
    alone = score("big red dog", "red dog house")
    assert result.parts.best_window in {"big red dog", "red dog w0", f"red dog w{place}", f"w{place - 1} red dog"}
    assert result.parts.keyword >= alone.parts.keyword - 0.15
    assert result.parts.exact == pytest.approx(2 / 3)
    assert ResultWarning.TRUNCATED not in result.warnings
    assert result.score > score(text, "cat wool house", encoder=LimitedEncoder(256)).score + 0.15


@settings(max_examples=example_count(25))
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=21, max_size=90),
    more=st.lists(st.sampled_from(WORDS), min_size=1, max_size=60),
    reference=st.lists(st.sampled_from([*WORDS[::7], "x", "y"]), min_size=1, max_size=3).map(" ".join),
)
def test_text_behind_a_long_answer_takes_no_match_away(words: list[str], more: list[str], reference: str) -> None:
    # Of the sentence term this cannot be said: what stood in the last piece stands in the middle of another one now.
    before = score(" ".join(words), reference).parts
    after = score(" ".join(words + more), reference).parts
    assert after.exact >= before.exact
    assert after.keyword >= before.keyword - 1e-6


def test_text_behind_a_long_answer_leaves_the_pieces_before_the_last_as_they_are() -> None:
    text, encoder, longer = numbered(90), LimitedEncoder(), LimitedEncoder()
    score(text, "x", encoder=encoder)
    score(text + " " + "z " * 60, "x", encoder=longer)
    begins = [piece.split()[0] for piece in encoder.pieces]
    assert [piece.split()[0] for piece in longer.pieces][: len(begins) - 1] == begins[:-1]


@pytest.mark.parametrize("count", [21, 100, 600])
def test_as_many_windows_are_embedded_alone_however_long_the_answer(count: int) -> None:
    encoder = LimitedEncoder()
    score(numbered(count), "v1 v2", "v3 v4", "v5", encoder=encoder)
    first_piece = 6  # of an answer this short `fast` is tried first
    assert 6 <= len(set(encoder.windows)) <= 12 + first_piece


def test_near_ties_of_a_monotonous_answer_are_bounded() -> None:
    encoder = LimitedEncoder(64)
    words = [f"w{number} river" for number in range(900)]  # each window of two words is as close as the others
    score(" ".join(words), "river x", encoder=encoder)
    assert 3 <= len(set(encoder.windows)) <= MAX_NEAR


def test_where_all_references_are_said_no_window_is_embedded() -> None:
    encoder = LimitedEncoder()
    result = score(f"{numbered(200)} {SAID}", SAID, "w7 w8", encoder=encoder)
    assert encoder.windows == []
    assert result.parts.keyword == 1.0
    assert result.matched_reference == 0  # its sentence comes closer: the last piece has little else
    assert len(encoder.pieces) > 8


def test_a_reference_that_cannot_win_costs_no_window() -> None:
    encoder = LimitedEncoder()
    result = score(f"{numbered(200)} {SAID}", SAID, "y z", encoder=encoder)
    assert encoder.windows == []
    assert result.matched_reference == 0


@pytest.mark.parametrize(
    ("prediction", "reference", "truncated"),
    [
        (numbered(60), "x", False),
        (numbered(2_048), "x", False),
        (numbered(2_049), "x", True),  # more words than windows are looked for in
        (numbered(60) + " " * 17_000, "x", False),
        (f"{numbered(60)} {'y' * 16_384}", "x", True),  # more characters
        (numbered(60), numbered(300), True),  # the reference is cut
        (numbered(10), numbered(300), True),
    ],
)
def test_what_is_not_read_is_told_whole_preset(prediction: str, reference: str, truncated: bool) -> None:  # noqa: FBT001 - a column
    result = score(prediction, reference, encoder=LimitedEncoder(256 if "w2047" in prediction else 20))
    assert (ResultWarning.TRUNCATED in result.warnings) is truncated


@pytest.mark.parametrize("after", [0, 1, 2, 5])
@pytest.mark.parametrize("prediction", [numbered(100), numbered(400)])
def test_a_failure_in_any_round_is_the_result_whole_preset(prediction: str, after: int) -> None:
    result = score(prediction, "x", encoder=LimitedEncoder(fails_after=after))
    assert result == MetricResult.failed(Failure(Status.TIMEOUT, "late"))


def test_synthetic_answers_stand_for_the_sentence_of_long_answers_too() -> None:
    item = Item("1", "", ("x",), f"{numbered(60)} the cat sat", ("w55 w56 w57 w58 w59 the cat sat",))
    parameters = SmileParameters(preset="whole", synthetic="inline")
    found, plain = (
        LimitedEncoder().run(Smile().score(item, each, NO_MODEL))
        for each in (parameters, replace(parameters, synthetic="none"))
    )
    assert found.parts.sentence > plain.parts.sentence + 0.1
    assert found.parts.keyword == plain.parts.keyword


def test_a_threshold_fitted_for_v1_is_used() -> None:
    fitted = Calibration("smile", 1, (("preset", "v1"),), 0.61)
    metadata = replace(NO_MODEL, calibrations=(fitted,))
    assert SmileParameters(preset="whole").resolved(metadata).threshold == 0.61
