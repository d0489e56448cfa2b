"""Models of today: they refuse a temperature of 0, and think before they answer."""

import logging
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.server.judges.remote.remote_judges import Counted, choose, generate, opened
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Generated
from gradewire_server.judges.prometheus import JudgeTelemetry, Tokens
from gradewire_server.judges.remote.openai import OpenAIJudges
from gradewire_server.settings.judge import JudgeConfig, RemoteJudgeConfig

GOOD = completion("Rating: 2", [{"2": -0.1, "1": -3.0, "3": -4.0}])
BUDGET = {"reasoning_tokens": 200}
THOUGHTS = "The answer is 3? Rating: 1, rather.\n"
PARTS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHTS}]},
    {"type": "text", "text": "Rating: 2"},
]
"""A message's content as Mistral's reasoning models have it."""


def refusing(*names: str) -> object:
    """A server that refuses these parameters one after the other, in OpenAI's words."""

    def answer(heard: Heard) -> bytes:
        refused = next((name for name in names if name in heard.body), None)
        if refused is None:
            return GOOD if heard.body.get("logprobs") else completion("Rating: 2", completion_tokens=3, prompt_tokens=9)
        wanted = " Use 'max_completion_tokens' instead." if refused == "max_tokens" else ""
        kind = "unsupported_value" if refused == "temperature" else "unsupported_parameter"
        message = f"Unsupported: '{refused}' is not supported with this model.{wanted}"
        return reply(400, {"error": {"message": message, "param": refused, "code": kind}})

    return answer


async def test_a_refused_temperature_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with OddServer(answers=[refusing("temperature")]) as server, opened(server.url) as judge:  # type: ignore[list-item]
        for _ in range(3):
            answer = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(answer, Choice)
            assert answer.probabilities[1] > 0.9
        assert judge.status.precision == "remote without temperature"
        assert "temperature" in judge.status.remarks[-1]
    # The item, our own question twice, the item again; then it is known.
    assert ["temperature" in heard.body for heard in server.heard] == [True, True, False, False, False, False]
    assert "its server lacks features: temperature (an item's result may differ each time)" in caplog.text


async def test_a_server_that_refuses_all_of_it_is_of_use() -> None:
    names = ("max_tokens", "temperature", "logprobs", "stop")
    async with OddServer(answers=[refusing(*names)]) as server, opened(server.url) as judge:  # type: ignore[list-item]
        text = (await judge.generate(generate(stop=("\n",)), deadline_s=None)).answer
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(text, Generated)
    assert isinstance(answer, Choice)
    assert (answer.probabilities, answer.mass, answer.generated_tokens) == ((0, 1, 0), None, 3)
    assert not set(names) & server.heard[-1].body.keys()


@pytest.mark.parametrize(
    "thinking",
    [
        completion(f"<think>\n{THOUGHTS}</think>\n\nRating: 2"),
        completion(f"{THOUGHTS}</think>\n\nRating: 2"),  # begun by the model's template
        completion("<think>He wrote </think> Rating: 3 </think>Rating: 2"),
        completion("Rating: 2", apart={"reasoning_content": THOUGHTS}),
        completion(" Rating: 2", apart={"reasoning": THOUGHTS}),
        completion(f"[THINK]{THOUGHTS}[/THINK]Rating: 2"),
        completion(PARTS),
        completion([{"type": "thinking", "thinking": THOUGHTS}, PARTS[1]]),
    ],
)
async def test_thoughts_are_no_answer(thinking: bytes) -> None:
    async with OddServer(answers=[thinking]) as server, opened(server.url, **BUDGET) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
        text = (await judge.generate(generate(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert answer.probabilities == (0, 1, 0)
    assert isinstance(text, Generated)
    assert text.text == "Rating: 2"
    assert server.heard[-1].body["max_tokens"] == 208


SAID_THREE = [{"Rating": -0.1}, {":": 0.0}, {" 3": -0.01, " 1": -6.0, " 2": -7.0}]
SAYS_TWO = [{"Rating": -0.1}, {":": 0.0}, {" 2": -0.2, " 3": -2.0, " 1": -4.0}]


@pytest.mark.parametrize(
    "tops",
    [
        [{"<think>": 0.0}, *SAID_THREE, {"</": 0.0}, {"think": 0.0}, {">\n": 0.0}, *SAYS_TWO],
        [*SAID_THREE, {"</think>": 0.0}, {"\n\n": 0.0}, *SAYS_TWO, {"<|im_end|>": 0.0}],
        [*SAID_THREE, {"</think": 0.0}, {">Rating": -0.1, ">I": -3.0}, *SAYS_TWO[1:]],
    ],
)
async def test_probabilities_are_those_behind_the_thoughts(tops: list[dict[str, float]]) -> None:
    written = "".join(next(iter(top)) for top in tops).removesuffix("<|im_end|>")
    apart = completion("Rating: 2", tops, apart={"reasoning_content": "Rating: 3"})
    for answered in (completion(written, tops), apart):
        async with OddServer(answers=[answered]) as server, opened(server.url, **BUDGET) as judge:
            answer = (await judge.choose(choose(), deadline_s=None)).answer
        assert isinstance(answer, Choice)
        assert answer.mass is not None
        assert answer.probabilities[1] > 0.8


async def test_probabilities_of_the_text_alone_are_its_own() -> None:
    answered = completion("Rating: 2", SAYS_TWO, apart={"reasoning_content": "Rating: 3"})
    async with OddServer(answers=[answered]) as server, opened(server.url, **BUDGET) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert answer.probabilities[1] > 0.8


async def test_probabilities_that_are_not_the_answers_are_not_taken_for_them() -> None:
    answered = completion("Rating: 2", SAID_THREE, apart={"reasoning_content": "Rating: 3"})
    async with OddServer(answers=[answered]) as server, opened(server.url, **BUDGET) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE


@pytest.mark.parametrize(
    "cut",
    [
        completion("<think>Rating: 3, for", finish="length", prompt_tokens=9, completion_tokens=200),
        completion("", finish="length", apart={"reasoning_content": "Rating: 3"}, prompt_tokens=9, completion_tokens=8),
        completion(None, finish="length", apart={"reasoning": "hm"}, prompt_tokens=9, completion_tokens=8),
        completion("", finish="length", prompt_tokens=9, completion_tokens=8),  # it hides its thoughts
        completion("Rating: 3, for", finish="length", prompt_tokens=9, completion_tokens=8),  # without any mark
        completion(PARTS[:1], finish="length", prompt_tokens=9, completion_tokens=8),
        completion("<think>", [*SAID_THREE], finish="length", prompt_tokens=9, completion_tokens=8),
    ],
)
async def test_a_budget_that_is_used_up_is_said_and_counted(cut: bytes) -> None:
    observer = Counted()
    async with OddServer(answers=[cut]) as server, opened(server.url, observer, **BUDGET) as judge:
        for answer in (
            (await judge.choose(choose(), deadline_s=None)).answer,
            (await judge.generate(generate(), deadline_s=None)).answer,
        ):
            assert isinstance(answer, Failure)
            assert answer.status is Status.UNPARSABLE
            assert "judge_reasoning_tokens" in answer.message
    assert [usage.prompt_tokens for usage in observer.usages] == [9, 9]
    assert len(server.heard) == 2


async def test_a_judge_that_thinks_without_a_budget_is_told_of_the_setting() -> None:
    rambling = completion("Okay, let me see. The", finish="length")
    async with OddServer(answers=[rambling]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert "wrote 'Okay, let me see. The' and was cut short; if the judge thinks" in failure.message
    assert "judge_reasoning_tokens (--judge-reasoning-tokens)" in failure.message
    assert server.heard


def test_a_budget_is_another_judge_and_is_told() -> None:
    def status(**settings: int) -> object:
        return OpenAIJudges(RemoteJudgeConfig("http://h/v1", "m", **settings), Counted()).listed()[0]  # type: ignore[arg-type]

    plain, none, some, more = status(), status(reasoning_tokens=0), status(**BUDGET), status(reasoning_tokens=201)
    assert plain == none
    assert len({each.digest for each in (plain, some, more)}) == 3  # type: ignore[attr-defined]
    assert "200 tokens" in some.remarks[-1]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="judge_reasoning_tokens needs judge_backend openai"):
        JudgeConfig(backend="triton", remote=RemoteJudgeConfig("h:1", "m", reasoning_tokens=5))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("I cannot say\x1b[31m.", "'I cannot say\\x1b[31m.'"),
        ("words " * 5000, "'" + ("words " * 20)[:79] + "…'"),
        ("", "''"),
    ],
)
async def test_a_reply_that_is_no_label_is_shown(said: str, shown: str) -> None:
    improbable = completion(said, [{"x": -0.1, "y": -3.0}]) if said else completion(" ", [{"x": -0.1}])
    async with OddServer(answers=[improbable]) as server, opened(server.url) as judge:
        failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE
    assert failure.message.endswith(f"The judge wrote {shown}")
    assert server.heard


async def test_usage_that_is_not_told_is_unknown() -> None:
    observer = Counted()
    settings = {"prices": (2.0, 10.0)}
    async with OddServer(answers=[GOOD]) as server, opened(server.url, observer, **settings) as judge:
        answer = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert (answer.prompt_tokens, answer.generated_tokens) == (None, None)
    (usage,) = observer.usages
    assert (usage.prompt_tokens, usage.generated_tokens, usage.cost) == (None, None, None)
    assert server.heard


async def test_the_cost_without_prices_is_unknown() -> None:
    observer = Counted()
    told = completion("Rating: 2", [{"2": -0.1}], prompt_tokens=9, completion_tokens=3)
    async with OddServer(answers=[told]) as server, opened(server.url, observer) as judge:
        await judge.choose(choose(), deadline_s=None)
    assert observer.usages[0].cost is None
    assert server.heard


def test_what_is_unknown_is_counted_apart() -> None:
    registry = CollectorRegistry()
    telemetry = JudgeTelemetry(registry)
    for read, cached, written, cost in ((None, None, None, None), (9, None, 3, None), (9, 1, 3, 0.5)):
        telemetry.request_answered(Tokens(read, cached, written), cost, 0.1)

    def value(what: str) -> float | None:
        return registry.get_sample_value("gradewire_judge_remote_unknown_total", {"what": what})

    assert (value("tokens"), value("price")) == (1, 1)
    assert registry.get_sample_value("gradewire_judge_remote_tokens_total", {"kind": "prompt"}) == 18
    assert registry.get_sample_value("gradewire_judge_remote_cost_total") == 0.5
