"""Calls to ports, and programs' costs. A call combines the needs of many programs."""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_proto.tracing.spans import (
    ANSWERED_FROM,
    CHAT,
    EMBEDDINGS,
    ENCODE,
    ENCODE_TOKENS,
    FAILURES,
    GRADE,
    INFERENCE_S,
    INPUT_TOKENS,
    JUDGE,
    OPERATION,
    OUTPUT_TOKENS,
    QUEUE_S,
    REQUEST_MODEL,
    SYNONYMS,
    TEXTS,
    Span,
    Value,
)
from gradewire_server.domain.items import CacheHits, Failure, Timing
from gradewire_server.domain.judge import Choice, Choose, Generated, JudgeNeed
from gradewire_server.domain.needs import (
    Answer,
    AnswerSource,
    CorpusStatistics,
    DocumentFrequencies,
    GradedTexts,
    Grades,
    Need,
    Synonyms,
    Tier,
    TokenVectors,
    Vectors,
)
from gradewire_server.domain.ports import EmbedReply, GradeReply, JudgeReply, Ports, TokensReply

K = TypeVar("K")
R = TypeVar("R")

CountCorpus: TypeAlias = Callable[[CorpusStatistics], Awaitable[DocumentFrequencies | Failure]]
"""A function that returns a corpus's document frequencies."""
_MAX_LOOKUPS_AT_ONCE = 64


ReplyT = TypeVar("ReplyT", EmbedReply, TokensReply, GradeReply)


@dataclass(slots=True, eq=False)
class Cost:
    """A program's cost over all rounds."""

    cache_hits: CacheHits = field(default_factory=CacheHits)
    timing: Timing = field(default_factory=Timing)

    def add_sources(self, counts: list[int]) -> None:
        """Add the number of texts from each source. `counts` are in the order of `AnswerSource`."""
        hits = self.cache_hits
        hits.memory += counts[0]
        hits.disk += counts[1]
        hits.redis += counts[2]
        hits.joined += counts[3]
        hits.computed += counts[4]

    def add_timing(self, timing: Timing) -> None:
        """Add a call's timing."""
        mine = self.timing
        mine.queue_s += timing.queue_s
        mine.cache_s += timing.cache_s
        mine.tokenize_s += timing.tokenize_s
        mine.inference_s += timing.inference_s

    def add(self, other: "Cost") -> None:
        """Add another program's cost."""
        hits = other.cache_hits
        self.add_sources([hits.memory, hits.disk, hits.redis, hits.joined, hits.computed])
        self.add_timing(other.timing)


@dataclass(slots=True, eq=False)
class ProgramRun(Generic[K, R]):
    """A program between two rounds. `answers` has a placeholder for each missing answer; `missing` counts them."""

    key: K
    program: Generator[tuple[Need, ...], tuple[Answer, ...], R]
    answers: list[Answer] = field(default_factory=list)
    missing: int = 0
    cost: Cost = field(default_factory=Cost)


Done = Callable[[K, R | Failure, Cost], None]
"""A callback for the end of a program."""


T = TypeVar("T", bound=Hashable)
AnyRun: TypeAlias = ProgramRun[Any, Any]
Positions: TypeAlias = range | list[int]


class PortCall(ABC, Generic[T]):
    """A port call for distinct texts (or look-ups), with the programs that wait for the answers."""

    span_name = ""
    operation = ""
    """OpenTelemetry's name for the operation."""
    weight = 1
    """The size of an answer, relative to the size of a sentence vector."""

    def __init__(self, model: str = "") -> None:
        self.model = model
        self._index: dict[T, int] = {}
        self._tiers: list[Tier] = []
        self._asks: list[tuple[AnyRun, int, Positions]] = []

    def __len__(self) -> int:
        return len(self._index)

    def add(self, run: AnyRun, slot: int, texts: Sequence[T], tier: Tier) -> None:
        """Add the texts for the need at index `slot` in the current round of `run`. A text's highest tier counts."""
        index = self._index
        before = len(index)
        found = [index.setdefault(text, len(index)) for text in texts]
        new = len(index) - before
        self._tiers.extend([tier] * new)
        if new == len(found):
            # With a range, the answer is a view instead of a copy.
            self._asks.append((run, slot, range(before, before + new)))
            return
        for position in found:
            self._tiers[position] = max(self._tiers[position], tier)
        self._asks.append((run, slot, found))

    @abstractmethod
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        """Request all answers from the port. May raise the port's exceptions."""

    @abstractmethod
    def _answer(self, positions: Positions) -> Answer:
        """Return the answer to one need. Call `ask` first."""

    def _bill(self) -> tuple[NDArray[np.uint8], Timing] | None:
        """Return each text's source and the call's timing, or None if these are unknown."""
        return None

    def needs(self) -> dict[str, Value]:
        """Return the span attributes that are known before `ask`, without users' texts."""
        found: dict[str, Value] = {TEXTS: len(self)}
        if self.operation:
            found[OPERATION] = self.operation
        if self.model:
            found[REQUEST_MODEL] = self.model.partition("@")[0]
        return found

    def record(self, span: Span) -> None:
        """Set the span attributes that are known only after `ask`."""
        bill = self._bill()
        if bill is not None:
            sources, timing = bill
            for source, count in enumerate(np.bincount(sources, minlength=len(AnswerSource)).tolist()):
                if count:
                    span.set(f"{ANSWERED_FROM}.{AnswerSource(source).name.lower()}", count)
            record_timing(span, timing)
        if failures := self._failures():
            span.set(FAILURES, failures)

    def _failures(self) -> int:
        return 0

    def deliver(self) -> Iterator[AnyRun]:
        """Pass answers and costs to the runs, and yield each run whose round is complete. Call `ask` first."""
        bill = self._bill()
        for run, asks in self._by_run():
            if bill is not None:
                sources, timing = bill
                _charge(run, [positions for _, _, positions in asks], sources)
                run.cost.add_timing(timing)
            yield from self._settle(run, [(slot, self._answer(positions)) for _, slot, positions in asks])

    def fail(self, failure: Failure) -> Iterator[AnyRun]:
        """Pass `failure` to the runs instead of answers, and yield each run whose round is complete."""
        for run, asks in self._by_run():
            yield from self._settle(run, [(slot, failure) for _, slot, _ in asks])

    def _by_run(self) -> Iterator[tuple[AnyRun, list[tuple[AnyRun, int, Positions]]]]:
        # Each run's needs are adjacent.
        return ((run, list(asks)) for run, asks in itertools.groupby(self._asks, key=itemgetter(0)))

    def _settle(self, run: AnyRun, answers: list[tuple[int, Answer]]) -> Iterator[AnyRun]:
        for slot, answer in answers:
            run.answers[slot] = answer
            run.missing -= 1
        if not run.missing:
            yield run


_SOURCES: Final = tuple(map(int, AnswerSource))


def _charge(run: AnyRun, used: list[Positions], sources: NDArray[np.uint8]) -> None:
    new = [positions for positions in used if isinstance(positions, range)]
    if len(new) == len(used):
        # A run's new texts are adjacent. For so few bytes, bytes.count is faster than numpy.
        mine = sources[new[0].start : new[-1].stop].tobytes()
    else:
        mine = sources[list(set().union(*used))].tobytes()
    run.cost.add_sources([mine.count(source) for source in _SOURCES])


def record_timing(span: Span, timing: Timing) -> None:
    """Set a model's timing on a span."""
    if timing.inference_s:
        span.set(QUEUE_S, timing.queue_s)
        span.set(INFERENCE_S, timing.inference_s)


def rows_of(positions: Positions) -> slice | list[int]:
    """Return a numpy index for `positions`: if possible a slice, which avoids a copy."""
    return slice(positions.start, positions.stop) if isinstance(positions, range) else positions


class JudgeCall(PortCall[JudgeNeed]):
    """A call for one judge need, which several programs may share."""

    span_name = JUDGE
    _reply: JudgeReply[Any]

    def __init__(self, need: JudgeNeed) -> None:
        super().__init__(need.model)
        self.need = need

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        if isinstance(self.need, Choose):
            self._reply = await ports.judges.choose(self.need, deadline_s=deadline_s)
        else:
            self._reply = await ports.judges.generate(self.need, deadline_s=deadline_s)

    @override
    def needs(self) -> dict[str, Value]:
        return judge_attributes(self.model)

    @override
    def record(self, span: Span) -> None:
        record_judge_reply(span, self._reply)

    def _answer(self, positions: Positions) -> Choice | Generated | Failure:
        del positions
        answer: Choice | Generated | Failure = self._reply.answer
        return answer

    @override
    def deliver(self) -> Iterator[AnyRun]:
        # A computed answer counts as COMPUTED for the first program, and as JOINED for all other programs.
        source = self._reply.source
        for run, asks in self._by_run():
            counts = [0] * len(AnswerSource)
            counts[source] = 1
            run.cost.add_sources(counts)
            run.cost.add_timing(self._reply.timing)
            yield from self._settle(run, [(slot, self._answer(positions)) for _, slot, positions in asks])
            source = AnswerSource.JOINED if source is AnswerSource.COMPUTED else source


def judge_attributes(model: str) -> dict[str, Value]:
    """Return the span attributes for a judge call. `model` is NAME, NAME@DIGEST, or "" for the default judge."""
    name = model.partition("@")[0]
    return {OPERATION: CHAT, REQUEST_MODEL: name} if name else {OPERATION: CHAT}


def record_judge_reply(span: Span, reply: JudgeReply[Any]) -> None:
    """Record a judge reply's source and cost, but none of the reply's texts, on a span."""
    answer = reply.answer
    if isinstance(answer, Failure):
        span.fail(answer.status.name)
        return
    span.set(f"{ANSWERED_FROM}.{reply.source.name.lower()}", 1)
    for name, tokens in ((INPUT_TOKENS, answer.prompt_tokens), (OUTPUT_TOKENS, answer.generated_tokens)):
        if tokens is not None:
            span.set(name, tokens)
    record_timing(span, reply.timing)


class EncoderCall(PortCall[T], Generic[T, ReplyT]):
    """A call to an encoder or a grader. `ask` must set `_reply` and `_failed`, which maps text indices to failures."""

    _reply: ReplyT
    _failed: Mapping[int, Failure]

    def _bill(self) -> tuple[NDArray[np.uint8], Timing]:
        return self._reply.sources, self._reply.timing

    @override
    def _failures(self) -> int:
        return len(self._failed)

    def _answer(self, positions: Positions) -> Answer:
        failed = next((each for each in positions if each in self._failed), None) if self._failed else None
        return self._rows(positions) if failed is None else self._failed[failed]

    @abstractmethod
    def _rows(self, positions: Positions) -> Answer:
        """Return the answer for texts that have not failed."""


class EmbedCall(EncoderCall[str, EmbedReply]):
    """A call for sentence vectors, or for approximate vectors if `roughly` is True."""

    span_name, operation = ENCODE, EMBEDDINGS

    def __init__(self, model: str, *, roughly: bool = False) -> None:
        super().__init__(model)
        self._roughly = roughly

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        embed = ports.embeddings.embed_roughly if self._roughly else ports.embeddings.embed
        self._reply = await embed(self.model, tuple(self._index), self._tiers, deadline_s=deadline_s)
        self._failed = self._reply.failures

    @override
    def _rows(self, positions: Positions) -> Vectors:
        rows = rows_of(positions)
        return Vectors(self._reply.values[rows], self._reply.truncated[rows])


class TokensCall(EncoderCall[str, TokensReply]):
    """A call for token vectors from one layer."""

    span_name, operation = ENCODE_TOKENS, EMBEDDINGS
    weight = 8

    def __init__(self, model: str, layer: int = 0) -> None:
        super().__init__(model)
        self._layer = layer

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        self._reply = await ports.embeddings.embed_tokens(
            self.model, tuple(self._index), self._tiers, layer=self._layer, deadline_s=deadline_s
        )
        self._failed = {index: each for index, each in enumerate(self._reply.items) if isinstance(each, Failure)}

    @override
    def _rows(self, positions: Positions) -> tuple[TokenVectors, ...]:
        items = (self._reply.items[position] for position in positions)
        return tuple(item for item in items if not isinstance(item, Failure))


class GradeCall(EncoderCall[GradedTexts, GradeReply]):
    """A call for a grader's logits."""

    span_name = GRADE
    weight = 8

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        self._reply = await ports.graders.grade(self.model, tuple(self._index), deadline_s=deadline_s)
        self._failed = self._reply.failures

    @override
    def _rows(self, positions: Positions) -> Grades:
        reply, rows = self._reply, rows_of(positions)
        return Grades(reply.logits[rows], reply.truncated[rows], reply.pieces[rows])


class LookupCall(PortCall[T]):
    """A call for stored synthetic answers or document frequencies."""

    def __init__(self, span_name: str, find: Callable[[T], Awaitable[Answer]]) -> None:
        super().__init__(model="")
        self.span_name = span_name
        self._find = find
        self._found: list[Answer] = []

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        lookups = list(self._index)
        for start in range(0, len(lookups), _MAX_LOOKUPS_AT_ONCE):
            self._found += await asyncio.gather(*map(self._find, lookups[start : start + _MAX_LOOKUPS_AT_ONCE]))

    def _answer(self, positions: Positions) -> Answer:
        return self._found[positions[0]]


class SynonymsCall(PortCall[str]):
    """A call for synonyms."""

    span_name = SYNONYMS
    _found: Synonyms | Failure

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        del deadline_s
        self._found = await ports.lexicon.synonyms(tuple(self._index))

    def _answer(self, positions: Positions) -> Synonyms | Failure:
        del positions
        return self._found
