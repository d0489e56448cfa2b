"""Distinct texts that go to a port together, and how its answers come back to those who wait for them."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.conventions.spans import Span, Value
from gradewire_proto.conventions.telemetry_names import (
    ANSWERED_FROM,
    FAILURES,
    INFERENCE_S,
    OPERATION,
    QUEUE_S,
    REQUEST_MODEL,
    TEXTS,
)
from gradewire_server.domain.needs import (
    Answer,
    AnswerSource,
    Tier,
)
from gradewire_server.domain.ports import Ports
from gradewire_server.domain.result import Failure, Timing
from gradewire_server.scoring.program_run import ProgramRun

T = TypeVar("T", bound=Hashable)
AnyRun: TypeAlias = ProgramRun[Any, Any]
Positions: TypeAlias = range | list[int]


class PortCall(ABC, Generic[T]):
    """Distinct texts (or look-ups) that go to a port together, and who waits for which of them."""

    span_name = ""
    """Of its span, where the request is traced."""
    operation = ""
    """Of a model, as OpenTelemetry calls it."""
    weight = 1
    """How many sentence vectors one answer is as large as."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._index: dict[T, int] = {}
        self._tiers: list[Tier] = []
        self._asks: list[tuple[AnyRun, int, Positions]] = []

    def __len__(self) -> int:
        return len(self._index)

    def add(self, run: AnyRun, slot: int, texts: Sequence[T], tier: Tier) -> None:
        """Registers that answer number `slot` of `run`'s round is for `texts`; the strongest tier of a text counts."""
        index = self._index
        before = len(index)
        found = [index.setdefault(text, len(index)) for text in texts]
        new = len(index) - before
        self._tiers.extend([tier] * new)
        if new == len(found):
            # All new: a range, so that the answer is a view and not a copy.
            self._asks.append((run, slot, range(before, before + new)))
            return
        for position in found:
            self._tiers[position] = max(self._tiers[position], tier)
        self._asks.append((run, slot, found))

    @abstractmethod
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        """Gets everything from the port that has it; whatever that raises goes through."""

    @abstractmethod
    def _answer(self, positions: Positions) -> Answer:
        """The answer to one need, after `ask`."""

    def _bill(self) -> tuple[NDArray[np.uint8], Timing] | None:
        """Where every text was found and the seconds of the call, if the port says so."""
        return None

    def asked(self) -> dict[str, Value]:
        """Attributes of its span that are known before it is asked; no text of anybody's."""
        found: dict[str, Value] = {TEXTS: len(self)}
        if self.operation:
            found[OPERATION] = self.operation
        if self.model:
            found[REQUEST_MODEL] = self.model.partition("@")[0]
        return found

    def tell(self, span: Span) -> None:
        """Sets what is known after `ask`."""
        bill = self._bill()
        if bill is not None:
            sources, timing = bill
            for source, count in enumerate(np.bincount(sources, minlength=len(AnswerSource)).tolist()):
                if count:
                    span.set(f"{ANSWERED_FROM}.{AnswerSource(source).name.lower()}", count)
            tell_timing(span, timing)
        if failures := self._failures():
            span.set(FAILURES, failures)

    def _failures(self) -> int:
        """How many of its texts failed, if the port says so."""
        return 0

    def deliver(self) -> Iterator[AnyRun]:
        """Puts answers and costs into the runs, after `ask`, one run per step; yields those whose round is complete.

        It can be left waiting between two steps: a large call must not keep the event loop from others.
        """
        bill = self._bill()
        for run, asks in self._by_run():
            if bill is not None:
                sources, timing = bill
                _charge(run, [positions for _, _, positions in asks], sources)
                run.cost.add_timing(timing)
            yield from self._settle(run, [(slot, self._answer(positions)) for _, slot, positions in asks])

    def fail(self, failure: Failure) -> Iterator[AnyRun]:
        """Puts `failure` in place of every answer; otherwise as `deliver`."""
        for run, asks in self._by_run():
            yield from self._settle(run, [(slot, failure) for _, slot, _ in asks])

    def _by_run(self) -> Iterator[tuple[AnyRun, list[tuple[AnyRun, int, Positions]]]]:
        # A run's asks stand next to each other, because a round is added as a whole.
        return ((run, list(asks)) for run, asks in itertools.groupby(self._asks, key=itemgetter(0)))

    def _settle(self, run: AnyRun, answers: list[tuple[int, Answer]]) -> Iterator[AnyRun]:
        for slot, answer in answers:
            run.answers[slot] = answer
            run.missing -= 1
        if not run.missing:
            yield run


def _charge(run: AnyRun, used: list[Positions], sources: NDArray[np.uint8]) -> None:
    new = [positions for positions in used if isinstance(positions, range)]
    if len(new) == len(used):
        # New texts of one run have no gap between them. Of so few bytes bytes.count is faster than numpy.
        mine = sources[new[0].start : new[-1].stop].tobytes()
    else:
        mine = sources[list(set().union(*used))].tobytes()
    run.cost.add_sources([mine.count(source) for source in AnswerSource])


def tell_timing(span: Span, timing: Timing) -> None:
    """Sets what took a model's time; work that came from a cache took none."""
    if timing.inference_s:
        span.set(QUEUE_S, timing.queue_s)
        span.set(INFERENCE_S, timing.inference_s)


def rows_of(positions: Positions) -> slice | list[int]:
    """Positions as numpy takes them: a range as a slice, which copies nothing."""
    return slice(positions.start, positions.stop) if isinstance(positions, range) else positions
