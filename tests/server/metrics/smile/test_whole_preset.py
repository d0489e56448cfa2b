"""The preset `whole`: as `fast` for what the encoder reads whole, else the best of all pieces and all windows."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.limited_encoder import LimitedEncoder, numbered
from tests.support.engines.programs import Table, at
from tests.support.examples import example_count

from gradewire_server.domain.calibration import Calibration
from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import TokenVectors
from gradewire_server.domain.parts import SmileParts
from gradewire_server.domain.result import Failure, MetricResult, Status, Warning  # noqa: A004 - as domain
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.parameters import SmileParameters
from gradewire_server.metrics.smile.ranked_pieces import MAX_NEAR

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
    assert Warning.TRUNCATED not in result.warnings


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
    assert Warning.TRUNCATED not in result.warnings
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
def test_what_is_not_read_is_told(prediction: str, reference: str, truncated: bool) -> None:  # noqa: FBT001 - a column
    result = score(prediction, reference, encoder=LimitedEncoder(256 if "w2047" in prediction else 20))
    assert (Warning.TRUNCATED in result.warnings) is truncated


@pytest.mark.parametrize("after", [0, 1, 2, 5])
@pytest.mark.parametrize("prediction", [numbered(100), numbered(400)])
def test_a_failure_in_any_round_is_the_result(prediction: str, after: int) -> None:
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
