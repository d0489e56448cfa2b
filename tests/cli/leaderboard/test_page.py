"""The page of a leaderboard holds what it must, loads nothing, stays small, and strangers' texts do nothing in it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.pages.pages import Elements
from tests.stats.ratings.tournaments import tournament

from gradewire_cli.leaderboard.output import Leaderboard, RatingOptions
from gradewire_cli.leaderboard.page import MAX_MODELS, leaderboard_pages
from gradewire_cli.leaderboard.reading import INCONSISTENT, JudgedOrder, JudgedPair
from gradewire_cli.leaderboard.verdicts import HumanAgreement, Verdicts
from gradewire_cli.pages.page import MAX_BYTES, render, write_page
from gradewire_cli.problems import InputError
from gradewire_stats.preferences import JudgedPairs, preference_agreement
from gradewire_stats.ratings import (
    Controls,
    Matches,
    RatingTable,
    family_bias,
    length_bias,
    position_bias,
    published_ranks,
    rate,
    system_ranks,
)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"{{ 7*7 }}\u202e\x00\ud800"
OPTIONS = RatingOptions(reference="model 2", controls=["position"])
NOTES = ["both orders have the same winner in 59 of 60 pairs"]


def doubtful(text: str = "What is it?", models: tuple[str, str] = ("model 0", "model 1"), **more: object) -> JudgedPair:
    orders = (JudgedOrder("model_a", "model_a"), JudgedOrder("model_b", "model_b"))
    given = {"status": INCONSISTENT, "orders": orders, "answers": ("a cat", "a dog"), "probability_a": 0.51} | more
    return JudgedPair(position="", instruction=text, question=text, models=models, winner=None, **given)  # type: ignore[arg-type]


def board(pairs: list[JudgedPair] | None = None, **changes: object) -> Leaderboard:
    matches = tournament([0.8, 0.0, -0.8], instructions=20, seed=0, first=0.4)
    strata = preference_agreement(JudgedPairs([["A"] * 5] * 20, {"judge": ["A"] * 20}), resamples=50)
    systems = system_ranks(matches, matches, resamples=50)
    given = Leaderboard(
        verdicts=Verdicts(pairs=[doubtful()] if pairs is None else pairs),
        ratings=rate(matches, reference="model 2", controls=Controls(["position"]), resamples=50),
        groups={group: rate(matches, resamples=50, with_elo=False) for group in ("counting", "naming")},
        position=position_bias(matches, resamples=50),
        length=length_bias(matches),
        own_family=family_bias(matches),
        published={"table": published_ranks(matches, {f"model {place}": -float(place) for place in range(3)}, gap=0.5)},
        people=HumanAgreement(pairs=20, unmatched=0, without_winner=0, without_words=0, strata=strata, systems=systems),
    )
    return replace(given, **changes)  # type: ignore[arg-type]


def page_of(found: Leaderboard, options: RatingOptions = OPTIONS, *, text: str = "") -> bytes:
    pages = leaderboard_pages(found, options, [text or NOTES[0]], source=text or "pairs.jsonl", by=text or "judge/1")
    return render(pages, without="pair")


def test_everything_is_there() -> None:
    page = page_of(board()).decode()
    text = " ".join(Elements(page).text.split())
    for told in (
        "3 models, 1 judged pairs on 20 instructions",
        "Judged by judge/1",
        "Both orders have the same winner in 59 of 60 pairs.",
        "won against model 2",
        "counting",
        "shown first",
        "Correlation of Bradley-Terry ratings with published ratings",
        "2 of 3",
        "Annotators' majority votes that evaluators reproduced",
        "The two orders have different winners · probability of A 0.510 · A first: A · B first: B",
        "A: model 0 a cat B: model 1 a dog",
    ):
        assert told in text, told
    assert "rating with position held fixed" in page
    assert "longer" not in text, "nothing is known of the lengths"
    assert [line for line in ("model 0", "model 1", "model 2") if line in text] == ["model 0", "model 1", "model 2"]


def renamed(table: RatingTable) -> RatingTable:
    lines = [replace(line, model=f"{HOSTILE} {number}") for number, line in enumerate(table.models)]
    return replace(table, models=lines)


def test_it_loads_nothing_and_strangers_texts_do_nothing() -> None:
    given = board()
    models = renamed(given.ratings).models
    hostile = replace(
        given,
        ratings=renamed(given.ratings),
        groups={HOSTILE: renamed(given.ratings)},
        published={HOSTILE: replace(given.published["table"], models=[model.model for model in models])},
        verdicts=Verdicts(pairs=[doubtful(HOSTILE, (models[0].model, models[1].model), answers=(HOSTILE, HOSTILE))]),
    )
    options = replace(OPTIONS, reference=models[2].model)
    for page in (page_of(given), page_of(hostile, options, text=HOSTILE)):
        found = Elements(page.decode())
        assert found.names.count("script") == 1
        assert "img" not in found.names
        assert not {name for name, _ in found.attributes} & {"src", "onerror", "onclick", "style"}
        assert all(value and value.startswith("#") for name, value in found.attributes if name == "href")
        assert "7*7" not in found.text or "{{ 7*7 }}" in found.text, "no template in a text is evaluated"
        assert not {"\u202e", "\x00", "\ud800"} & set(found.text)


def test_a_large_field_stays_within_the_size() -> None:
    names = [f"model {number}" for number in range(90)]
    a = [number for number in range(90) for _ in range(3)]
    b = [(number + 1 + step) % 90 for number in range(90) for step in range(3)]
    ratings = rate(Matches.of(names, a, b, np.arange(270) % 2, np.arange(270) % 30), resamples=20, with_elo=False)
    pairs = [doubtful("q" * 5000, answers=("a" * 5000, "b" * 5000), orders=())] * 500
    page = page_of(board(pairs, ratings=ratings, groups={}, published={}), RatingOptions())
    assert len(page) <= MAX_BYTES
    text = Elements(page.decode()).text
    assert f"The first {MAX_MODELS} of 90 models are shown." in text
    assert "50 of 500 are shown" in text
    assert "characters 1 to 1,200 of 5,000" in text


def test_matrix_by_hand(tmp_path: Path) -> None:
    matches = Matches.of(["x", "y", "z"], [0, 0, 0, 1], [1, 1, 1, 2], [1.0, 1.0, 0.5, 1.0], [0, 1, 2, 3])
    given = board(ratings=rate(matches, resamples=20), groups={}, published={}, people=None)
    pages = leaderboard_pages(given, RatingOptions(), [], source="", by="")
    write_page(tmp_path / "board.html", pages, without="pair")
    page = (tmp_path / "board.html").read_text()
    assert '<td class="n w8" data-o="0.833333">0.83<small>of 3</small></td>' in page
    assert '<td class="n w2" data-o="0.166667">0.17<small>of 3</small></td>' in page
    assert '<td class="n" data-o="">\N{EN DASH}</td>' in page, "x and z never met"
    assert "h-people" not in page
    with pytest.raises(InputError, match="board"):
        write_page(tmp_path / "nowhere" / "board.html", leaderboard_pages(given, RatingOptions(), [], source="", by=""))


def test_names_that_begin_alike_are_numbered() -> None:
    given = board()
    lines = [replace(line, model=f"{'m' * 100}{number}") for number, line in enumerate(given.ratings.models)]
    text = page_of(
        replace(given, ratings=replace(given.ratings, models=lines), groups={}, published={}), OPTIONS
    ).decode()
    assert f"{'m' * 79}… (2)" in text
    assert f"{'m' * 79}… (3)" in text
