"""Tournaments of known strengths, and matches as hypothesis draws them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from gradewire_stats.ratings import Matches


def tournament(
    strengths: Sequence[float], *, instructions: int, seed: int, ties: float = 0.1, first: float = 0.0
) -> Matches:
    """Every two models on every instruction; `first` is what being shown first adds, in units of strength."""
    random = np.random.default_rng(seed)
    models = len(strengths)
    rows = []
    for instruction in range(instructions):
        for one in range(models):
            for other in range(one + 1, models):
                a, b = (one, other) if random.random() < 0.5 else (other, one)
                wins = random.random() < 1 / (1 + np.exp(strengths[b] - strengths[a] - first))
                # A tie instead of a verdict, whoever would have won, leaves points at half of what they are worth.
                rows.append((a, b, 0.5 if random.random() < ties else float(wins), instruction))
    return Matches.of(
        [f"model {number}" for number in range(models)],
        *np.array(rows).T,
        shown_first=[1 if first else 0] * len(rows),
    )


@st.composite
def drawn_matches(draw: st.DrawFn, *, models: int = 4, least: int = 1) -> Matches:
    """A few matches of a few models, connected or not."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, models - 1), st.integers(1, models - 1), st.sampled_from([0.0, 0.5, 1.0])),
            min_size=least,
            max_size=40,
        )
    )
    instructions = draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    _, numbered = np.unique(instructions, return_inverse=True)
    a = [row[0] for row in rows]
    b = [(row[0] + row[1]) % models for row in rows]
    return Matches.of(
        [f"model {number}" for number in range(models)], a, b, [row[2] for row in rows], numbered.tolist()
    )


def swapped(matches: Matches, sides: Sequence[bool]) -> Matches:
    """The same matches with A and B in each other's place where `sides` says so."""
    turn = np.asarray(sides)
    columns = Matches.of(
        matches.models,
        np.where(turn, matches.b, matches.a).tolist(),
        np.where(turn, matches.a, matches.b).tolist(),
        np.where(turn, 1 - matches.score_a, matches.score_a).tolist(),
        matches.instructions.tolist(),
        shown_first=np.where(turn, -matches.shown_first, matches.shown_first).tolist(),
        words=[tuple(pair) for pair in np.where(turn[:, None], matches.words[:, ::-1], matches.words).tolist()],
    )
    return replace(columns, weights=matches.weights)


def renumbered(matches: Matches, numbers: Sequence[int]) -> Matches:
    """The same matches with model `i` called by the name and number `numbers[i]`."""
    new = np.asarray(numbers)
    return Matches.of(
        matches.models,
        new[matches.a].tolist(),
        new[matches.b].tolist(),
        matches.score_a.tolist(),
        matches.instructions.tolist(),
    )
