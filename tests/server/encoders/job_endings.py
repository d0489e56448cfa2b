"""How jobs end: what submissions tell, as a test reads it."""

import asyncio
from collections.abc import Sequence
from typing import Any

from gradewire_server.encoders.batcher import RunError, Submission


class EndingJob:
    """A job that notes its ends: "done", "failed" or "dropped"; it is done with its own `answer`."""

    def __init__(self, length: int, answer: int) -> None:
        self.length = length
        self.answer = answer
        self.cancelled = False
        self.ends: list[str] = []


_watching: set["asyncio.Task[None]"] = set()


def watch(submission: Submission[Any, int]) -> None:
    """Notes how the jobs of a submission end."""

    async def note() -> None:
        async for part in submission:
            for place, job in enumerate(part.jobs):
                if part.results is not None:
                    assert part.results[place] == job.answer
                    job.ends.append("done")
                elif part.error is not None:
                    assert isinstance(part.error, RunError) or str(part.error) == "a broken model"
                    job.ends.append("failed")
                else:
                    job.ends.append("dropped")

    task = asyncio.get_running_loop().create_task(note())
    _watching.add(task)
    task.add_done_callback(_watching.discard)


async def ended(jobs: Sequence[EndingJob]) -> None:
    """Waits until all have ended."""
    async with asyncio.timeout(10):
        while not all(job.ends for job in jobs):  # noqa: ASYNC110 - jobs have no event of their own
            await asyncio.sleep(0.001)
