"""Texts that another process computes: they are waited for, and computed here if they do not come."""

import asyncio
import os
import time

import numpy as np
import pytest
from tests.server.encoders.test_cached_encoder import BLOB, DIMS, Bench

from gradewire_server.domain.caller import Lane, Turn, take_turn
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders import cached_encoder
from gradewire_server.encoders.batcher import RunError
from gradewire_server.storage.codec import SENTENCE, encode_tokens
from gradewire_server.storage.shared_table import MIN_BYTES, SharedTable, create_table

_NO_PROCESS = 1 << 22
"""More than the largest number of a process."""


class TwoProcesses:
    """The caches of two processes. The other one goes by the number of this one's parent, which runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        descriptor = create_table(MIN_BYTES, 2)
        self.here = Bench(table=SharedTable(descriptor, 0))
        self._monkeypatch = monkeypatch
        self._table = self.table_of(descriptor, os.getppid())
        self.other = Bench(table=self._table)
        os.close(descriptor)

    def table_of(self, descriptor: int, pid: int) -> SharedTable:
        with self._monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: pid)
            return SharedTable(descriptor, 1)

    def is_claimed(self, text: str) -> bool:
        """Return True if a third process sees that the text is claimed."""
        (name,) = self.here.spaces.sentence.hashes([text])
        return self._table.claimed_elsewhere(name, lambda _: True) or not self._table.claim(name)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> TwoProcesses:
    monkeypatch.setattr(cached_encoder, "_JOINED_FOR_S", 5.0)
    return TwoProcesses(monkeypatch)


async def test_what_another_process_computes_is_waited_for_and_not_computed(two: TwoProcesses) -> None:
    theirs = two.other.fetch("a", "b")
    working = await two.other.submitted(2)
    ours = two.here.fetch("b", "c")
    (mine,) = await two.here.submitted(1)
    assert mine.text == "c"
    mine.done({SENTENCE: BLOB})
    await asyncio.sleep(0.02)
    assert not ours.done()
    for text in working:
        text.done({SENTENCE: BLOB})
    call = await ours
    assert call.results == [BLOB] * 2
    assert list(call.sources) == [AnswerSource.JOINED, AnswerSource.COMPUTED]
    assert list((await theirs).sources) == [AnswerSource.COMPUTED] * 2
    assert len(two.here.queue.submitted) == 1
    assert not len(two.here.pending)
    assert list((await two.other.fetch("c")).sources) == [AnswerSource.MEMORY], "and the other way round"


async def test_what_the_other_process_fails_on_is_computed_here(two: TwoProcesses) -> None:
    theirs = two.other.fetch("a")
    (working,) = await two.other.submitted(1)
    ours = two.here.fetch("a")
    await asyncio.sleep(0.01)
    working.failed(RunError(Failure(Status.UNAVAILABLE, "gone")))
    (mine,) = await two.here.submitted(1)
    mine.done({SENTENCE: BLOB})
    assert (await ours).results == [BLOB]
    assert isinstance((await theirs).results[0], Failure)


async def test_nothing_waits_for_a_process_that_is_gone(monkeypatch: pytest.MonkeyPatch, two: TwoProcesses) -> None:
    gone = two.other.fetch("a")
    await two.other.submitted(1)
    monkeypatch.setattr(cached_encoder, "is_running", lambda _: False)
    ours = two.here.fetch("a")
    began_s = time.monotonic()
    (mine,) = await two.here.submitted(1)
    assert time.monotonic() - began_s < 1
    mine.done({SENTENCE: BLOB})
    assert (await ours).results == [BLOB]
    gone.cancel()


async def test_a_dead_process_has_no_claim(monkeypatch: pytest.MonkeyPatch, two: TwoProcesses) -> None:
    descriptor = create_table(MIN_BYTES, 2)
    dead = two.table_of(descriptor, _NO_PROCESS)
    here = Bench(table=SharedTable(descriptor, 0))
    os.close(descriptor)
    monkeypatch.setattr(cached_encoder, "_FIRST_LOOK_S", 60.0)
    assert dead.claim(here.spaces.sentence.hashes(["a"])[0])
    ours = here.fetch("a")
    (mine,) = await here.submitted(1)
    mine.done({SENTENCE: BLOB})
    assert (await ours).results == [BLOB]


@pytest.mark.parametrize("lane", Lane)
async def test_a_wait_ends_in_time_and_bulk_work_waits_longer(
    monkeypatch: pytest.MonkeyPatch, two: TwoProcesses, lane: Lane
) -> None:
    monkeypatch.setattr(cached_encoder, "_JOINED_FOR_S", 0.01)
    monkeypatch.setattr(cached_encoder, "_BULK_JOINED_FOR_S", 0.3)
    theirs = two.other.fetch("a")
    await two.other.submitted(1)
    take_turn(Turn(lane))
    began_s = time.monotonic()
    ours = two.here.fetch("a")
    (mine,) = await two.here.submitted(1)
    took_s = time.monotonic() - began_s
    assert took_s < 0.25 if lane is Lane.INTERACTIVE else took_s >= 0.3
    mine.done({SENTENCE: BLOB})
    assert (await ours).results == [BLOB]
    theirs.cancel()


async def test_who_stops_waiting_ends_the_wait(two: TwoProcesses) -> None:
    theirs = two.other.fetch("a", "b")
    await two.other.submitted(2)
    gone, late = two.here.fetch("a"), two.here.fetch("b", deadline_s=time.monotonic() + 0.01)
    await asyncio.sleep(0)
    gone.cancel()
    (result,) = (await late).results
    assert isinstance(result, Failure)
    assert result.status is Status.TIMEOUT
    await asyncio.sleep(0.1)
    assert (two.here.dropped("cancelled"), two.here.dropped("deadline"), len(two.here.pending)) == (1, 1, 0)
    assert not two.here.queue.submitted
    theirs.cancel()


async def test_token_vectors_that_the_other_process_did_not_compute_are_computed_here(two: TwoProcesses) -> None:
    theirs = two.other.fetch("a")
    (working,) = await two.other.submitted(1)
    ours = two.here.fetch("a", kind=1)
    await asyncio.sleep(0.01)
    working.done({SENTENCE: BLOB})
    (mine,) = await two.here.submitted(1)
    assert mine.kinds == {1}
    blob = encode_tokens(BLOB, np.ones((1, DIMS), np.float32), np.zeros((1, 2), np.int32), np.ones(1, np.int32))
    assert blob is not None
    mine.done({SENTENCE: BLOB, 1: blob})
    assert (await ours).results == [blob]
    await theirs
    assert list((await two.other.fetch("a", kind=1)).sources) == [AnswerSource.MEMORY]


async def test_a_claim_ends_with_its_work_however_that_ends(two: TwoProcesses) -> None:
    call = two.here.fetch("done", "failed", "refused", "left")
    done, failed, refused, left = await two.here.submitted(4)
    assert all(two.is_claimed(text) for text in ("done", "failed", "refused", "left"))
    done.done({SENTENCE: BLOB})
    failed.failed(RunError(Failure(Status.UNAVAILABLE, "gone")))
    refused.done(Failure(Status.INTERNAL, "not finite"))
    await asyncio.sleep(0.01)
    call.cancel()
    left.dropped()
    await asyncio.sleep(0.01)
    assert not any(two.is_claimed(text) for text in ("done", "failed", "refused", "left"))
    two.here.queue.defect = ZeroDivisionError()
    (result,) = (await two.here.fetch("defect")).results
    assert isinstance(result, Failure)
    assert not two.is_claimed("defect")


async def test_a_wait_ends_when_the_encoder_closes(two: TwoProcesses) -> None:
    theirs = two.other.fetch("a")
    await two.other.submitted(1)
    ours = two.here.fetch("a", tier=Tier.REFERENCE)
    await asyncio.sleep(0.01)
    closing = asyncio.create_task(two.here.cache.close(Failure(Status.UNAVAILABLE, "closing")))
    await asyncio.sleep(0.01)
    ours.cancel()  # a server ends its calls before it closes
    async with asyncio.timeout(1):
        await closing
    assert not len(two.here.pending)
    theirs.cancel()
