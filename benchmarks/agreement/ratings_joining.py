"""Measure the cost of adding a new model to a field of 12, with chosen pairs and with all pairs.

All pairs of the 12 models have been judged on `--known` instructions. Three methods give the new model's interval the
same width: judge the model against all 12, instruction by instruction; judge all pairs of the 13, instruction by
instruction; or choose pairs (`next_pairs`). Prints the number of judgements for several strengths of the new model and
spreads of the answers' quality.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from benchmarks.agreement.ratings_coverage import Field, World

from gradewire_stats.ratings import USUAL_SCALE, ChosenPair, Matches, PairPool, next_pairs, pair_counts, rate

_BATCH = 24


def width(matches: Matches, resamples: int) -> float:
    """Return the width of the new model's interval in points."""
    table = rate(matches, resamples=resamples, with_elo=False)
    (new,) = (line for line in table.models if line.model == matches.models[-1])
    return new.bradley_terry.high - new.bradley_terry.low if new.bradley_terry.resamples else np.inf


def costs(field: Field, options: argparse.Namespace, seed: int, target: float) -> tuple[int, int]:
    """Return the number of judgements for a narrow interval, against all 12 models and with chosen pairs."""
    new = len(field.strengths) - 1
    world = World(field, options.instructions, seed)
    pool = PairPool(new + 1, {str(number): range(new + 1) for number in range(options.instructions)})
    known = [pair for pair in pool.all_pairs() if pair.second < new and int(pair.instruction) < options.known]
    world.matches(known)
    order = np.random.default_rng([seed, 1]).permutation(options.instructions)
    every: list[ChosenPair] = []
    for instruction in order:
        every += [ChosenPair(str(instruction), other, new) for other in range(new)]
        if len(every) % _BATCH == 0 and width(world.matches([*known, *every]), options.resamples) <= target:
            break
    chosen: list[ChosenPair] = []
    while width(world.matches([*known, *chosen]), options.resamples) > target:
        counts = pair_counts(world.matches([*known, *chosen]))
        further = next_pairs(pool, [*known, *chosen], counts, uncertain=[new], at_most=_BATCH, seed=seed)
        if not further:
            break
        chosen += further
    return len(every), len(chosen)


def main() -> None:
    """Print a line for each spread and each strength of the new model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", type=int, default=500)
    parser.add_argument("--known", type=int, default=100, help="instructions on which the 12 were compared")
    parser.add_argument("--range", type=float, default=700, help="points between the strongest and the weakest")
    parser.add_argument("--target-width", type=float, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--resamples", type=int, default=300)
    options = parser.parse_args()
    began = time.perf_counter()
    print("spread  new model  against all 12  full round robin  chosen  of all 12  of the round robin")
    for spread in (0.0, 0.5, 1.0):
        for place in (-0.5, 0.0, 0.5):
            strengths = np.append(np.linspace(0.5, -0.5, 12), place) * options.range / USUAL_SCALE.per_nat
            field = Field(strengths, spread)
            found = np.array([costs(field, options, seed, options.target_width) for seed in range(options.seeds)])
            every, chosen = found.mean(axis=0)
            whole = every * 13 / 2
            print(
                f"{spread:6.1f}  {place * options.range:+9.0f}  {every:14.0f}  {whole:16.0f}  {chosen:6.0f}  "
                f"{chosen / every:9.0%}  {chosen / whole:18.1%}"
            )
    print(
        f"width {options.target_width:g} points, {options.seeds} seeds, {options.resamples} draws: "
        f"{time.perf_counter() - began:.0f} s; load {' '.join(f'{each:.1f}' for each in os.getloadavg())} on "
        f"{os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
