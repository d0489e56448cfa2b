"""Measure how long ratings take for 10 000 matches of 12 models, with 1 000 draws of instructions."""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.agreement.ratings_coverage import Field

from gradewire_stats.bootstrap import draws
from gradewire_stats.ratings import bradley_terry, controlled_fit, elo_draws, pair_counts, rate

if TYPE_CHECKING:
    from collections.abc import Callable


def timed(what: str, call: Callable[[], object]) -> None:
    """Call a function and print its duration."""
    began = time.perf_counter()
    call()
    print(f"{what:<28} {time.perf_counter() - began:6.2f} s")


def main() -> None:
    """Time each part once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=12)
    parser.add_argument("--instructions", type=int, default=500)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    field = Field(np.linspace(1.5, -1.5, options.models))
    matches = field.tournament(options.instructions, options.matches // options.instructions, seed=0)
    random = np.random.default_rng(0)
    first = np.where(random.random(len(matches)) < 0.5, 1, -1)
    words = random.integers(5, 200, size=(len(matches), 2)).astype(float)
    styled = type(matches).of(
        matches.models, matches.a, matches.b, matches.score_a, matches.instructions, shown_first=first, words=words
    )
    chunks = list(draws(np.zeros(options.instructions, np.intp), resamples=options.resamples, seed=0))
    print(
        f"{len(matches)} matches, {options.models} models, {options.instructions} instructions, "
        f"{options.resamples} draws; load {' '.join(f'{each:.1f}' for each in os.getloadavg())} on "
        f"{os.cpu_count()} cores"
    )
    timed("Elo", lambda: elo_draws(matches, chunks))
    timed("Bradley-Terry", lambda: [bradley_terry(pair_counts(matches, chunk)) for chunk in chunks])
    timed("with length and position", lambda: controlled_fit(styled, ["length", "position"], chunks))
    timed("the table", lambda: rate(matches, reference="model 0", resamples=options.resamples))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
