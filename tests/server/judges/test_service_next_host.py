"""A judge host that stops or dies, and the one that takes its place."""

import asyncio

import pytest
from tests.server.judges.scripted_service import choose
from tests.server.judges.served_host import ServedHost, gate_of, until
from tests.support.judges.scripted import ScriptedJudges, by_hash, judge_status

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.ports import REPLACED
from gradewire_server.judges import service
from gradewire_server.judges.backend import JudgeUnavailableError


async def test_what_a_host_that_stops_has_not_answered_the_next_one_does(house: ServedHost) -> None:
    before, after = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    host = await house.host(before)
    process = house.process()
    judge = await process.open("scripted")
    gate_of(before)
    asking = asyncio.create_task(judge.choose(choose()))
    await until(lambda: before.known["scripted"].running == 1)
    await host.stop()
    assert before.known["scripted"].closed
    await until(lambda: bool(judge.trouble()))
    waiting = asyncio.create_task(judge.choose(choose("later")))
    await house.host(after)
    assert (await asking).answer == by_hash(choose())
    assert (await waiting).answer == by_hash(choose("later"))
    assert judge.trouble() == ""
    assert after.opened == ["scripted"]


async def test_a_question_that_was_sent_on_is_not_tried_again_where_the_next_host_dies_over_it(
    house: ServedHost,
) -> None:
    stopping, dying, after = [ScriptedJudges("scripted") for _ in range(3)]
    host = await house.host(stopping)
    judge = await house.process().open("scripted")
    gate_of(stopping)
    asking = asyncio.create_task(judge.choose(choose()))
    await until(lambda: stopping.known["scripted"].running == 1)
    gate_of(dying)
    await host.stop()
    host = await house.host(dying)
    await until(lambda: dying.known["scripted"].running == 1)
    await house.kill(host)
    await house.host(after)
    lost = (await asking).answer
    assert isinstance(lost, Failure)
    assert lost.status is Status.UNAVAILABLE
    assert "ended during this request" in lost.message
    await until(lambda: after.opened == ["scripted"])
    assert (await judge.choose(choose("another"))).answer == by_hash(choose("another"))
    assert len(after.script.asked) == 1


async def test_a_judge_that_a_host_that_stops_has_not_opened_the_next_one_opens(house: ServedHost) -> None:
    before, after = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    never = asyncio.get_running_loop().create_future()
    before.opening = lambda: asyncio.shield(never)
    host = await house.host(before)
    opening = asyncio.create_task(house.process().open("scripted"))
    await until(lambda: before.opened == ["scripted"])
    await host.stop()
    await house.host(after)
    judge = await opening
    assert (await judge.choose(choose())).answer == by_hash(choose())
    assert after.opened == ["scripted"]


async def test_another_judge_of_the_name_answers_for_itself_alone(house: ServedHost) -> None:
    before, after = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    after.known["scripted"]._status = judge_status("scripted", digest="f" * 64)
    host = await house.host(before)
    judge = await house.process().open("scripted")
    planned = choose(model=f"scripted@{judge.status.digest}")
    assert (await judge.choose(planned)).answer == by_hash(planned)
    await host.stop()
    await house.host(after)
    await until(lambda: judge.status.digest == "f" * 64)
    assert (await judge.choose(planned)).answer == REPLACED
    assert (await judge.choose(choose())).answer == by_hash(choose())


async def test_another_judge_is_known_also_where_the_new_host_could_not_open_it_at_once(
    house: ServedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_RETRY_OPENING_AFTER_S", 0.0)
    before, after = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    after.known["scripted"]._status = judge_status("scripted", digest="f" * 64)
    after.failures["scripted"] = Failure(Status.UNAVAILABLE, "its file is being written")
    host = await house.host(before)
    judge = await house.process().open("scripted")
    await host.stop()
    await house.host(after)
    await until(lambda: judge.trouble() == "its file is being written")
    del after.failures["scripted"]
    assert (await judge.choose(choose())).answer == REPLACED
    await until(lambda: judge.status.digest == "f" * 64)
    assert (await judge.choose(choose())).answer == by_hash(choose())
    assert after.opened == ["scripted", "scripted"], "by the way to the new host, and by the question"


async def test_without_a_host_a_question_waits_and_is_then_told_so(house: ServedHost) -> None:
    process = house.process(away_s=0.2)
    with pytest.raises(JudgeUnavailableError, match="is not running; a new process is starting"):
        await process.open("scripted")
    process = house.process()
    opening = asyncio.create_task(process.open("scripted"))
    await asyncio.sleep(0.05)
    await house.host(ScriptedJudges("scripted"))
    judge = await opening
    assert (await judge.choose(choose())).answer == by_hash(choose())
