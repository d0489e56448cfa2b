"""The page of a leaderboard holds what it must, loads nothing, stays small, and strangers' texts do nothing in it."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.client.ratings.tournaments import tournament
from tests.client.report.pages import Elements

from gradewire.agreement.papers.pairwise import JudgedPairs, pairwise_agreement
from gradewire.ratings import Matches, length_bias, position_bias, rate, system_ranks
from gradewire.report.figures import UNDEFINED
from gradewire.report.leaderboard import BiasLine, LeaderboardInput, QuestionablePair, write_leaderboard
from gradewire.report.leaderboard.page import MAX_MODELS, render
from gradewire.report.page import MAX_BYTES

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"{{ 7*7 }}\u202e\x00\ud800"


def board(**changes: object) -> LeaderboardInput:
    matches = tournament([0.8, 0.0, -0.8], instructions=20, seed=0, first=0.4)
    ratings = rate(matches, reference="model 2", controls=["position"], resamples=50)
    strata = pairwise_agreement(JudgedPairs([["A"] * 5] * 20, {"judge": ["A"] * 20}), resamples=50)
    given = LeaderboardInput(
        source="pairs.jsonl",
        created="2026-11-24",
        by="compare/1?model=judge",
        pairs=60,
        ratings=ratings,
        families={family: rate(matches, resamples=50, with_elo=False) for family in ("counting", "naming")},
        reference="model 2",
        controls=["position"],
        biases=[
            BiasLine(name="shown first", bias=position_bias(matches, resamples=50), effect=ratings.effects[0]),
            BiasLine(name="longer", bias=length_bias(matches)),
        ],
        people=(strata, system_ranks(matches, matches, resamples=50)),
        questionable=[
            QuestionablePair(
                why="The two orders have different winners",
                question="What is it?",
                models=("model 0", "model 1"),
                answers=("a cat", "a dog"),
                orders=["A first: A", "B first: B"],
                probability_a=0.51,
            )
        ],
        notes=["Both orders have the same winner in 59 of 60 pairs."],
    )
    return replace(given, **changes)  # type: ignore[arg-type]


def test_everything_is_there() -> None:
    text = Elements(render(board()).decode()).text
    for told in (
        "3 models, 60 judged pairs on 20 instructions",
        "compare/1?model=judge",
        "Both orders have the same winner in 59 of 60 pairs.",
        "rating with position held fixed",
        "Won against model 2",
        "counting",
        "shown first",
        "Majority votes of people",
        "The two orders have different winners",
        "probability of A 0.510",
        "B first: B",
        "a cat",
    ):
        assert told in text or told in render(board()).decode(), told
    assert "longer" not in text, "nothing is known of the lengths"
    assert [line for line in ("model 0", "model 1", "model 2") if line in text] == ["model 0", "model 1", "model 2"]


def test_it_loads_nothing_and_strangers_texts_do_nothing() -> None:
    given = board()
    lines = [replace(line, model=f"{HOSTILE} {number}") for number, line in enumerate(given.ratings.models)]
    hostile = replace(
        given,
        source=HOSTILE,
        by=HOSTILE,
        reference=lines[2].model,
        ratings=replace(given.ratings, models=lines),
        families={HOSTILE: replace(given.ratings, models=lines)},
        notes=[HOSTILE],
        questionable=[
            QuestionablePair(
                why=HOSTILE,
                question=HOSTILE,
                models=(lines[0].model, lines[1].model),
                answers=(HOSTILE, HOSTILE),
                orders=[HOSTILE],
                probability_a=math.nan,
            )
        ],
    )
    for each in (given, hostile):
        found = Elements(render(each).decode())
        assert found.names.count("script") == 1
        assert "img" not in found.names
        assert not {name for name, _ in found.attributes} & {"src", "onerror", "onclick", "style"}
        assert all(value and value.startswith("#") for name, value in found.attributes if name == "href")
        assert "7*7" not in found.text or "{{ 7*7 }}" in found.text, "no template in a text is evaluated"
        assert "\u202e" not in found.text


def test_a_large_field_stays_within_the_size() -> None:
    names = [f"model {number}" for number in range(90)]
    a = [number for number in range(90) for _ in range(3)]
    b = [(number + 1 + step) % 90 for number in range(90) for step in range(3)]
    ratings = rate(Matches.of(names, a, b, np.arange(270) % 2, np.arange(270) % 30), resamples=20, with_elo=False)
    pairs = [
        QuestionablePair(
            why="The judge is not sure",
            question="q" * 5000,
            models=("model 0", "model 1"),
            answers=("a" * 5000, "b" * 5000),
            orders=[],
            probability_a=0.5,
        )
    ] * 500
    page = render(board(ratings=ratings, reference="", controls=[], questionable=pairs, families={}))
    assert len(page) <= MAX_BYTES
    text = Elements(page.decode()).text
    assert f"The first {MAX_MODELS} of 90 models are shown." in text
    assert "50 of 500 are shown" in text
    assert "characters 1 to 1,200 of 5,000" in text


def test_matrix_by_hand(tmp_path: Path) -> None:
    matches = Matches.of(["x", "y", "z"], [0, 0, 0, 1], [1, 1, 1, 2], [1.0, 1.0, 0.5, 1.0], [0, 1, 2, 3])
    given = board(ratings=rate(matches, resamples=20), reference="", controls=[], families={}, people=None)
    size = write_leaderboard(tmp_path / "board.html", given)
    page = (tmp_path / "board.html").read_text()
    assert size == len(page.encode())
    assert '<td class="w8" title="2 won, 1 tied, 0 lost">0.83</td>' in page
    assert '<td class="w2" title="0 won, 1 tied, 2 lost">0.17</td>' in page
    assert f"<td>{UNDEFINED}</td>" in page, "x and z never met"
    assert "h-people" not in page
    with pytest.raises(OSError, match="board"):
        write_leaderboard(tmp_path / "nowhere" / "board.html", given)
