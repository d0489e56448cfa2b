"""Questions that wait or ask anew: what their time is counted as, and who is not taken along."""

import asyncio

from tests.server.judges.remote.remote import eventually
from tests.server.judges.remote.test_queue import Asked, ask, question, queue

from gradewire_server.domain.result import Timing


async def test_the_time_of_the_first_request_is_time_of_asking_for_those_that_are_asked_apart() -> None:
    asked = Asked(most=2, apart=True)
    waiting = queue(asked)
    timings = [Timing(), Timing()]
    calls = [asyncio.create_task(waiting.ask(question(str(n)), "s", None, each)) for n, each in enumerate(timings)]
    await eventually(lambda: asked.under_way == 1)
    await asyncio.sleep(0.05)
    asked.gate.set()
    await asyncio.gather(*calls)
    assert all(each.inference_s >= 0.045 for each in timings)
    assert all(each.queue_s < each.inference_s for each in timings)


async def test_one_who_leaves_in_the_turn_in_which_a_request_starts_is_not_taken_along() -> None:
    asked = Asked(most=2)
    asked.gate.set()
    waiting = queue(asked)
    stays, leaves = ask(waiting, "a"), ask(waiting, "b")
    await asyncio.sleep(0)
    leaves.cancel()  # it has yet to leave when the request starts
    await asyncio.gather(stays, leaves, return_exceptions=True)
    assert asked.requests == [["a"]]
