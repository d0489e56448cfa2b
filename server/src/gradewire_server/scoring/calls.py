"""Open needs of many programs, merged into one call of a port per model and kind."""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_proto.conventions.spans import Span, Value
from gradewire_proto.conventions.telemetry_names import (
    ANSWERED_FROM,
    CORPUS,
    EMBEDDINGS,
    ENCODE,
    ENCODE_TOKENS,
    FAILURES,
    GRADE,
    INFERENCE_S,
    OPERATION,
    PREPARED,
    QUEUE_S,
    REQUEST_MODEL,
    SYNONYMS,
    TEXTS,
)
from gradewire_server.domain.needs import (
    Answer,
    AnswerSource,
    CorpusStatistics,
    DocumentFrequencies,
    GradedTexts,
    Grades,
    PreparedAnswers,
    Synonyms,
    Tier,
    TokenVectors,
    Vectors,
)
from gradewire_server.domain.ports import EmbedReply, GradeReply, Ports, TokensReply
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.scoring.program_run import ProgramRun

T = TypeVar("T", bound=Hashable)
AnyRun: TypeAlias = ProgramRun[Any, Any]
Positions: TypeAlias = range | list[int]
CountCorpus: TypeAlias = Callable[[CorpusStatistics], Awaitable[DocumentFrequencies | Failure]]
"""Counts a corpus, or answers with what it counted before."""
_MAX_LOOKUPS_AT_ONCE = 64


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


def _rows(positions: Positions) -> slice | list[int]:
    return slice(positions.start, positions.stop) if isinstance(positions, range) else positions


class EmbedCall(PortCall[str]):
    """Sentence vectors."""

    span_name, operation = ENCODE, EMBEDDINGS
    _reply: EmbedReply

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        self._reply = await ports.embeddings.embed(self.model, tuple(self._index), self._tiers, deadline_s=deadline_s)

    def _answer(self, positions: Positions) -> Vectors | Failure:
        reply = self._reply
        if reply.failures:
            for position in positions:
                if position in reply.failures:
                    return reply.failures[position]
        rows = _rows(positions)
        return Vectors(reply.values[rows], reply.truncated[rows])

    def _bill(self) -> tuple[NDArray[np.uint8], Timing]:
        return self._reply.sources, self._reply.timing

    @override
    def _failures(self) -> int:
        return len(self._reply.failures)


class RoughCall(EmbedCall):
    """Approximate sentence vectors."""

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        self._reply = await ports.embeddings.embed_roughly(
            self.model, tuple(self._index), self._tiers, deadline_s=deadline_s
        )


class TokensCall(PortCall[str]):
    """Token vectors of one layer."""

    span_name, operation = ENCODE_TOKENS, EMBEDDINGS
    weight = 8
    _reply: TokensReply

    def __init__(self, model: str, layer: int = 0) -> None:
        super().__init__(model)
        self._layer = layer

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        self._reply = await ports.embeddings.embed_tokens(
            self.model, tuple(self._index), self._tiers, layer=self._layer, deadline_s=deadline_s
        )

    def _answer(self, positions: Positions) -> tuple[TokenVectors, ...] | Failure:
        found: list[TokenVectors] = []
        for position in positions:
            item = self._reply.items[position]
            if isinstance(item, Failure):
                return item
            found.append(item)
        return tuple(found)

    def _bill(self) -> tuple[NDArray[np.uint8], Timing]:
        return self._reply.sources, self._reply.timing

    @override
    def _failures(self) -> int:
        return sum(isinstance(item, Failure) for item in self._reply.items)


class GradeCall(PortCall[GradedTexts]):
    """Logits of a grader."""

    span_name = GRADE
    # Three texts of up to 32 768 characters are written as one for each answer, however often a text is used.
    weight = 8
    _reply: GradeReply

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        self._reply = await ports.graders.grade(self.model, tuple(self._index), deadline_s=deadline_s)

    def _answer(self, positions: Positions) -> Grades | Failure:
        reply = self._reply
        if reply.failures:
            for position in positions:
                if position in reply.failures:
                    return reply.failures[position]
        rows = _rows(positions)
        return Grades(reply.logits[rows], reply.truncated[rows], reply.pieces[rows])

    def _bill(self) -> tuple[NDArray[np.uint8], Timing]:
        return self._reply.sources, self._reply.timing

    @override
    def _failures(self) -> int:
        return len(self._reply.failures)


class PreparedCall(PortCall[tuple[str, tuple[str, ...]]]):
    """Stored synthetic answers, by question and references."""

    span_name = PREPARED

    def __init__(self, reference_set: str) -> None:
        super().__init__(model="")
        self._reference_set = reference_set
        self._found: list[PreparedAnswers | Failure] = []

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        del deadline_s  # the store has its own
        if not self._reference_set:
            missing = Failure(
                Status.NOT_PREPARED,
                "reference_set: prepared synthetic answers need the name of a set; call References.Prepare first",
            )
            self._found = [missing] * len(self)
            return
        lookups = list(self._index)
        for start in range(0, len(lookups), _MAX_LOOKUPS_AT_ONCE):
            batch = lookups[start : start + _MAX_LOOKUPS_AT_ONCE]
            self._found += await asyncio.gather(
                *(
                    ports.reference_sets.prepared_answers(self._reference_set, question, references)
                    for question, references in batch
                )
            )

    def _answer(self, positions: Positions) -> PreparedAnswers | Failure:
        return self._found[positions[0]]


class SynonymsCall(PortCall[str]):
    """Synonyms by word."""

    span_name = SYNONYMS

    def __init__(self) -> None:
        super().__init__(model="")
        self._found: Synonyms | Failure = {}

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        del deadline_s  # looking words up takes no time to speak of
        self._found = await ports.lexicon.synonyms(tuple(self._index))

    def _answer(self, positions: Positions) -> Synonyms | Failure:
        del positions
        return self._found


class StatisticsCall(PortCall[CorpusStatistics]):
    """Counts of a corpus, which all items share."""

    span_name = CORPUS

    def __init__(self, count: CountCorpus) -> None:
        super().__init__(model="")
        self._count = count
        self._found: list[DocumentFrequencies | Failure] = []

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        del ports, deadline_s  # what is counted is of use to the next request
        self._found = await asyncio.gather(*map(self._count, self._index))

    def _answer(self, positions: Positions) -> DocumentFrequencies | Failure:
        return self._found[positions[0]]
