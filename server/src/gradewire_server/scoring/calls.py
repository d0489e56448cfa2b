"""Open needs of many programs, merged into one call of a port per model and kind."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_proto.conventions.telemetry_names import (
    CORPUS,
    EMBEDDINGS,
    ENCODE,
    ENCODE_TOKENS,
    GRADE,
    PREPARED,
    SYNONYMS,
)
from gradewire_server.domain.needs import (
    CorpusStatistics,
    DocumentFrequencies,
    GradedTexts,
    Grades,
    PreparedAnswers,
    Synonyms,
    TokenVectors,
    Vectors,
)
from gradewire_server.domain.ports import EmbedReply, GradeReply, Ports, TokensReply
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.scoring.port_call import PortCall, Positions, rows_of

CountCorpus: TypeAlias = Callable[[CorpusStatistics], Awaitable[DocumentFrequencies | Failure]]
"""Counts a corpus, or answers with what it counted before."""
_MAX_LOOKUPS_AT_ONCE = 64


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
        rows = rows_of(positions)
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
        rows = rows_of(positions)
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
