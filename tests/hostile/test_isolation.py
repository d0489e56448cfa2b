"""Isolation: fifteen attempts of tenant B against tenant A, over a real socket, with the default encoder.

Each asserts that nothing of A is seen or changed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.support.judges.scripted import ScriptedJudges
from tests.support.servers.in_process import serving
from tests.support.servers.wire import EXACT, SMILE, until

from gradewire_proto.v1 import (
    models_pb2,
    models_pb2_grpc,
    references_pb2,
    references_pb2_grpc,
    scoring_pb2,
    scoring_pb2_grpc,
    types_pb2,
)
from gradewire_server.judges import factory

A, B, NARROW, POOR = "token-of-a", "token-of-b", "token-of-narrow", "token-of-poor"
CIDER = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=types_pb2.CORPUS_PREPARED))
SYNTHETIC = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(synthetic=types_pb2.SYNTHETIC_MODE_PREPARED))
JUDGED = types_pb2.MetricSpec(judge_verdict=types_pb2.JudgeVerdictParameters())
TEXTS = ("a brown dog", "a red cat", "two men on a horse")
ITEM = types_pb2.Item(question="what?", references=["a brown dog"], prediction="It is a brown dog that runs.")
OTHER = types_pb2.Item(question="what?", references=["a red cat"], prediction="A cat, and a red one.")


def tokens_file(*, with_b: bool = True) -> str:
    """Every tenant has a namespace of its own."""
    digest = sha256(B.encode()).hexdigest()
    tenants = [
        f'[a]\ntoken = "{A}"',
        f'[b]\ntoken_sha256 = "{digest}"' if with_b else "",
        f'[narrow]\ntoken = "{NARROW}"\nscopes = ["score"]',
        f'[poor]\ntoken = "{POOR}"\nquota_tokens_per_minute = 60',
    ]
    return "\n".join(tenants)


@dataclass
class Tenant:
    """One caller."""

    channel: aio.Channel
    token: str

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),)

    async def score(
        self, *items: types_pb2.Item, metric: types_pb2.MetricSpec = SMILE, reference_set: str = ""
    ) -> scoring_pb2.ScoreResponse:
        stub: Any = scoring_pb2_grpc.ScoringStub(self.channel)
        asked = scoring_pb2.ScoreRequest(items=items, metrics=[metric], reference_set=reference_set)
        reply: scoring_pb2.ScoreResponse = await stub.Score(asked, metadata=self.metadata)
        return reply

    async def prepare(self, *entries: references_pb2.ReferenceEntry, metric: types_pb2.MetricSpec, name: str) -> Any:
        stub: Any = references_pb2_grpc.ReferencesStub(self.channel)
        call = references_pb2.PrepareRequest(entries=entries, metrics=[metric], reference_set=name)
        return [progress async for progress in stub.Prepare(call, metadata=self.metadata)]

    async def models(self) -> models_pb2.ListModelsResponse:
        stub: Any = models_pb2_grpc.ModelsStub(self.channel)
        reply: models_pb2.ListModelsResponse = await stub.List(models_pb2.ListModelsRequest(), metadata=self.metadata)
        return reply


@dataclass
class House:
    """A server, its tenants, its judge and its tokens file."""

    a: Tenant
    b: Tenant
    judges: ScriptedJudges
    tokens: Path

    def tenant(self, token: str) -> Tenant:
        return Tenant(self.a.channel, token)


@asynccontextmanager
async def house_of(directory: Path, judges: ScriptedJudges, **settings: Any) -> AsyncIterator[House]:
    tokens = directory / "tokens.toml"
    replace_file(tokens, tokens_file())
    given = {"http_port": "", "auth_tokens_file": tokens, **settings}
    async with (
        serving(directory, **given) as (port, _),
        aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)]) as channel,
    ):
        yield House(Tenant(channel, A), Tenant(channel, B), judges, tokens)


def replace_file(path: Path, text: str) -> None:
    """Puts it there in one step."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> ScriptedJudges:
    found = ScriptedJudges()
    monkeypatch.setattr(factory, "_backend", lambda *_: (found, "scripted"))
    return found


@pytest.fixture
async def house(tmp_path: Path, minilm: Path, judges: ScriptedJudges) -> AsyncIterator[House]:
    async with house_of(tmp_path, judges, model_repository=minilm) as found:
        yield found


def entries(*texts: str, synthetic: bool = False) -> list[references_pb2.ReferenceEntry]:
    answers = [f"It is {text}." for text in texts] if synthetic else []
    return [
        references_pb2.ReferenceEntry(question="what?", references=[text], synthetic_answers=answers[index : index + 1])
        for index, text in enumerate(texts)
    ]


def only(reply: scoring_pb2.ScoreResponse) -> types_pb2.MetricResult:
    """The result of the one item."""
    result: types_pb2.MetricResult = reply.items[0].results[0]
    return result


def hits(result: types_pb2.MetricResult) -> dict[str, int]:
    return {field.name: value for field, value in result.cache_hits.ListFields()}


async def code_of(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_01_b_reads_the_set_of_a(house: House) -> None:
    await house.a.prepare(*entries(*TEXTS, synthetic=True), metric=SYNTHETIC, name="prod")
    assert only(await house.a.score(ITEM, metric=SYNTHETIC, reference_set="prod")).status == types_pb2.STATUS_OK
    seen = only(await house.b.score(ITEM, metric=SYNTHETIC, reference_set="prod"))
    assert seen.status == types_pb2.STATUS_NOT_PREPARED
    nothing = only(await house.b.score(ITEM, metric=SYNTHETIC, reference_set="nobody's"))
    assert (seen.status, seen.message) == (nothing.status, nothing.message), "no word tells a name that A has"


async def test_02_b_adds_to_the_set_of_a(house: House) -> None:
    await house.a.prepare(*entries(*TEXTS), metric=CIDER, name="prod")
    before = await house.a.score(ITEM, OTHER, metric=CIDER, reference_set="prod")
    await house.b.prepare(*entries("a brown horse", "a brown cat", "a dog"), metric=CIDER, name="prod")
    after = await house.a.score(ITEM, OTHER, metric=CIDER, reference_set="prod")
    assert [only_score(after, index) for index in (0, 1)] == [only_score(before, index) for index in (0, 1)]
    assert after.provenance[0] == before.provenance[0]


def only_score(reply: scoring_pb2.ScoreResponse, index: int) -> float:
    return reply.items[index].results[0].score


async def test_03_b_overwrites_an_answer_of_a(house: House) -> None:
    await house.a.prepare(*entries("a brown dog", synthetic=True), metric=SYNTHETIC, name="prod")
    before = only(await house.a.score(ITEM, metric=SYNTHETIC, reference_set="prod"))
    other = references_pb2.ReferenceEntry(
        question="what?", references=["a brown dog"], synthetic_answers=["Something else altogether."]
    )
    steps = await house.b.prepare(other, metric=SYNTHETIC, name="prod")
    assert not any(step.failures for step in steps), "a refusal would tell that somebody has that entry"
    after = only(await house.a.score(ITEM, metric=SYNTHETIC, reference_set="prod"))
    assert after.score == before.score


async def test_04_b_seals_a_name_of_a(house: House) -> None:
    await house.a.prepare(*entries(*TEXTS[:2]), metric=CIDER, name="prod")
    stub: Any = references_pb2_grpc.ReferencesStub(house.b.channel)
    call = references_pb2.PrepareRequest(entries=entries("mine"), metrics=[CIDER], reference_set="prod", immutable=True)
    assert [each async for each in stub.Prepare(call, metadata=house.b.metadata)][-1].complete
    (*_, last) = await house.a.prepare(*entries(TEXTS[2]), metric=CIDER, name="prod")
    assert last.complete
    assert not last.failures
    assert only(await house.a.score(ITEM, metric=CIDER, reference_set="prod")).status == types_pb2.STATUS_OK


async def test_05_b_counts_over_the_corpus_of_a_by_its_digest(house: House) -> None:
    await house.a.prepare(*entries(*TEXTS), metric=CIDER, name="prod")
    digest = (await house.a.score(ITEM, metric=CIDER, reference_set="prod")).provenance[0].corpus_digest
    code, details = await code_of(house.b.score(ITEM, metric=CIDER, reference_set=f"prod@{digest}"))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    never = f"nobody@{digest}"
    other = await code_of(house.b.score(ITEM, metric=CIDER, reference_set=never))
    assert (code, details.replace("prod", "nobody")) == other, "no word tells a name that A has"


async def test_06_b_learns_from_cache_hits_what_a_has_scored(house: House) -> None:
    first = hits(only(await house.a.score(ITEM)))
    assert set(first) == {"computed"}
    assert set(hits(only(await house.a.score(ITEM)))) == {"memory"}
    assert hits(only(await house.b.score(ITEM))) == first, "B computes all of it, as A did"
    assert set(hits(only(await house.b.score(ITEM)))) == {"memory"}


async def test_07_b_joins_a_text_of_a_that_is_under_way(house: House) -> None:
    items = [
        types_pb2.Item(question="q", references=[f"reference {index}"], prediction=f"prediction number {index}")
        for index in range(40)
    ]
    one, other = await asyncio.gather(house.a.score(*items), house.b.score(*items))
    for reply in (one, other):
        found = [set(hits(item.results[0])) for item in reply.items]
        assert found == [{"computed"}] * len(items)
    assert [item.results[0].score for item in one.items] == pytest.approx(
        [item.results[0].score for item in other.items], abs=2e-4
    )


async def test_08_b_reads_a_verdict_of_a(house: House) -> None:
    first = hits(only(await house.a.score(ITEM, metric=JUDGED)))
    assert set(hits(only(await house.a.score(ITEM, metric=JUDGED)))) == {"memory"}
    asked = len(house.judges.script.asked)
    assert hits(only(await house.b.score(ITEM, metric=JUDGED))) == first
    assert len(house.judges.script.asked) == 2 * asked, "the judge was asked for B as for A"


async def test_09_b_joins_a_verdict_of_a_that_is_under_way_and_leaves(house: House) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    judge = house.judges.known["scripted"]
    judge.gate = lambda: asyncio.shield(gate)
    of_a = asyncio.create_task(house.a.score(ITEM, metric=JUDGED))
    await until(lambda: judge.running == 1)
    of_b = asyncio.create_task(house.b.score(ITEM, metric=JUDGED))
    await until(lambda: judge.running == 2)
    leaving = asyncio.create_task(house.b.score(OTHER, metric=JUDGED))
    await until(lambda: judge.running == 3)
    leaving.cancel()
    await until(lambda: judge.running == 2)
    gate.set_result(None)
    results = [only(reply) for reply in await asyncio.gather(of_a, of_b)]
    assert [set(hits(result)) for result in results] == [{"computed"}] * 2
    assert {result.status for result in results} == {types_pb2.STATUS_OK}


async def test_10_b_uses_a_scope_that_it_lacks(house: House) -> None:
    narrow = house.tenant(NARROW)
    code, details = await code_of(narrow.prepare(*entries("x"), metric=EXACT, name="x"))
    assert (code, "prepare" in details) == (grpc.StatusCode.PERMISSION_DENIED, True)
    code, details = await code_of(narrow.score(ITEM, metric=JUDGED))
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "metrics[0].judge_verdict" in details
    assert "scope judge" in details
    assert house.judges.script.asked == []
    stub: Any = scoring_pb2_grpc.ScoringStub(narrow.channel)
    stream = stub.ScoreStream(metadata=narrow.metadata)
    config = scoring_pb2.ScoreStreamConfig(metrics=[EXACT, JUDGED])
    await stream.write(scoring_pb2.ScoreStreamRequest(config=config))
    code, details = await code_of(stream.read())
    assert (code, "config.metrics[1].judge_verdict" in details) == (grpc.StatusCode.PERMISSION_DENIED, True)
    assert only(await narrow.score(ITEM)).status == types_pb2.STATUS_OK
    assert (await narrow.models()).models


@pytest.mark.hostile
async def test_11_b_sends_more_than_its_quota(house: House) -> None:
    poor = house.tenant(POOR)
    assert only(await poor.score(ITEM, metric=EXACT)).status == types_pb2.STATUS_OK

    async def sixty_more() -> None:
        for _ in range(60):
            await poor.score(ITEM, metric=EXACT)

    with pytest.raises(aio.AioRpcError) as caught:
        await sixty_more()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailing = dict(caught.value.trailing_metadata() or ())
    assert 0 < int(trailing["grpc-retry-pushback-ms"]) <= 60_000
    assert "quota_tokens_per_minute" in (caught.value.details() or "")
    for _ in range(60):
        assert only(await house.a.score(ITEM, metric=EXACT)).status == types_pb2.STATUS_OK
    # A stream waits instead, and what it sent is scored in the end.
    stub: Any = scoring_pb2_grpc.ScoringStub(poor.channel)
    stream = stub.ScoreStream(metadata=poor.metadata)
    await stream.write(scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[EXACT])))
    await stream.write(scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[ITEM])))
    await stream.done_writing()
    async with asyncio.timeout(60):
        first = await stream.read()
        second = await stream.read()
    assert [each.name for each in first.provenance] == ["exact_match"]
    assert [each.results[0].status for each in second.items] == [types_pb2.STATUS_OK]


async def test_12_b_replays_a_token_in_another_spelling(house: House) -> None:
    stub: Any = models_pb2_grpc.ModelsStub(house.a.channel)
    spellings = (
        f"Bearer {A.upper()}",
        f"Bearer  {A}",
        f"Bearer {A} ",
        f"Bearer {A[:-1]}",
        f"Bearer {A}x",
        f"Bearer {A},{B}",
        f"Basic {A}",
        A,
        "Bearer ",
        f"Bearer {sha256(A.encode()).hexdigest()}",
        f"Bearer {sha256(B.encode()).hexdigest()}",
    )
    for said in spellings:
        call = stub.List(models_pb2.ListModelsRequest(), metadata=(("authorization", said),))
        assert (await call.code()).name == "UNAUTHENTICATED", said


async def test_13_b_goes_on_with_a_token_that_was_revoked(house: House, caplog: pytest.LogCaptureFixture) -> None:
    assert (await house.b.models()).models
    replace_file(house.tokens, tokens_file(with_b=False))

    async def refused() -> bool:
        stub: Any = models_pb2_grpc.ModelsStub(house.b.channel)
        call = stub.List(models_pb2.ListModelsRequest(), metadata=house.b.metadata)
        return (await call.code()) is grpc.StatusCode.UNAUTHENTICATED

    async with asyncio.timeout(10):
        while not await refused():  # noqa: ASYNC110 - it is on the other side of a socket
            await asyncio.sleep(0.05)
    code, _ = await code_of(house.b.score(ITEM))
    assert code is grpc.StatusCode.UNAUTHENTICATED
    replace_file(house.tokens, "[broken")
    async with asyncio.timeout(10):
        while "the last valid tokens stay in force" not in caplog.text:  # noqa: ASYNC110 - the file is looked at once a second
            await asyncio.sleep(0.05)
    assert only(await house.a.score(ITEM)).status == types_pb2.STATUS_OK


async def test_14_b_finds_entries_of_a_on_disk_after_a_restart(
    tmp_path: Path, minilm: Path, judges: ScriptedJudges
) -> None:
    async with house_of(tmp_path, judges, model_repository=minilm) as house:
        await house.a.prepare(*entries(*TEXTS), metric=CIDER, name="prod")
        await house.a.score(ITEM)
    async with house_of(tmp_path, judges, model_repository=minilm) as house:
        assert set(hits(only(await house.b.score(ITEM)))) == {"computed"}
        assert set(hits(only(await house.a.score(ITEM)))) == {"disk"}
        assert only(await house.b.score(ITEM, metric=CIDER, reference_set="prod")).status == (
            types_pb2.STATUS_NOT_PREPARED
        )


async def test_15_b_asks_health_and_metrics_without_the_right_token(
    tmp_path: Path, minilm: Path, judges: ScriptedJudges
) -> None:
    settings = {"model_repository": minilm, "auth_also": "health", "auth_tokens": "own"}
    async with house_of(tmp_path, judges, **settings) as house:
        stub: Any = health_pb2_grpc.HealthStub(house.a.channel)
        check = health_pb2.HealthCheckRequest(service="")
        assert (await stub.Check(check).code()).name == "UNAUTHENTICATED"
        watch = stub.Watch(check)
        assert (await watch.code()).name == "UNAUTHENTICATED"
        for token in (B, NARROW, "own"):
            reply = await stub.Check(check, metadata=(("authorization", f"Bearer {token}"),))
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        # A token of `auth_tokens` works in a namespace of its own.
        await house.a.score(ITEM)
        assert set(hits(only(await house.tenant("own").score(ITEM)))) == {"computed"}
