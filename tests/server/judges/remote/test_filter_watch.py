"""A content filter that refuses everything is noticed, said once, and forgotten when it lets questions pass."""

import json
import logging

import pytest
from tests.server.judges.remote.remote_judges import choose, opened
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice
from gradewire_server.judges.remote.judge import RemoteJudge

GOOD = completion("2", [{"2": -0.1, "1": -3.0, "3": -4.0}])
BY_CODE = reply(400, {"error": {"code": "content_filter", "message": "filtered"}})
BY_FINISH = completion("", finish="content_filter")
BY_REFUSAL = reply(200, {"choices": [{"message": {"content": None, "refusal": "I will not."}}]})


def is_own(heard: Heard) -> bool:
    return "Is water wet?" in json.dumps(heard.body)


class Filter:
    """Refuses items and, if told so, also our own question."""

    def __init__(self, refusal: bytes, *, all_of_them: bool = True) -> None:
        self.refusal = refusal
        self.all_of_them = all_of_them
        self.refuses = True

    def __call__(self, heard: Heard) -> bytes:
        return self.refusal if self.refuses and (self.all_of_them or not is_own(heard)) else GOOD


async def refused(judge: RemoteJudge, count: int) -> None:
    for _ in range(count):
        failure = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(failure, Failure)
        assert failure.status is Status.UNPARSABLE
        assert "answered with" in failure.message


@pytest.mark.parametrize("refusal", [BY_CODE, BY_FINISH, BY_REFUSAL])
async def test_a_filter_that_refuses_everything_is_said_once_and_seen_in_the_health(
    refusal: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    answers, now_s = Filter(refusal), 1000.0
    async with OddServer(answers=[answers]) as server, opened(server.url) as judge:
        judge._server._learner._clock = lambda: now_s
        await refused(judge, 4)
        assert (judge.trouble(), len(server.heard)) == ("", 4)
        await refused(judge, 11)
        assert "content filter" in judge.trouble()
        assert "refuses every question" in judge.trouble()
        assert sum(map(is_own, server.heard)) == 1
        now_s += 61
        assert judge.trouble() == "", "callers who heed the health would send nothing that could tell"
        await refused(judge, 5)
        assert "content filter" in judge.trouble()
        assert sum(map(is_own, server.heard)) == 2
        assert [record.levelname for record in caplog.records].count("WARNING") == 1
        answers.refuses = False
        assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)
        assert judge.trouble() == ""
    assert "lets questions pass again" in caplog.text


async def test_items_that_a_filter_refuses_say_nothing_about_the_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    answers = Filter(BY_CODE, all_of_them=False)
    async with OddServer(answers=[answers]) as server, opened(server.url) as judge:
        await refused(judge, 20)
        assert judge.trouble() == ""
    assert sum(map(is_own, server.heard)) == 1
    assert caplog.text == ""


async def test_an_answer_in_between_starts_the_count_anew() -> None:
    answers = Filter(BY_CODE)
    async with OddServer(answers=[answers]) as server, opened(server.url) as judge:
        for _ in range(3):
            answers.refuses = True
            await refused(judge, 4)
            answers.refuses = False
            assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)
    assert not any(map(is_own, server.heard))
