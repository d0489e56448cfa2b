"""Memory and single flight before an encoder: it alone completes what waits, however a backend's texts end."""

import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.support.examples import example_count

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders import cached_encoder
from gradewire_server.encoders.batcher import Queued, QueueFullError, RunError, Submission, end, finish
from gradewire_server.encoders.cached_encoder import BlobCache, CachedEncoder
from gradewire_server.encoders.encoder import Encoded, Encoder
from gradewire_server.encoders.pending import PendingText, PendingTexts, VectorCall
from gradewire_server.encoders.prometheus import EncoderTelemetry, ModelTelemetry
from gradewire_server.encoders.tokenizer import Tokenized
from gradewire_server.storage.cache import SegmentedLru, StorageTelemetry, Write
from gradewire_server.storage.codec import SENTENCE, Blobs, EntryKind, ModelSpaces, encode_blobs, encode_tokens
from gradewire_server.storage.shared_cache import SharedLru
from gradewire_server.storage.shared_table import SharedTable

DIMS = 4
BLOB = encode_blobs(np.ones((1, DIMS), np.float16), np.zeros(1, np.bool_))[0]


class Text:
    """A text that was submitted, whose end a test decides."""

    def __init__(self, queued: Queued[PendingText, Encoded]) -> None:
        self.text = queued.job.text
        self.kinds = queued.job.token_kinds
        self._queued = queued

    def done(self, blobs: Blobs | Failure) -> None:
        finish([self._queued], [Encoded(blobs)], 0, 0)

    def failed(self, error: Exception) -> None:
        end([self._queued], error)

    def dropped(self) -> None:
        end([self._queued])


class ByHand:
    """A queue whose texts a test ends."""

    def __init__(self) -> None:
        self.submitted: list[Text] = []
        self.full = False
        self.defect: Exception | None = None

    def submit(self, texts: Sequence[PendingText], /) -> Submission[PendingText, Encoded]:
        if self.defect is not None:
            raise self.defect
        if self.full:
            raise QueueFullError
        submission: Submission[PendingText, Encoded] = Submission(len(texts))
        self.submitted += [Text(Queued(text, submission)) for text in texts]
        return submission

    async def close(self, reason: Failure) -> None:
        for text in self.submitted:
            text.failed(RunError(reason))


class Stored:
    """A second level with what a test put into it."""

    source = AnswerSource.DISK
    available = True

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.reads = 0

    async def read(self, keys: Sequence[bytes], dims: int, *, kind: EntryKind = EntryKind.SENTENCE) -> list[Any]:
        del dims, kind
        self.reads += 1
        await asyncio.sleep(0)
        return [self.values.get(key) for key in keys]

    async def write(self, writes: Sequence[Write]) -> int:
        self.values |= {write.key: write.blob for write in writes}
        return len(writes)

    def degraded(self) -> str:
        return ""

    async def close(self) -> None:
        return


class Bench:
    """A cache over an encoder whose runs are done by hand."""

    def __init__(self, second: Stored | None = None, table: SharedTable | None = None) -> None:
        self.registry = CollectorRegistry()
        self.queue = ByHand()
        telemetry = EncoderTelemetry(self.registry)
        self.spaces = ModelSpaces(namespace="a", digest="0" * 64, prefix="", dims=DIMS)
        model: Any = SimpleNamespace(name="m", token_layers=(1, 2))
        tokenizer: Any = SimpleNamespace(encode=self._tokenize)
        encoder = Encoder(model, tokenizer, self.spaces, self.queue, ModelTelemetry(telemetry, "m"))
        self.lru = SegmentedLru(1 << 20) if table is None else SharedLru(1 << 20, table)
        blobs = BlobCache(self.lru, second, StorageTelemetry(self.registry), max_pending_writes=9, claims=table)
        self.pending = PendingTexts()
        self.cache = CachedEncoder(encoder, blobs, self.pending, telemetry)

    @staticmethod
    def _tokenize(texts: Sequence[str], *, offsets: bool = False) -> list[Tokenized]:
        del offsets
        return [Tokenized(np.arange(len(text), dtype=np.int32), truncated=False) for text in texts]

    def fetch(
        self, *texts: str, kind: int = SENTENCE, tier: Tier = Tier.WINDOW, deadline_s: float | None = None
    ) -> asyncio.Task[VectorCall]:
        tiers = [tier] * len(texts)
        return asyncio.create_task(self.cache.fetch(texts, tiers, kind=kind, deadline_s=deadline_s))

    async def submitted(self, count: int) -> list[Text]:
        async with asyncio.timeout(5):
            while len(self.queue.submitted) < count:  # noqa: ASYNC110 - a list has no event
                await asyncio.sleep(0)
        return self.queue.submitted

    def dropped(self, reason: str) -> float:
        return self.registry.get_sample_value("gradewire_engine_dropped_texts_total", {"reason": reason}) or 0


async def test_what_is_known_is_answered_at_once_and_what_is_pending_is_joined() -> None:
    bench = Bench()
    first, second = bench.fetch("a", "b"), bench.fetch("b")
    submitted = await bench.submitted(2)
    assert [text.text for text in submitted] == ["a", "b"]
    for text in submitted:
        text.done({SENTENCE: BLOB})
    assert list((await first).sources) == [AnswerSource.COMPUTED, AnswerSource.COMPUTED]
    assert list((await second).sources) == [AnswerSource.JOINED]
    known = bench.cache.fetch(["a", "b"], [Tier.WINDOW] * 2, kind=SENTENCE, deadline_s=None)
    with pytest.raises(StopIteration) as ended:
        known.send(None)  # without one turn of the event loop
    assert list(ended.value.value.sources) == [AnswerSource.MEMORY] * 2
    assert len(bench.queue.submitted) == 2


async def test_what_ends_badly_is_told_and_not_kept() -> None:
    bench = Bench()
    call = bench.fetch("a", "b", "c")
    one, two, three = await bench.submitted(3)
    one.failed(RunError(Failure(Status.UNAVAILABLE, "gone")))
    two.failed(RuntimeError("a broken model in /secret"))
    three.done(Failure(Status.INTERNAL, "not finite"))
    failures = [result for result in (await call).results if isinstance(result, Failure)]
    assert [failure.status for failure in failures] == [Status.UNAVAILABLE, Status.UNAVAILABLE, Status.INTERNAL]
    assert failures[0].message == "gone"
    assert "secret" not in failures[1].message
    again = bench.fetch("a", "b", "c")
    for text in (await bench.submitted(6))[3:]:
        text.done({SENTENCE: BLOB})
    assert (await again).results == [BLOB] * 3


async def test_a_full_queue_a_defect_and_a_closed_encoder_answer_every_caller() -> None:
    bench = Bench()
    bench.queue.full = True
    (full,) = (await bench.fetch("a")).results
    assert isinstance(full, Failure)
    assert "queue is full" in full.message
    bench.queue.defect = ZeroDivisionError()
    (defect,) = (await bench.fetch("a")).results
    assert isinstance(defect, Failure)
    assert defect.status is Status.INTERNAL
    bench.queue.full, bench.queue.defect = False, None
    open_call = bench.fetch("b")
    await bench.submitted(1)
    await bench.cache.close(Failure(Status.UNAVAILABLE, "closing"))
    for call in (open_call, bench.fetch("c")):
        (result,) = (await call).results
        assert isinstance(result, Failure)
        assert result.message == "closing"
    assert not len(bench.pending)


async def test_what_nobody_wanted_is_dropped_and_counted_by_its_reason() -> None:
    bench = Bench()
    gone, late = bench.fetch("a"), bench.fetch("b", deadline_s=time.monotonic() + 0.01)
    one, two = await bench.submitted(2)
    gone.cancel()
    (result,) = (await late).results
    assert isinstance(result, Failure)
    assert result.status is Status.TIMEOUT
    one.dropped()
    two.dropped()
    await asyncio.sleep(0.01)
    assert (bench.dropped("cancelled"), bench.dropped("deadline"), len(bench.pending)) == (1, 1, 0)


async def test_who_comes_in_the_moment_in_which_a_text_is_dropped_is_served_all_the_same() -> None:
    bench = Bench()
    gone = bench.fetch("a")
    (first,) = await bench.submitted(1)
    gone.cancel()
    await asyncio.wait([gone])
    first.dropped()  # the cache is told of it in the next turn
    call = asyncio.ensure_future(bench.cache.fetch(["a"], [Tier.WINDOW], kind=SENTENCE, deadline_s=None))
    joined = VectorCall(1, deadline_s=None)
    assert bench.pending.join(bench.spaces.sentence.hashes(["a"])[0], joined, 0, SENTENCE, Tier.WINDOW)
    _, second = await bench.submitted(2)
    second.done({SENTENCE: BLOB})
    assert (await call).results == [BLOB]
    await joined.wait()
    assert joined.results == [BLOB]
    assert bench.dropped("cancelled") == 0


async def test_who_wants_more_than_a_run_gave_waits_for_another_one() -> None:
    bench = Bench()
    sentence = bench.fetch("a", tier=Tier.PREDICTION)
    (first,) = await bench.submitted(1)
    tokens = bench.fetch("a", kind=1, tier=Tier.PREDICTION)
    await asyncio.sleep(0)
    first.done({SENTENCE: BLOB})
    assert (await sentence).results == [BLOB]
    _, second = await bench.submitted(2)
    assert second.kinds == {1}
    blob = encode_tokens(BLOB, np.ones((1, DIMS), np.float32), np.zeros((1, 2), np.int32), np.ones(1, np.int32))
    assert blob is not None
    second.done({SENTENCE: BLOB, 1: blob})
    assert (await tokens).results == [blob]


async def test_what_is_stored_is_not_computed_and_windows_are_not_looked_up() -> None:
    second = Stored()
    bench = Bench(second)
    (name,) = bench.spaces.sentence.hashes(["a"])
    second.values[bench.spaces.sentence.stored(name)] = BLOB
    call = bench.fetch("a", "b", tier=Tier.REFERENCE)
    (text,) = await bench.submitted(1)
    assert text.text == "b"
    text.done({SENTENCE: BLOB})
    assert list((await call).sources) == [AnswerSource.DISK, AnswerSource.COMPUTED]
    window = bench.fetch("c")
    (await bench.submitted(2))[1].done({SENTENCE: BLOB})
    await window
    assert second.reads == 1


@settings(max_examples=example_count(100))
@given(st.lists(st.integers(0, 12), max_size=60))
def test_slices_hold_every_text_once_and_are_bounded(lengths: list[int]) -> None:
    texts = ["x" * length for length in lengths]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cached_encoder, "_SLICE", 5)
        patched.setattr(cached_encoder, "_SLICE_CHARACTERS", 20)
        parts = list(cached_encoder._slices(texts))
    assert [text for start, stop in parts for text in texts[start:stop]] == texts
    for start, stop in parts:
        assert stop - start <= 5
        assert stop - start == 1 or sum(lengths[start:stop]) <= 20


async def test_computed_texts_reach_the_second_level_once_with_their_tier() -> None:
    stored = Stored()
    bench = Bench(stored)
    calls = [bench.fetch("a", "b", tier=Tier.PREDICTION), bench.fetch("w", tier=Tier.WINDOW)]
    for text in await bench.submitted(3):
        text.done({SENTENCE: BLOB})
    for call in calls:
        await call
    await bench.cache.close()
    keys = [bench.spaces.sentence.stored(name) for name in bench.spaces.sentence.hashes(["a", "b"])]
    assert stored.values == dict.fromkeys(keys, BLOB)
    (kept,) = (await bench.fetch("a")).results
    assert isinstance(kept, bytes)
    assert kept[-1] == Tier.PREDICTION


async def test_a_sentence_vector_that_is_already_in_memory_stays_the_one_that_counts() -> None:
    bench = Bench()
    other = encode_blobs(np.full((1, DIMS), 2, np.float16), np.zeros(1, np.bool_))[0]
    call = bench.fetch("a")
    (text,) = await bench.submitted(1)
    bench.lru.put(bench.spaces.sentence.hashes(["a"])[0], BLOB, pinned=False)
    text.done({SENTENCE: other})
    assert (await call).results == [BLOB]
