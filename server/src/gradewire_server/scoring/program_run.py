"""A program that is being run, and what it has cost so far."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gradewire_server.domain.needs import Answer, Need
from gradewire_server.domain.result import CacheHits, Failure, Timing

K = TypeVar("K")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class Cost:
    """How many texts were found where, and the seconds of the calls that answered, over all rounds of a program."""

    cache_hits: CacheHits = field(default_factory=CacheHits)
    timing: Timing = field(default_factory=Timing)

    def add_sources(self, counts: list[int]) -> None:
        """Adds texts by `AnswerSource`, in its numbers' order."""
        hits = self.cache_hits
        hits.memory += counts[0]
        hits.disk += counts[1]
        hits.redis += counts[2]
        hits.joined += counts[3]
        hits.computed += counts[4]

    def add_timing(self, timing: Timing) -> None:
        """Adds the seconds of one call that was waited for."""
        mine = self.timing
        mine.queue_s += timing.queue_s
        mine.cache_s += timing.cache_s
        mine.tokenize_s += timing.tokenize_s
        mine.inference_s += timing.inference_s

    def add(self, other: "Cost") -> None:
        """Adds another program's cost."""
        hits = other.cache_hits
        self.add_sources([hits.memory, hits.disk, hits.redis, hits.joined, hits.computed])
        self.add_timing(other.timing)


@dataclass(slots=True, eq=False)
class ProgramRun(Generic[K, R]):
    """A program between two rounds.

    Attributes:
        key: What `done` is told of it.
        program: A generator that yields needs and is sent their answers.
        answers: Of the open round, in the order of its needs; placeholders where one is awaited.
        missing: How many answers are awaited.
        cost: So far.
    """

    key: K
    program: Generator[tuple[Need, ...], tuple[Answer, ...], R]
    answers: list[Answer] = field(default_factory=list)
    missing: int = 0
    cost: Cost = field(default_factory=Cost)


Done = Callable[[K, R | Failure, Cost], None]
"""Told once of each program: its key, what it returned (or INTERNAL where it raised), its cost."""
