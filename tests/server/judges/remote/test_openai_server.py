"""What one user's item does to a server's answers is no reason to ask it otherwise for all others."""

import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.server.judges.remote.remote_judges import Counted, choose, generate, opened
from tests.server.judges.scripted_service import ScriptedService
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply

from gradewire_server.backends import open_stores
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.judges.remote.dialect_learner import TEST_QUESTION, DialectLearner
from gradewire_server.judges.remote.errors import RemoteFault, Reply, server_message, unreachable
from gradewire_server.judges.remote.openai import OpenAIJudges
from gradewire_server.judges.remote.openai_dialect import ServerKind, dialect_of
from gradewire_server.judges.remote.server import Question
from gradewire_server.judges.remote.triton import TritonServer
from gradewire_server.settings.engine import CacheConfig, DiskConfig, TritonConfig
from gradewire_server.settings.judge import JudgeConfig, RemoteJudgeConfig
from gradewire_server.storage.cache import StorageTelemetry
from gradewire_server.triton import Fault, TritonClient, TritonError

GOOD = completion("2", [{"2": -0.7, "1": -1.1, "3": -1.8}])
SURE = completion("2")
NOTHING = reply(
    200,
    {"choices": [{"finish_reason": "stop", "message": {"content": ""}, "logprobs": {"content": []}}]},
)


def own(heard: Heard) -> bool:
    return TEST_QUESTION.prompt.lead in json.dumps(heard.body)


class Server:
    """Answers as a real one; items that hold "odd" as told."""

    def __init__(self, odd: bytes | None = None, *, knows: frozenset[str] = frozenset({"logprobs"})) -> None:
        self.odd = odd
        self.knows = knows

    def __call__(self, heard: Heard) -> bytes:
        if "odd" in json.dumps(heard.body):
            return self.odd or reply(422, {"detail": [{"type": "value_error", "msg": "no", "input": heard.body}]})
        refusable = {"continue_final_message", "structured_outputs"} - self.knows
        for name in sorted(refusable & heard.body.keys()):
            return reply(400, {"error": {"message": f"{name} is not supported", "param": name}})
        return GOOD if "logprobs" in self.knows and "logprobs" in heard.body else SURE


ALL = frozenset({"logprobs", "continue_final_message", "structured_outputs"})


@pytest.mark.parametrize(
    "odd",
    [
        NOTHING,
        SURE,
        None,  # an echo of the request, with our own words in it
        reply(400, {"error": {"message": "the text 'logprobs grammar prefill structured_outputs' is not welcome"}}),
        reply(400, b"logprobs"),
    ],
)
async def test_one_odd_item_changes_nothing_for_others(odd: bytes | None) -> None:
    async with OddServer(answers=[Server(odd, knows=ALL)], owner="vllm") as server, opened(server.url) as judge:
        before = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(before, Choice)
        assert 0.3 < before.probabilities[1] < 0.6
        for _ in range(5):
            failure = (await judge.choose(choose("odd"), deadline_s=None)).answer
            assert isinstance(failure, Failure)
            assert failure.status is Status.UNPARSABLE
        assert (await judge.choose(choose(), deadline_s=None)).answer == before
        assert judge.status.precision == "remote with continued openings, a choice of labels"
    assert server.heard[-1].body.keys() == server.heard[0].body.keys()
    # However many odd ones there are, our own question is not sent each time.
    assert sum(map(own, server.heard)) <= 1


async def test_what_a_server_does_not_do_is_left_out_and_its_verdicts_are_of_another_class() -> None:
    async with OddServer(answers=[Server(knows=frozenset())], owner="vllm") as server, opened(server.url) as judge:
        full = judge.status
        answer = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(answer, Choice)
        assert (answer.probabilities, answer.mass) == ((0, 1, 0), None)
        asked = len(server.heard)
        await judge.choose(choose(), deadline_s=None)
        assert len(server.heard) == asked + 1
        assert not {"logprobs", "structured_outputs", "continue_final_message"} & server.heard[-1].body.keys()
        assert judge.status.digest == full.digest
        assert judge.status.precision == "remote without logprobs, constrains, continues"
        assert "logprobs" in judge.status.remarks[-1]


async def test_a_server_that_was_away_is_asked_again_what_it_does() -> None:
    answers = Server(knows=frozenset())
    async with OddServer(answers=[answers]) as server, opened(server.url) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(answer, Choice)
        assert answer.mass is None
        answers.knows = ALL
        await judge._server.probe()  # as the watch over a server that is away does
        answer = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(answer, Choice)
        assert answer.mass is not None
        assert judge.status.precision == "remote"
        asked = len(server.heard)
        await judge.choose(choose(), deadline_s=None)
        assert len(server.heard) == asked + 1


@pytest.mark.parametrize(
    "models",
    [
        reply(400, {"error": {"message": "no list"}}),
        reply(403, {"error": {"message": "no list"}}),
        reply(404, {}),
        reply(200, b"<html>maintenance</html>"),
        reply(200, {"object": "list", "data": []}),
        reply(200, {"data": [{"id": "x" * (2 << 20)}]}),
    ],
)
async def test_a_server_that_shows_its_models_no_more_is_asked_as_before(models: bytes) -> None:
    async with OddServer(answers=[Server(knows=ALL)], owner="vllm") as server, opened(server.url) as judge:
        await judge.choose(choose(), deadline_s=None)
        asked = server.heard[-1].body
        assert judge.status.precision == "remote with continued openings, a choice of labels"
        server.models = models
        await judge._server.probe()
        await judge.choose(choose(), deadline_s=None)
        assert server.heard[-1].body == asked
        assert judge.status.precision == "remote with continued openings, a choice of labels"
        server.models = reply(200, {"data": [{"id": "m", "owned_by": "somebody"}]})
        await judge._server.probe()
        assert judge.status.precision == "remote", "a list of another server's speaks against the old type"


async def test_verdicts_of_another_way_of_asking_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    config = CacheConfig(disk=DiskConfig(tmp_path, 1 << 22, 1 << 22, 1 << 22))
    stores = await open_stores(config, StorageTelemetry(CollectorRegistry()))
    sources, precisions = [], []
    async with OddServer(answers=[Server(knows=ALL)], owner="vllm") as server:
        listed = server.models
        for models in (listed, reply(403, {}), listed):
            server.models = models
            source = OpenAIJudges(RemoteJudgeConfig(server.url, "m"), Counted())
            bench = ScriptedService(source=source, config=JudgeConfig(default="m"), second=stores.vectors)
            sources.append((await bench.service.choose(choose())).source)
            status = bench.service.status("m")
            assert not isinstance(status, Failure)
            precisions.append((status.digest, status.precision))
            await bench.service.close()
    await stores.vectors.close()
    await stores.prepared.close()
    assert sources[:2] == [AnswerSource.COMPUTED, AnswerSource.COMPUTED]
    assert sources[2] is not AnswerSource.COMPUTED
    full = "remote with continued openings, a choice of labels"
    assert [precision for _, precision in precisions] == [full, "remote", full]
    assert len({digest for digest, _ in precisions}) == 1


async def test_a_verdict_of_words_alone_is_never_taken_for_one_of_probabilities(tmp_path: Path) -> None:
    config = CacheConfig(disk=DiskConfig(tmp_path, 1 << 22, 1 << 22, 1 << 22))
    stores = await open_stores(config, StorageTelemetry(CollectorRegistry()))
    answers = Server(knows=frozenset())
    async with OddServer(answers=[answers]) as server:

        def bench() -> ScriptedService:
            source = OpenAIJudges(RemoteJudgeConfig(server.url, "m"), Counted())
            return ScriptedService(source=source, config=JudgeConfig(default="m"), second=stores.vectors)

        before = bench()
        for _ in range(2):
            sure = (await before.service.choose(choose())).answer
            assert isinstance(sure, Choice)
            assert sure.mass is None
        await before.service.close()
        answers.knows = ALL  # the server was replaced while nobody looked
        after = bench()
        reply = await after.service.choose(choose())
        assert reply.source is AnswerSource.COMPUTED
        assert isinstance(reply.answer, Choice)
        assert reply.answer.mass is not None
        await after.service.close()
    await stores.vectors.close()
    await stores.prepared.close()


async def test_what_a_server_does_not_do_is_logged_in_words_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    answers = Server(knows=frozenset())
    async with OddServer(answers=[answers], owner="vllm") as server, opened(server.url) as judge:
        await judge.choose(choose(), deadline_s=None)
        (warning,) = [record for record in caplog.records if "lacks features" in record.getMessage()]
        assert (warning.levelno, warning.getMessage()) == (
            logging.WARNING,
            (
                "judge m: its server lacks features: logprobs (the answer's text decides, with probability 1), "
                "constrains (an answer need not be a label), "
                "continues (an instruction says how to begin)"
            ),
        )
        answers.knows = ALL
        await judge._server.probe()
        await judge.choose(choose(), deadline_s=None)
    assert "judge m: its server has all features of its type" in caplog.text
    assert not {"Dialect", "ServerKind", "="} & set(re.findall(r"\w+|=", caplog.text))


async def test_what_a_server_lacks_is_asked_about_again_in_time() -> None:
    full, now, sent, gives = dialect_of(ServerKind.OTHER, "auto"), 1000.0, 0, False

    async def send(question: Question, _: object) -> Reply:
        nonlocal sent
        assert question is TEST_QUESTION
        sent += 1
        if sent == 2:
            raise unreachable("http://h/v1")
        whole = GOOD if gives else SURE
        return Reply(200, whole.partition(b"\r\n\r\n")[2], "", "http://h/v1")

    features = DialectLearner("m", full, send, clock=lambda: now)
    assert await features.confirm(full)
    assert features.dialect == replace(full, logprobs=False)
    assert not await features.confirm(features.dialect)
    await features.look_again()
    assert sent == 1
    now, gives = now + 601, True
    await features.look_again()  # in vain: no connection
    await features.look_again()
    assert (sent, features.lacks) == (2, "logprobs")
    now += 601
    await features.look_again()
    assert (sent, features.dialect) == (3, full)


async def test_a_server_that_is_back_is_asked_before_the_next_question() -> None:
    full, sent, gives = dialect_of(ServerKind.OTHER, "auto"), 0, False

    async def send(_: Question, __: object) -> Reply:
        nonlocal sent
        sent += 1
        if sent == 2:
            raise unreachable("http://h/v1")
        return Reply(200, (GOOD if gives else SURE).partition(b"\r\n\r\n")[2], "", "http://h/v1")

    features = DialectLearner("m", full, send, clock=lambda: 1000.0)
    assert await features.confirm(full)
    assert features.lacks == "logprobs"
    features.doubt(full)
    gives = True
    await features.look_again()  # in vain: no connection
    await features.look_again()
    assert (sent, features.dialect) == (3, full)
    features.doubt(full)
    await features.look_again()
    assert sent == 3, "it lacks nothing"


async def test_our_own_question_answered_with_nothing_proves_nothing() -> None:
    full = dialect_of(ServerKind.OTHER, "auto")

    async def send(_: Question, __: object) -> Reply:
        return Reply(200, NOTHING.partition(b"\r\n\r\n")[2], "", "http://h/v1")

    features = DialectLearner("m", full, send)
    assert not await features.confirm(full)
    assert features.dialect == full


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "m", "param": "p", "code": 400, "input": "x"}}, "p m"),
        ({"object": "error", "message": "m", "param": None, "request": "x"}, "m"),
        ({"error": "m", "input": "x"}, "m"),
        ({"detail": [{"loc": ["body", "logprobs", 0], "msg": "m", "input": "x"}, 5, "y"]}, "m body logprobs y"),
        ({"detail": "m"}, "m"),
        ({"error": [1], "detail": {"loc": 5}}, ""),
        ([], ""),
        (b"<html>x", ""),
        (b"[" * 100_000, ""),
    ],
)
def test_a_servers_own_words_are_told_from_what_it_repeats(body: Any, words: str) -> None:
    assert (
        server_message(Reply(400, body if isinstance(body, bytes) else json.dumps(body).encode(), "", "http://h/v1"))
        == words
    )


async def test_no_users_text_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with OddServer(answers=[Server()]) as server, opened(server.url) as judge:
        await judge.choose(choose("odd private words"), deadline_s=None)
        await judge.generate(generate(prediction="odd private words"), deadline_s=None)
    triton = TritonServer(TritonClient(TritonConfig("127.0.0.1:1")), "m", "127.0.0.1:1")
    assert triton._translated(TritonError(Fault.FAILED, "private words")).kind is RemoteFault.SERVER_ERROR
    assert "rejects" in caplog.text
    assert "in Triton: failed" in caplog.text
    assert "private" not in caplog.text
    await triton.close()
