"""Measure how often the intervals of ratings contain the true values, over tournaments with known strengths.

With `--spread`, all verdicts on an answer depend on its quality, so Bradley-Terry ratings are compared with a fit to
200 000 instructions instead of the strengths. Elo has no true values because it starts at 1000 and lags behind, so its
intervals are compared with Elo's mean over 400 more tournaments.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from dataclasses import field as made
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import kendalltau

from gradewire_cli.leaderboard.run import LEAST_INSTRUCTIONS, LEAST_ROUND, ROUNDS
from gradewire_stats.ratings import (
    USUAL_SCALE,
    ChosenPair,
    Matches,
    PairCounts,
    PairPool,
    bradley_terry,
    elo_ratings,
    next_pairs,
    pair_counts,
    rate,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FURTHER = 400
_MANY_INSTRUCTIONS = 200_000


@dataclass(frozen=True, slots=True)
class Field:
    """The models, and the distribution of their answers.

    Attributes:
        strengths: float64[models], in natural units (400 / ln 10 = 174 points on Elo's scale).
        spread: Standard deviation of answers' quality around the model's strength, in the same units. With 0, all
            verdicts are independent.
        twice: Share of matches with two verdicts, like a judge's for both orders. Two different verdicts give a tie.
    """

    strengths: NDArray[np.float64]
    spread: float = 0.0
    twice: float = 0.4

    @property
    def names(self) -> list[str]:
        """The models' names, in the order of `strengths`."""
        return [f"model {number}" for number in range(len(self.strengths))]

    def answers(self, instructions: int, random: np.random.Generator) -> NDArray[np.float64]:
        """Return each answer's quality, float64[instructions, models]."""
        noise = random.normal(0.0, 1.0, size=(instructions, len(self.strengths)))
        return np.asarray(self.strengths + self.spread * noise)

    def verdicts(
        self,
        answers: NDArray[np.float64],
        of: NDArray[np.intp],
        a: NDArray[np.intp],
        b: NDArray[np.intp],
        random: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Return the first answers' scores, model `a` against model `b`; `of` contains each match's instruction."""
        chance = 1 / (1 + np.exp(answers[of, b] - answers[of, a]))
        first, second = (np.asarray(random.random(len(a)) < chance, dtype=np.float64) for _ in range(2))
        return np.where(random.random(len(a)) < self.twice, (first + second) / 2, first)

    def tournament(self, instructions: int, pairs: int | None, seed: int) -> Matches:
        """Return the matches; `pairs` is the number of model pairs drawn for each instruction, None for all."""
        random = np.random.default_rng(seed)
        every = np.array(np.triu_indices(len(self.strengths), 1)).T
        chosen = [
            every if pairs is None else every[random.choice(len(every), pairs, replace=False)]
            for _ in range(instructions)
        ]
        a, b = np.concatenate(chosen).T
        of = np.repeat(np.arange(instructions), [len(each) for each in chosen])
        scores = self.verdicts(self.answers(instructions, random), of, a, b, random)
        return Matches.of(self.names, a, b, scores, of)


@dataclass(slots=True)
class World:
    """All models' answers to all instructions; each pair's verdict is drawn on first use."""

    field: Field
    instructions: int
    seed: int
    verdicts: dict[ChosenPair, float] = made(default_factory=dict)
    random: np.random.Generator = made(init=False)
    answers: NDArray[np.float64] = made(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.answers = self.field.answers(self.instructions, self.random)

    def matches(self, pairs: list[ChosenPair]) -> Matches:
        """Judge the new pairs, and return the matches of all `pairs`."""
        fresh = [pair for pair in pairs if pair not in self.verdicts]
        if fresh:
            of, a, b = np.array([(int(pair.instruction), pair.first, pair.second) for pair in fresh]).T
            scores = self.field.verdicts(self.answers, of, a, b, self.random)
            self.verdicts.update(zip(fresh, scores.tolist(), strict=True))
        return Matches.of(
            self.field.names,
            [pair.first for pair in pairs],
            [pair.second for pair in pairs],
            [self.verdicts[pair] for pair in pairs],
            np.unique([int(pair.instruction) for pair in pairs], return_inverse=True)[1],
        )


def truth_of(field: Field) -> np.ndarray:
    """Return the Bradley-Terry ratings for the whole population of instructions."""
    if not field.spread:
        return np.asarray(1000 + USUAL_SCALE.per_nat * (field.strengths - field.strengths.mean()))
    matches = field.tournament(_MANY_INSTRUCTIONS, 4, seed=10**6)
    return np.asarray(bradley_terry(pair_counts(matches)).ratings()[0])


def chosen(field: Field, instructions: int, target: float, resamples: int, seed: int) -> Matches:
    """Run a tournament that chooses pairs until all models' intervals are narrow enough."""
    models = len(field.strengths)
    world = World(field, instructions, seed)
    pool = PairPool(models, {str(number): range(models) for number in range(instructions)})
    judged: list[ChosenPair] = []
    uncertain = list(range(models))
    while uncertain:
        counts = pair_counts(world.matches(judged)) if judged else PairCounts(*np.zeros((2, 1, models, models)))
        further = next_pairs(
            pool, judged, counts, uncertain=uncertain, at_most=max(LEAST_ROUND, pool.pairs // ROUNDS), seed=seed
        )
        if not further:
            break
        judged += further
        matches = world.matches(judged)
        table = rate(matches, resamples=resamples, seed=seed, with_elo=False)
        uncertain = [
            field.names.index(line.model)
            for line in table.models
            if not line.bradley_terry.high - line.bradley_terry.low <= target
            or line.bradley_terry.questions < LEAST_INSTRUCTIONS
        ]
    return world.matches(judged)


def main() -> None:
    """Play the tournaments and print the coverage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tournaments", type=int, default=100)
    parser.add_argument("--models", type=int, default=12)
    parser.add_argument("--range", type=float, default=700, help="points between the strongest and the weakest model")
    parser.add_argument("--instructions", type=int, default=150)
    parser.add_argument("--pairs", type=int, default=20, help="pairs of models on each instruction")
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--target-width", type=float)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    field = Field(np.linspace(1, -1, options.models) * options.range / 2 / USUAL_SCALE.per_nat, options.spread)
    began = time.perf_counter()
    truths = {
        "Bradley-Terry": truth_of(field),
        "Elo": np.mean(
            [
                elo_ratings(field.tournament(options.instructions, options.pairs, seed=5000 + seed), seed=seed)
                for seed in range(0 if options.target_width else _FURTHER)
            ]
            or [np.full(options.models, np.nan)],
            axis=0,
        ),
    }
    held = {name: np.zeros((options.tournaments, options.models), dtype=bool) for name in truths}
    widths = {name: np.zeros((options.tournaments, options.models)) for name in truths}
    orders = {name: np.zeros(options.tournaments) for name in truths}
    regularised, played = 0, []
    for seed in range(options.tournaments):
        matches = (
            field.tournament(options.instructions, options.pairs, seed=seed)
            if options.target_width is None
            else chosen(field, options.instructions, options.target_width, options.resamples, seed)
        )
        played.append(len(matches))
        table = rate(matches, resamples=options.resamples, seed=seed, with_elo=options.target_width is None)
        regularised += table.regularised
        numbers = [field.names.index(line.model) for line in table.models]
        for name, estimates in (
            ("Bradley-Terry", [line.bradley_terry for line in table.models]),
            ("Elo", [line.elo for line in table.models]),
        ):
            for number, each in zip(numbers, estimates, strict=True):
                held[name][seed, number] = each.low <= truths[name][number] <= each.high
                widths[name][seed, number] = each.high - each.low
            orders[name][seed] = kendalltau([-field.strengths[n] for n in numbers], [-e.value for e in estimates])[0]
    print(
        f"{options.tournaments} tournaments of {options.models} models, {np.mean(played):.0f} matches "
        f"on {options.instructions} instructions, spread of answers {options.spread:g}, {options.resamples} draws: "
        f"{time.perf_counter() - began:.0f} s; load {' '.join(f'{each:.1f}' for each in os.getloadavg())} on "
        f"{os.cpu_count()} cores"
    )
    for name, hits in list(held.items())[: 1 if options.target_width else None]:
        each = hits.sum(axis=0)
        print(
            f"{name:<14} held {hits.mean():.1%} of all; by model {each.min()} to {each.max()} of "
            f"{options.tournaments} ({' '.join(map(str, each))}); mean width {widths[name].mean():.0f} points; "
            f"Kendall with the true order {orders[name].mean():.3f} (lowest {orders[name].min():.3f}), the whole order "
            f"in {np.count_nonzero(orders[name] > 1 - 1e-9)}"
        )
    print(f"regularised: {regularised} tournaments")


if __name__ == "__main__":
    main()
