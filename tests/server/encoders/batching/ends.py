"""How jobs end: what their futures tell, as a test reads it."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from gradewire_server.encoders.batching.errors import RunError


class EndingJob:
    """A job that notes its ends: "done", "failed" or "dropped"; it is done with its own `answer`."""

    def __init__(self, length: int, answer: int) -> None:
        self.length = length
        self.answer = answer
        self.cancelled = False
        self.ends: list[str] = []


def watch(jobs: Sequence[EndingJob], futures: "Sequence[asyncio.Future[int]]") -> None:
    """Notes how the futures of jobs end."""
    for job, future in zip(jobs, futures, strict=True):
        future.add_done_callback(partial(_note, job))


def _note(job: EndingJob, future: "asyncio.Future[Any]") -> None:
    if future.cancelled():
        job.ends.append("dropped")
    elif (error := future.exception()) is not None:
        assert isinstance(error, RunError) or str(error) == "a broken model"
        job.ends.append("failed")
    else:
        assert future.result() == job.answer
        job.ends.append("done")


async def ended(jobs: Sequence[EndingJob]) -> None:
    """Waits until all have ended."""
    async with asyncio.timeout(10):
        while not all(job.ends for job in jobs):  # noqa: ASYNC110 - jobs have no event of their own
            await asyncio.sleep(0.001)
