"""Drawn tournaments: models of known strengths, whose answers to one instruction may be better or worse than usual."""

from dataclasses import dataclass
from dataclasses import field as made

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings import ChosenPair, Matches


@dataclass(frozen=True, slots=True)
class Field:
    """Models and how they answer.

    Attributes:
        strengths: float64[models], in natural units (400 / ln 10 = 174 points on Elo's scale).
        spread: Standard deviation of an answer's quality around its model's strength, in the same units; with 0 every
            verdict is independent of all others.
        twice: Share of matches that get two verdicts and are a tie where these differ, as those of both orders: the
            points that a model may expect stay what they were.
    """

    strengths: NDArray[np.float64]
    spread: float = 0.0
    twice: float = 0.4

    @property
    def names(self) -> list[str]:
        """Of the models, the strongest first where strengths descend."""
        return [f"model {number}" for number in range(len(self.strengths))]

    def answers(self, instructions: int, random: np.random.Generator) -> NDArray[np.float64]:
        """Quality of each model's answer, float64[instructions, models]."""
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
        """Scores of the first answers; `of` numbers the instruction of each match."""
        chance = 1 / (1 + np.exp(answers[of, b] - answers[of, a]))
        first, second = (np.asarray(random.random(len(a)) < chance, dtype=np.float64) for _ in range(2))
        return np.where(random.random(len(a)) < self.twice, (first + second) / 2, first)

    def tournament(self, instructions: int, pairs: int | None, seed: int) -> Matches:
        """So many drawn pairs of models on every instruction; None: all pairs."""
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
    """Answers of all models to all instructions, and a verdict for every pair, drawn when it is asked for."""

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
        """Of these pairs, the new ones judged."""
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
