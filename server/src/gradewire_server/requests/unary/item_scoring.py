"""Scores the items of one Score request: a small one at once, a large one in slices that take turns with others."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gradewire_server.domain.result import Failure, ScoredResult
from gradewire_server.requests.admission.admission import Admission
from gradewire_server.requests.admission.work import Work
from gradewire_server.requests.sets.named import NamedSet
from gradewire_server.requests.unary.replies import ItemReplies
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.scoring.scorer import RECALLED_AT_ONCE, Told

ITEMS_PER_SLICE: Final = 64
"""Items handed to the scorer together: enough to share texts, few enough that others soon get their turn."""


class ItemScoring:
    """The items of one request, and where their results go."""

    def __init__(
        self, scorer: Scorer, replies: ItemReplies, requests: Sequence[MetricRequest | Failure], named: NamedSet
    ) -> None:
        self._scorer = scorer
        self._replies = replies
        self._requests = requests
        self._reference_set = named.name
        self._told: Told | None = None
        self._corpora = scorer.corpora_of(replies.items, reference_set=named.name, corpus_digest=named.corpus_digest)

    def recall(self) -> bool:
        """Answers a small request from what is remembered; whether that is all of it."""
        items, metrics = len(self._replies.items), len(self._requests)
        if not 0 < items * metrics <= RECALLED_AT_ONCE:
            return False
        self._told = self._scorer.recall(self._replies.items, self._requests, emit=self._replies.emit)
        return len(self._told) == items * metrics

    async def at_once(self, deadline_s: float) -> None:
        """Scores all items together; what is not computed at `deadline_s`, `time.monotonic()` seconds, is TIMEOUT."""
        await self._score(0, len(self._replies.items), deadline_s)

    async def in_slices(self, admission: Admission, work: Work, deadline_s: float) -> None:
        """Scores them slice by slice, each when its turn has come."""
        count = len(self._replies.items)
        async with asyncio.TaskGroup() as slices:
            for start in range(0, count, ITEMS_PER_SLICE):
                end = min(start + ITEMS_PER_SLICE, count)
                part = replace(work, size_bytes=work.size_bytes * (end - start) // work.items, items=end - start)
                slices.create_task(self._slice(admission, part, start, end, deadline_s))

    async def _slice(self, admission: Admission, work: Work, start: int, end: int, deadline_s: float) -> None:
        async with admission.bulk(work, source=self):
            await self._score(start, end, deadline_s)

    async def _score(self, start: int, end: int, deadline_s: float) -> None:
        def emit(item_index: int, metric_index: int, scored: ScoredResult) -> None:
            self._replies.emit(start + item_index, metric_index, scored)

        await self._scorer.score(
            self._replies.items[start:end],
            self._requests,
            reference_set=self._reference_set,
            deadline_s=deadline_s,
            corpora=self._corpora,
            told=self._told,
            emit=emit,
        )
