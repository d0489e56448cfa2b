"""Verdicts as matches: each vote for itself, draws over texts, and the judge's own family."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_cli.leaderboard.reading import JudgedOrder, JudgedPair, majority
from gradewire_cli.leaderboard.verdicts import ModelFamilies, Verdicts, human_agreement, votes_of
from gradewire_cli.scoring.pair_engine import Winner

WINNERS: tuple[Winner, ...] = ("model_a", "model_b", "tie")


def pair(
    instruction: str, *, votes: tuple[Winner, ...] = (), winner: Winner | None = None, by: str = "", question: str = ""
) -> JudgedPair:
    return JudgedPair(
        position=f"row {instruction}",
        instruction=instruction,
        models=("gpt-4", "qwen-2"),
        winner=majority(votes) if votes and winner is None else winner,
        votes=votes,
        by_votes=bool(votes) and winner is None,
        by=by,
        question=question,
    )


def test_each_vote_is_a_match_and_a_judges_verdict_stays_one() -> None:
    verdicts = Verdicts(
        [
            pair("q1", votes=("model_a", "model_a", "model_b", "model_a", "tie")),
            pair("q2", votes=("model_b", "model_b"), winner="model_a"),
            pair("q3", winner="tie"),
            pair("q4"),
        ]
    )
    assert verdicts.matches().score_a.tolist() == [1.0, 1.0, 0.5]
    found = verdicts.each_vote().matches()
    assert found.score_a.tolist() == [1.0, 1.0, 0.0, 1.0, 0.5, 1.0, 0.5]
    assert found.instructions.tolist() == [0, 0, 0, 0, 0, 1, 2]
    assert verdicts.each_vote().without_winner == verdicts.without_winner


@settings(max_examples=example_count(50))
@given(st.lists(st.lists(st.sampled_from(WINNERS), min_size=1, max_size=6), min_size=1, max_size=6))
def test_votes_keep_their_points(votes: list[list[Winner]]) -> None:
    verdicts = Verdicts([pair(f"q{number}", votes=tuple(each)) for number, each in enumerate(votes)])
    found = verdicts.each_vote().matches()
    points = {"model_a": 1.0, "tie": 0.5, "model_b": 0.0}
    assert found.score_a.sum() == sum(points[vote] for each in votes for vote in each)
    assert len(found) == sum(map(len, votes))


def test_votes_of_people_count_one_by_one_in_their_ratings() -> None:
    people = votes_of([pair("q1", votes=("model_a", "model_a", "model_b")), pair("q1", votes=("model_a",))])
    assert people.each_vote().matches().score_a.tolist() == [1.0, 1.0, 0.0, 1.0]
    judged = Verdicts([pair("q1", winner="model_a", by="judge")])
    found = human_agreement(judged, people, each_vote=True, resamples=20, seed=0)
    assert found is not None
    assert (found.pairs, found.systems.models) == (1, 2)


def test_pairs_with_the_same_text_are_drawn_together() -> None:
    verdicts = Verdicts(
        [
            pair(f"q{number}", winner="model_a", question=text)
            for number, text in enumerate(("Say.", "Go.", "Say. ", ""))
        ]
    )
    assert verdicts.drawn_over("instructions").matches().instructions.tolist() == [0, 1, 2, 3]
    assert verdicts.drawn_over("texts").matches().instructions.tolist() == [0, 1, 0, 2]


def test_the_answer_of_the_judges_family_is_marked() -> None:
    families = ModelFamilies({"openai": ["gpt-*"], "qwen": ["qwen-*", "compare*judge=qwen*"]})
    rows = [pair("q1", winner="model_a", by=by) for by in ("gpt-4", "compare/1?judge=qwen-1.5b", "llama-3", "")]
    orders = (JudgedOrder("model_b", "model_a"), JudgedOrder("model_a", "tie"))
    verdicts = Verdicts([*rows, JudgedPair(**{**fields(rows[0]), "orders": orders})])
    assert verdicts.ordered(families).own_family.tolist() == [1, -1, 0, 0, 1, 1]
    assert not np.any(verdicts.ordered().own_family)
    both = ModelFamilies({"all": ["*"]})
    assert not np.any(Verdicts(rows).ordered(both).own_family), "both answers are of the judge's family"


def fields(of: JudgedPair) -> dict[str, object]:
    return {name: getattr(of, name) for name in of.__dataclass_fields__}
