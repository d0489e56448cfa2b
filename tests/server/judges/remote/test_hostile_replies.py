"""Whatever a judge's server sends, the item has a status that says what to do, and its neighbours are judged."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.remote import decision_models
from tests.server.judges.remote.decision_models import decided, is_own
from tests.server.judges.remote.remote_judges import Counted, choose, generate, opened
from tests.support.examples import example_count
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply
from tests.support.judges.other_api_replies import BAD_DECISIONS, BAD_MESSAGES, BAD_RESPONSES
from tests.support.judges.provider_replies import BAD_REPLIES, RETRY_INFO, UNAVAILABLE, BadReply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Generated
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.remote.decision_forms import FORMS
from gradewire_server.judges.remote.decisions import DecisionServer
from gradewire_server.judges.remote.endpoints import CHAT, MESSAGES, RESPONSES, Api
from gradewire_server.judges.remote.errors import RemoteError, Reply
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.judges.remote.judge import RemoteJudge
from gradewire_server.judges.remote.openai import OpenAIServer
from gradewire_server.judges.wrappers import CheckedJudge
from gradewire_server.settings.judge import RemoteJudgeConfig

GOOD = completion("Rating: 2", [{"2": -0.1, "1": -3.0, "3": -4.0}])


RESPONSE_PART = {
    "type": "output_text",
    "text": "2",
    "logprobs": [{"token": "2", "logprob": -0.1, "top_logprobs": [{"token": "2", "logprob": -0.1}]}],
}
GOOD_RESPONSE = reply(200, {"status": "completed", "output": [{"type": "message", "content": [RESPONSE_PART]}]})
GOOD_MESSAGE = reply(200, {"type": "message", "content": [{"type": "text", "text": "2"}], "stop_reason": "end_turn"})
GOOD_DECISION = decided({"1": 0.02, "2": 0.95, "3": 0.03})
OWN_DECISION = decided({"true": 0.9, "false": 0.1})


@dataclass(frozen=True)
class Case:
    """A bad reply in an API, whose server answers all other items well."""

    api: str
    bad: BadReply
    good: bytes

    def __str__(self) -> str:
        return f"{self.api}: {self.bad.name}"

    def __call__(self, heard: Heard) -> bytes:
        if self.api == "decisions" and is_own(heard):
            return OWN_DECISION
        return self.bad.sent if "poison" in json.dumps(heard.body) else self.good

    def opened(self, url: str) -> AbstractAsyncContextManager[RemoteJudge]:
        if self.api == "decisions":
            return decision_models.opened(url, attempts=1, questions_per_request=1)
        return opened(f"{url}/{self.api}", attempts=1)


CASES = [
    Case(api, bad, good)
    for api, replies, good in (
        ("chat/completions", BAD_REPLIES, GOOD),
        ("responses", BAD_RESPONSES, GOOD_RESPONSE),
        ("messages", BAD_MESSAGES, GOOD_MESSAGE),
        ("decisions", BAD_DECISIONS, GOOD_DECISION),
    )
    for bad in replies
]


def test_the_table_is_long_enough_and_has_no_case_twice() -> None:
    assert len(set(map(str, CASES))) == len(CASES)
    assert len(BAD_REPLIES) >= 40
    assert min(len(BAD_RESPONSES), len(BAD_MESSAGES), len(BAD_DECISIONS)) >= 18


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_bad_reply_is_one_items_status_and_its_neighbours_are_judged(case: Case) -> None:
    predictions = ["poison", *(f"answer {number}" for number in range(4))]
    async with OddServer(answers=[case]) as server, case.opened(server.url) as judge:
        asked = [judge.choose(choose(prediction), deadline_s=None) for prediction in predictions]
        failure, *neighbours = [each.answer for each in await asyncio.gather(*asked)]
    assert isinstance(failure, Failure)
    assert (failure.status, case.bad.words in failure.message) == (case.bad.status, True), failure
    assert all(isinstance(each, Choice) and each.probabilities[1] > 0.9 for each in neighbours)


REFUSALS = [bad for bad in BAD_REPLIES if not bad.sent.startswith((b"HTTP/1.1 2", b"HTTP/1.1 404"))]


@pytest.mark.parametrize(("api", "good"), [(RESPONSES, GOOD_RESPONSE), (MESSAGES, GOOD_MESSAGE)], ids=["r", "m"])
async def test_a_refusal_in_chats_shapes_means_the_same_in_other_apis(api: Api, good: bytes) -> None:
    fine = received(good)
    assert len(REFUSALS) > 30
    for bad in REFUSALS:
        refused = received(bad.sent)
        if len(refused.content) > 1 << 20:  # which only the real client refuses
            continue
        client: Any = Drawn([refused, fine])
        judge = judge_of(OpenAIServer(client, "m", "auto", api=api))
        failure = (await judge.answer(choose())).answer
        assert isinstance(failure, Failure), bad.name
        assert (failure.status, bad.words in failure.message) == (bad.status, True), (bad.name, failure)
        await judge.close()


@pytest.mark.parametrize("bad", [bad for bad in BAD_REPLIES if bad.status is UNAVAILABLE], ids=lambda bad: bad.name)
async def test_what_may_pass_is_tried_again(bad: BadReply) -> None:
    observer = Counted()
    sent = bad.sent.replace(RETRY_INFO["retryDelay"].encode(), b"00s")  # a test does not wait for 37 s
    async with OddServer(answers=[sent, GOOD]) as server, opened(server.url, observer) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert len(observer.retries) == 1


async def test_an_error_in_a_success_is_tried_again_until_it_is_an_answer() -> None:
    observer = Counted()
    limited = reply(200, {"id": None, "choices": None, "error": {"message": "Provider returned error", "code": 429}})
    async with OddServer(answers=[limited, limited, GOOD]) as server, opened(server.url, observer) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert observer.retries == ["rate_limited", "rate_limited"]


async def test_the_wait_in_geminis_error_is_kept() -> None:
    (bad,) = [bad for bad in BAD_REPLIES if bad.name == "gemini limits"]
    async with OddServer(answers=[bad.sent]) as server, opened(server.url, attempts=1) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.retry_after_s == 37


async def test_a_text_with_half_a_surrogate_is_a_text() -> None:
    half = reply(200, b'{"choices":[{"message":{"content":"is \\ud800 right"}}]}')
    async with OddServer(answers=[half]) as server, opened(server.url) as judge:
        answer = (await CheckedJudge(judge).answer(generate(), deadline_s=None)).answer
    assert isinstance(answer, Generated)
    assert answer.text == "is ? right"


def received(sent: bytes) -> Reply:
    """Return the reply in the bytes of a server of these tests."""
    head, _, content = sent.partition(b"\r\n\r\n")
    (wait,) = re.findall(r"retry-after: (.*)", head.decode()) or [""]
    return Reply(int(head.split()[1]), content, wait, "http://h/v1")


def judge_of(server: OpenAIServer | DecisionServer) -> CheckedJudge:
    config = RemoteJudgeConfig("http://h/v1", "m", attempts=1)
    return CheckedJudge(RemoteJudge(ModelStatus("m", "", "loaded", precision="remote"), server, config, Counted()))


class Drawn:
    """A client without a network, which answers every request with the next of these replies."""

    def __init__(self, replies: list[Reply]) -> None:
        self._replies = replies
        self._sent = 0

    async def send(self, _: str, body: bytes | None = None) -> Reply:
        del body
        self._sent += 1
        return self._replies[(self._sent - 1) % len(self._replies)]

    def note_refusal(self, *_: object) -> None:
        """Log nothing."""

    def with_words(self, error: RemoteError, _: Reply) -> RemoteError:
        return error

    async def close(self) -> None:
        """Close nothing."""


NAMES = st.sampled_from(
    [
        *("choices", "message", "content", "text", "logprobs", "top_logprobs", "token", "logprob", "finish_reason"),
        *("usage", "prompt_tokens", "error", "code", "status", "type", "detail", "loc", "msg", "metadata", "raw"),
        *("output", "output_text", "incomplete_details", "reason", "stop_reason", "refusal", "input_tokens", "param"),
        *("data", "models", "id", "name", "owned_by", "capabilities", "vision", "architecture", "input_modalities"),
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["Rating: 2", "2", "stop", "length", "content_filter", "429", "temperature", "max_tokens", "text"]
    )
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=4),
    max_leaves=24,
)
TEXT = st.sampled_from(["Rating: 2", "2", " is \ud800 right", "<think>"]) | JSON
NUMBER = st.sampled_from([-0.1, 10**400, None]) | JSON
PARTS = st.fixed_dictionaries({}, optional=dict.fromkeys(("error", "usage", "status", "stop_reason"), JSON))
TOKENS = st.fixed_dictionaries({"token": TEXT, "logprob": NUMBER}, optional={"top_logprobs": JSON})
CHOICES = st.fixed_dictionaries(
    {"message": JSON | st.fixed_dictionaries({"content": TEXT})},
    optional={
        "finish_reason": JSON,
        "logprobs": JSON | st.fixed_dictionaries({"content": st.lists(TOKENS, max_size=3)}),
    },
)
TEXTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "output_text", "thinking"]), "text": TEXT},
    optional={"logprobs": st.lists(TOKENS, max_size=2) | JSON},
)
OUTPUTS = st.fixed_dictionaries(
    {"type": st.just("message") | JSON, "content": JSON | st.lists(TEXTS | JSON, max_size=2)}
)


def answers(name: str, part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return answers of an API, whose field with this name has such parts."""
    return st.builds(lambda parts, answer: {**parts, name: answer}, PARTS, st.lists(part, max_size=2) | JSON)


SHAPES = {CHAT: answers("choices", CHOICES), RESPONSES: answers("output", OUTPUTS), MESSAGES: answers("content", TEXTS)}
STATUSES = st.one_of(st.just(200), st.just(200), st.sampled_from([400, 403, 404, 422, 429, 500]), st.integers(200, 999))
WAITS = st.sampled_from(["", "0", "-1", "nan", "Mon, 01 Jan 0001 00:00:00 -0000"]) | st.text(max_size=12)


def bodies(shape: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Return bodies near a shape, any other JSON, cut JSON and any bytes."""
    written = shape.map(lambda value: json.dumps(value).encode())
    return st.one_of(
        *[written] * 6,
        JSON.map(lambda value: json.dumps(value).encode()),
        st.builds(lambda body, cut: body[:cut], written, st.integers(0, 80)),
        st.binary(max_size=40),
    )


REPLIES = {
    api: st.builds(Reply, STATUSES, bodies(shape), WAITS, st.just("http://h/v1")) for api, shape in SHAPES.items()
}
DRAWN = st.sampled_from(list(REPLIES)).flatmap(
    lambda api: st.tuples(st.just(api), st.lists(REPLIES[api], min_size=1, max_size=3))
)


@given(DRAWN)
@settings(max_examples=example_count(800))
def test_no_reply_ends_as_a_defect(case: tuple[Api, list[Reply]]) -> None:
    api, replies = case

    async def judged() -> None:
        for need in (choose(), generate()):
            client: Any = Drawn(replies)
            server = OpenAIServer(client, "m", "auto", api=api)
            with contextlib.suppress(RemoteError):
                await server.find_out()
            judge = judge_of(server)
            assert judge.status.precision
            answer = (await judge.answer(need)).answer
            assert isinstance(answer, (Choice, Generated, Failure))
            if isinstance(answer, Failure):
                assert answer.status not in {Status.INTERNAL, Status.TIMEOUT}, answer
                assert answer.message.encode().strip()
                assert "key" not in answer.message or "judge_token" in answer.message

    asyncio.run(judged())


DECISIONS = st.dictionaries(
    st.sampled_from(["answers", "decisions", "output", "probabilities", "verdict", "type", "error", "usage"]),
    st.fixed_dictionaries({"verdict": JSON | st.fixed_dictionaries({"probabilities": JSON, "type": TEXT})})
    | st.lists(st.fixed_dictionaries({"name": TEXT, "type": TEXT, "probabilities": JSON, "choices": JSON}), max_size=2)
    | JSON,
    max_size=4,
)


@given(st.lists(st.builds(Reply, STATUSES, bodies(DECISIONS), WAITS, st.just("http://h/v1")), min_size=1, max_size=3))
@settings(max_examples=example_count(200))
def test_no_reply_of_a_decision_server_ends_as_a_defect(replies: list[Reply]) -> None:
    async def judged() -> None:
        client: Any = Drawn(replies)
        for form in FORMS:
            server = DecisionServer(client, "m", (form,))
            with contextlib.suppress(RemoteError):
                await server.find_out()
            judge = judge_of(server)
            answer = (await judge.answer(choose())).answer
            assert isinstance(answer, (Choice, Failure))
            assert not isinstance(answer, Failure) or answer.status is not Status.INTERNAL

    asyncio.run(judged())


@contextlib.contextmanager
def said(loop: asyncio.AbstractEventLoop, raw: bytes) -> Iterator[str]:
    """Serve the same bytes on every connection, then close it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.write_eof()
        await reader.read()
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        loop.run_until_complete(asyncio.sleep(0.005))  # let the server's end of the connection close


HEADERS = st.lists(
    st.sampled_from(
        [
            *(b"retry-after: \xff\xfe", b"retry-after: 1e9", b"content-length: 99999999999", b"content-length: -1"),
            *(b"content-encoding: gzip", b"transfer-encoding: chunked", b"location: ://", b"x: " + b"y" * 70_000),
            *(b"content-type: text/html; charset=nonsense", b"set-cookie: \x00", b"no colon", b": empty"),
        ]
    ),
    max_size=3,
)


@given(
    head=st.sampled_from([b"HTTP/1.1 200 OK", b"HTTP/1.1 429 X", b"HTTP/9 1 X", b"\x00"]),
    headers=HEADERS,
    body=st.one_of(*map(bodies, SHAPES.values())),
)
@settings(max_examples=example_count(40), deadline=None)
def test_any_bytes_on_the_wire_are_a_reply_or_an_error(head: bytes, headers: list[bytes], body: bytes) -> None:
    loop = asyncio.new_event_loop()
    raw = b"\r\n".join([head, *headers, b"connection: close", b"", body])
    with said(loop, raw) as url:

        async def received() -> None:
            client = HttpClient(RemoteJudgeConfig(url))
            try:
                async with asyncio.timeout(20):
                    assert isinstance(await client.send("chat/completions", b"{}"), Reply)
            except RemoteError as error:
                assert error.failure.status in {Status.UNAVAILABLE, Status.UNPARSABLE}  # noqa: PT017 - either is fine
            finally:
                await client.close()

        loop.run_until_complete(received())
    loop.close()
