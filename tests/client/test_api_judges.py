"""Metrics of a judge in the client: who judges, what came back, how long a call may take."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from gradewire import Client, InvalidRequest, JudgeGrade, JudgeParts, Lave, Smile, Status
from gradewire._calls.client_calls import JUDGE_DEADLINE_S
from gradewire._calls.score import JUDGE_CHUNK_ITEMS
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.metrics.prompts import read_prompt_text, short_prompt
from gradewire.testing import StubTransport, echo_scores
from gradewire.transport import Q, R, RpcMethod
from gradewire_proto.v1 import models_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import MAX_PROMPT_BYTES

ROW = {"references": ["a"], "prediction": "a"}
PROMPT = 'metric = "lave"\nname = "mine"\nversion = 3\n'


def saying(result: types_pb2.MetricResult) -> Client:
    """Says the same of every item."""

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = echo_scores(request, score=lambda _: 0.5)
        for item in reply.items:
            item.results[0].CopyFrom(result)
        return reply

    return Client(transport=StubTransport(answer))


def test_a_judge_is_for_metrics_that_ask_one() -> None:
    choice = choose_metrics(
        ["smile", "lave", "judge_verdict?model=other"], MetricDefaults(model="encoder", judge="judge")
    )
    assert [getattr(metric, "model", None) for metric in choice.metrics] == ["encoder", "judge", "other"]
    assert choice.asks_judge
    assert not choose_metrics("smile,bleu", MetricDefaults()).asks_judge
    for metrics, defaults, part in (
        ("smile", {"judge": "j"}, "judge: none of the metrics has a judge"),
        ("lave", {"model": "m"}, "model: none of the metrics has an encoder (for a judge use judge, for a grader"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            choose_metrics(metrics, MetricDefaults(**defaults))
        assert part in str(caught.value)


def test_specs_of_judges_carry_every_parameter() -> None:
    metric = Lave(
        mode="rationale",
        value="expected",
        binary="rule",
        demonstrations="long",
        caption=True,
        reference_filter=0.5,
        prompt="lave/1",
        model="j@0a1b2c3d",
    )
    assert metric.to_spec() == types_pb2.MetricSpec(
        lave=types_pb2.LaveParameters(
            mode=types_pb2.LAVE_MODE_RATIONALE,
            value=types_pb2.LABEL_VALUE_EXPECTED,
            binary=types_pb2.BINARY_QUESTIONS_RULE,
            demonstrations=types_pb2.DEMONSTRATIONS_LONG,
            caption=True,
            reference_filter=0.5,
            prompt="lave/1",
            model="j@0a1b2c3d",
        )
    )
    assert not Lave().to_spec().lave.HasField("reference_filter")


def test_a_label_names_a_prompt_and_never_holds_it() -> None:
    other = PROMPT.replace("3", "4")
    labels = choose_metrics([Lave(prompt=PROMPT), Lave(prompt=other), Lave(prompt="lave/1")], MetricDefaults()).labels
    pinned = read_prompt_text(PROMPT.encode(), "f").pinned
    assert labels[0] == f"lave?prompt={pinned}"
    assert labels[1].startswith("lave?prompt=mine/4@")
    assert labels[2] == "lave?prompt=lave/1"
    assert choose_metrics([Lave(prompt=PROMPT), JudgeGrade(), Smile()], MetricDefaults()).labels == (
        f"lave?prompt={pinned}",
        "judge_grade",
        "smile",
    )
    assert short_prompt("no\ntoml").startswith("inline@")
    with pytest.raises(InvalidRequest, match="twice"):
        choose_metrics([Lave(prompt=PROMPT), Lave(prompt=PROMPT)], MetricDefaults())


def test_a_prompt_file_says_what_it_is_called() -> None:
    read = read_prompt_text(PROMPT.encode(), "f")
    assert (read.metric, read.name, read.text, len(read.digest)) == ("lave", "mine/3", PROMPT, 64)
    named = [read.name, read.pinned, f"mine/3@{read.digest}", f"mine/3@{read.digest[:8].upper()}"]
    assert [read.is_named_by(name) for name in named] == [True] * 4
    assert not any(read.is_named_by(name) for name in ("mine/4", "lave/3", "mine/3@00000000", "mine"))
    for data, part in (
        (b"\xff", "is not UTF-8 (byte 1)"),
        (b"a" * (MAX_PROMPT_BYTES + 1), "at most 65536"),
        (b"[" * 60_000, "is not TOML"),
        (b"a" + b".a" * 30_000 + b" = 1", "dots in a line"),
        (b"x = " + b"1" * 5000, "is not TOML"),
        (b"", "lacks its metric"),
        (b'metric = "lave"\nname = ""\nversion = 1', "lacks its name"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            read_prompt_text(data, "file.toml")
        assert str(caught.value).startswith("file.toml ")
        assert part in str(caught.value)


def test_what_is_not_there_is_none_and_not_zero() -> None:
    full = types_pb2.JudgeParts(
        value=0.0,
        labels=["yes", "no"],
        probabilities=[0.75, 0.25],
        yes_probability=0.0,
        label_mass=0.0,
        reason="so",
        decided_by="judge",
        demonstrations="long",
        prompt_tokens=7,
        generated_tokens=3,
    )
    for message, expected in (
        (
            full,
            JudgeParts(0.0, ("yes", "no"), (0.75, 0.25), 0.0, 0.0, "so", "judge", "long", 7, 3),
        ),
        (types_pb2.JudgeParts(decided_by="rule"), JudgeParts(decided_by="rule")),
        (
            types_pb2.JudgeParts(decided_by="judge"),
            JudgeParts(decided_by="judge", prompt_tokens=None, generated_tokens=None),
        ),
    ):
        with saying(types_pb2.MetricResult(score=1.0, status=types_pb2.STATUS_OK, judge=message)) as client:
            report = client.score([ROW], "lave")
        assert report[0].scores["lave"].parts == expected
        record = report.to_records()[0]
        assert (record["value"], record["labels"]) == (expected.value, list(expected.labels))
        assert record["prompt_tokens"] == expected.prompt_tokens
        assert report.to_arrow().column("prompt_tokens").to_pylist() == [expected.prompt_tokens]
        assert report.to_arrow().column("labels").to_pylist() == [list(expected.labels)]


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (types_pb2.STATUS_UNAVAILABLE, 2.5, 2.5),
        (types_pb2.STATUS_UNAVAILABLE, None, None),
        (types_pb2.STATUS_UNAVAILABLE, 0.0, 0.0),
        (types_pb2.STATUS_UNAVAILABLE, -1.0, None),
        (types_pb2.STATUS_UNAVAILABLE, math.nan, None),
        (types_pb2.STATUS_UNAVAILABLE, math.inf, None),
        (types_pb2.STATUS_OK, 2.5, None),
    ],
)
def test_when_to_try_again_is_what_the_server_says_if_it_makes_sense(
    status: types_pb2.Status.ValueType, said: float | None, expected: float | None
) -> None:
    score = 1.0 if status == types_pb2.STATUS_OK else None
    with saying(types_pb2.MetricResult(score=score, status=status, retry_after_s=said)) as client:
        result = client.score([ROW], "lave")[0].scores["lave"]
    assert result.retry_after_s == expected
    assert result.status.may_pass == (result.status is Status.UNAVAILABLE)


def test_a_prompt_is_part_of_where_a_score_comes_from() -> None:
    class Stub(StubTransport):
        async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
            reply = await super().unary(method, request, timeout_s=timeout_s)
            if isinstance(reply, scoring_pb2.ScoreResponse):
                reply.provenance[0].prompt, reply.provenance[0].prompt_digest = "lave/1", "ab" * 32
            return reply

    with Client(transport=Stub(lambda request: echo_scores(request, score=lambda _: 1.0))) as client:
        provenance = client.score([ROW], "lave").provenance["lave"]
    assert (provenance.prompt, provenance.prompt_digest) == ("lave/1", "ab" * 32)


class Timed(StubTransport):
    """Remembers what it was given, in seconds and items."""

    def __init__(self) -> None:
        super().__init__(lambda request: echo_scores(request, score=lambda _: 1.0))
        self.timeouts_s: list[float] = []
        self.sizes: list[int] = []

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        if isinstance(request, scoring_pb2.ScoreRequest):
            self.timeouts_s.append(timeout_s)
            self.sizes.append(len(request.items))
        return await super().unary(method, request, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("metrics", "arguments", "expected_s"),
    [
        ("smile", {}, 30.0),
        ("smile,lave", {}, JUDGE_DEADLINE_S),
        ("lave", {"deadline_s": 5}, 5.0),
    ],
)
def test_a_call_to_a_judge_has_an_hour_unless_it_says_otherwise(
    metrics: str, arguments: dict[str, Any], expected_s: float
) -> None:
    stub = Timed()
    with Client(transport=stub) as client:
        client.score([ROW], metrics, **arguments)
    assert expected_s - 1 < stub.timeouts_s[0] <= expected_s


def test_requests_to_a_judge_are_small_enough_for_the_servers_longest_deadline() -> None:
    stub = Timed()
    with Client(transport=stub) as client:
        client.score([ROW] * 100, "lave")
        assert max(stub.sizes) == JUDGE_CHUNK_ITEMS
        client.score([ROW] * 400, "smile")
    assert max(stub.sizes) > JUDGE_CHUNK_ITEMS


def test_a_stream_with_a_judge_may_be_silent_for_longer_than_the_clients_deadline() -> None:
    class Silent(StubTransport):
        async def stream(
            self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
        ) -> AsyncGenerator[R]:
            async for reply in super().stream(method, sent, timeout_s=timeout_s):
                if isinstance(reply, scoring_pb2.ScoreStreamResponse) and reply.items:
                    await asyncio.sleep(0.3)
                yield reply

    with Client(transport=Silent(lambda request: echo_scores(request, score=lambda _: 1.0)), deadline_s=0.1) as client:
        assert [item.scores["lave"].score for item in client.score_stream([ROW], "lave")] == [1.0]
        with pytest.raises(TimeoutError):
            list(client.score_stream([ROW], "smile"))
        with pytest.raises(TimeoutError):
            list(client.score_stream([ROW], "lave", deadline_s=0.1))


def test_the_list_of_models_says_what_is_a_judge() -> None:
    models = [
        models_pb2.Model(name="old server's"),
        models_pb2.Model(name="j", kind="judge", remarks=["for tests only"]),
    ]
    metrics = [models_pb2.Metric(name="lave", needs_judge=True, advice="smile is better here")]
    reply = models_pb2.ListModelsResponse(models=models, metrics=metrics)
    with Client(transport=StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0), models=reply)) as it:
        listed = it.models()
    assert [(model.kind, model.remarks) for model in listed.models] == [
        ("encoder", ()),
        ("judge", ("for tests only",)),
    ]
    assert (listed.metrics[0].needs_judge, listed.metrics[0].advice) == (True, "smile is better here")
