"""Questions that wait or ask anew: what their time is counted as, and who is not taken along."""

import asyncio
import gc
import weakref
from collections.abc import Sequence

from tests.server.judges.remote.remote_judges import eventually
from tests.server.judges.remote.test_requests import Asked, ask, question, queue

from gradewire_server.domain.items import Timing
from gradewire_server.judges.connections.places import OwnPlaces
from gradewire_server.judges.remote.requests import Answered, RequestQueue
from gradewire_server.judges.remote.server import Question


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


async def test_some_of_a_request_are_asked_apart_before_others_and_who_has_left_is_not() -> None:
    asked = Asked()

    async def send(questions: Sequence[Question], deadline_s: float | None) -> Sequence[Answered | None]:
        each = await asked.send(questions, deadline_s)
        if len(questions) == 1:
            return each
        return [
            None if one.prompt.prediction in "bc" else answered for one, answered in zip(questions, each, strict=True)
        ]

    waiting = RequestQueue(OwnPlaces(1), 4, send)
    calls = [ask(waiting, name) for name in "abcd"]
    await eventually(lambda: asked.under_way == 1)
    behind = ask(waiting, "e")
    calls[2].cancel()
    await asyncio.gather(calls[2], return_exceptions=True)
    asked.gate.set()
    async with asyncio.timeout(10):
        answers = await asyncio.gather(calls[0], calls[1], calls[3], behind)
    assert [answer.text for answer, _ in answers] == ["a", "b", "d", "e"]
    assert asked.requests == [["a", "b", "c", "d"], ["b"], ["e"]]


class _Subject:
    """May be referred to weakly, as texts may not."""


async def test_nothing_is_kept_of_a_subject_that_nobody_asks_about_any_more() -> None:
    """There is one for each item that a server ever judges."""
    asked = Asked(most=2)
    waiting = queue(asked)
    subjects = [_Subject() for _ in range(3)]
    kept = [weakref.ref(each) for each in subjects]
    calls = [asyncio.create_task(waiting.ask(question("a"), each, None, Timing())) for each in subjects for _ in "ab"]
    await asyncio.sleep(0)
    calls[-1].cancel()
    asked.gate.set()
    await asyncio.gather(*calls, return_exceptions=True)
    del subjects, calls

    def gone() -> bool:
        gc.collect()
        return not any(each() for each in kept)

    await eventually(gone)
