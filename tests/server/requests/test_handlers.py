"""The handlers without a transport: what holds for every request, whatever is in it."""

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine, ListedModels
from tests.support.examples import example_count
from tests.support.servers.handlers import handlers_over
from tests.support.servers.wire import EXACT, SMILE, item, request

from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    NothingLoadedError,
    OverloadedError,
)
from gradewire_server.requests.handlers import Handlers
from gradewire_server.requests.score import reply_margin_s
from gradewire_server.settings.limits import Capacity, Deadlines, Limits

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
ITEMS = st.builds(
    types_pb2.Item,
    id=TEXT,
    question=TEXT,
    references=st.lists(TEXT, max_size=4),
    prediction=TEXT,
    synthetic_answers=st.lists(TEXT, max_size=4),
    caption=TEXT,
    group=TEXT,
    captions=st.lists(TEXT, max_size=4),
)
WEIGHTS = st.none() | st.floats(allow_nan=True)
MODELS = st.sampled_from(["", "hash", "absent", "hash@00000000", "x@y"])
SPECS = st.one_of(
    st.builds(
        lambda **fields: types_pb2.MetricSpec(smile=types_pb2.SmileParameters(**fields)),
        preset=st.integers(0, 5),
        synthetic=st.integers(0, 4),
        sentence_weight=WEIGHTS,
        model=MODELS,
    ),
    st.builds(lambda model: types_pb2.MetricSpec(sbert=types_pb2.SbertParameters(model=model)), model=MODELS),
    st.just(EXACT),
    st.just(types_pb2.MetricSpec(easy_match=types_pb2.EasyMatchParameters())),
    st.just(types_pb2.MetricSpec()),
)


@settings(max_examples=example_count(150), deadline=None)
@given(items=st.lists(ITEMS, max_size=5), specs=st.lists(SPECS, max_size=4), reference_set=TEXT)
def test_any_request_is_answered_completely_or_refused_by_name(
    items: list[types_pb2.Item], specs: list[types_pb2.MetricSpec], reference_set: str
) -> None:
    asked = scoring_pb2.ScoreRequest(items=items, metrics=specs, reference_set=reference_set)
    try:
        reply = asyncio.run(handlers_over().score(asked))
    except InvalidRequestError as error:
        assert error.field.startswith(("metrics", "items", "reference_set"))  # noqa: PT017 - most are answered
        return
    except NothingLoadedError:
        assert any("absent" in str(spec) or "00000000" in str(spec) for spec in specs)
        return
    assert [(part.index, part.id) for part in reply.items] == [(index, each.id) for index, each in enumerate(items)]
    assert len(reply.provenance) == len(specs)
    for part in reply.items:
        assert [result.metric_index for result in part.results] == list(range(len(specs)))
        for result in part.results:
            assert result.status not in {types_pb2.STATUS_UNSPECIFIED, types_pb2.STATUS_INTERNAL}
            assert result.HasField("score") == (result.status == types_pb2.STATUS_OK)
            assert math.isfinite(result.score)
            assert bool(result.message) == (result.status != types_pb2.STATUS_OK)
    scoring_pb2.ScoreResponse.FromString(reply.SerializeToString())


@settings(max_examples=example_count(40), deadline=None)
@given(pauses=st.lists(st.integers(0, 12), min_size=8, max_size=8), cancelled=st.sets(st.integers(0, 7), min_size=4))
def test_cancelling_at_any_point_leaves_the_others_right(pauses: list[int], cancelled: set[int]) -> None:
    requests = [request(item(f"answer {number} and cat {number % 3}", "the cat", f"r{number}")) for number in range(8)]

    async def run() -> None:
        handlers = handlers_over()
        expected = [(await handlers_over().score(asked)).items[0].results[0].score for asked in requests]
        tasks = [asyncio.create_task(handlers.score(asked)) for asked in requests]
        for number, pause in enumerate(pauses):
            for _ in range(pause):
                await asyncio.sleep(0)
            if number in cancelled:
                tasks[number].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        for number, result in enumerate(done):
            if isinstance(result, asyncio.CancelledError):
                assert number in cancelled
            else:
                assert isinstance(result, scoring_pb2.ScoreResponse)
                assert result.items[0].results[0].score == expected[number]
        assert handlers.context.admission.items.taken == 0

    asyncio.run(run())


async def test_late_pairs_are_told_beside_those_that_were_done_in_time() -> None:
    class Late(HashEngine):
        """Answers as an engine with a queue does: with TIMEOUT, at the deadline it is given."""

        async def embed(self, model, texts, tiers, *, deadline_s=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0, deadline_s - loop.time()))
            self.failures = dict.fromkeys(texts, Failure(Status.TIMEOUT, "late"))
            return await super().embed(model, texts, tiers)

    reply = await handlers_over(Late()).score(request(item(), metrics=(SMILE, EXACT)), deadline_s=0.2)
    statuses = [result.status for result in reply.items[0].results]
    assert statuses == [types_pb2.STATUS_TIMEOUT, types_pb2.STATUS_OK]


async def test_what_hangs_is_told_as_timeout_and_cancelled_behind_the_reply() -> None:
    cancelled: list[str] = []
    let_go = asyncio.Event()

    class Stubborn(HashEngine):
        """Heeds no deadline, and takes its time when it is cancelled."""

        async def embed(self, model: str, *_: Any, **__: Any) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                await let_go.wait()
                cancelled.append(model.partition("@")[0])

    handlers = handlers_over(Stubborn(), deadlines=Deadlines(default_s=0.01, max_s=0.2))
    reply = await handlers.score(
        request(*[item(f"answer {n}") for n in range(50)], metrics=(SMILE, EXACT)), deadline_s=99
    )
    for part in reply.items:
        assert [result.status for result in part.results] == [types_pb2.STATUS_TIMEOUT, types_pb2.STATUS_OK]
        assert "deadline" in part.results[0].message
    assert not cancelled
    assert handlers.context.admission.items.taken == 0
    closing = asyncio.create_task(handlers.close())
    await asyncio.sleep(0)
    assert not closing.done()
    let_go.set()
    await closing
    assert cancelled == ["hash"]


async def test_no_time_at_all_is_an_error_of_the_call() -> None:
    with pytest.raises(DeadlineExceededError, match="before scoring started"):
        await handlers_over().score(request(item()), deadline_s=-1)


@given(left_s=st.floats(-10, 1e6), pairs=st.integers(0, 1 << 16))
def test_the_margin_leaves_most_of_the_time_to_the_work(left_s: float, pairs: int) -> None:
    margin_s = reply_margin_s(left_s, pairs)
    assert 0 <= margin_s <= 1
    assert margin_s <= max(0.0, left_s) * 0.2


async def test_a_request_larger_than_all_permits_is_served_when_nothing_else_is() -> None:
    handlers = handlers_over(admission=Admission(Capacity(max_items=2)))
    assert len((await handlers.score(request(*[item()] * 5))).items) == 5
    with handlers.context.admission.items.hold(1), pytest.raises(OverloadedError):
        await handlers.score(request(*[item()] * 5))


async def test_equal_ids_are_allowed_and_the_same_metric_twice() -> None:
    light = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(sentence_weight=0))
    heavy = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(sentence_weight=1))
    same = item("a cat here", "the cat", item_id="same")
    reply = await handlers_over().score(request(same, same, metrics=(light, heavy)))
    scores = [[result.score for result in part.results] for part in reply.items]
    assert scores[0] == scores[1]
    assert scores[0][0] != scores[0][1]
    assert scores[0][1] == pytest.approx(reply.items[0].results[1].smile.sentence)


async def test_composed_and_decomposed_texts_score_the_same() -> None:
    loose, tight = item("un cafe\u0301 noir", "cafe\u0301"), item("un caf\u00e9 noir", "caf\u00e9")
    reply = await handlers_over().score(request(loose, tight))
    assert reply.items[0].results[0].smile == reply.items[1].results[0].smile


@pytest.mark.parametrize("preset", [types_pb2.SMILE_PRESET_V1, types_pb2.SMILE_PRESET_FAST])
async def test_references_of_more_lengths_than_windows_are_scored(preset: types_pb2.SmilePreset) -> None:
    words = [f"w{index}" for index in range(620)]
    references = [" ".join(["cat"] * (index + 1)) for index in range(600)]
    smile = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=preset))
    reply = await handlers_over().score(request(item(" ".join(words), *references), metrics=(smile,)))
    (result,) = reply.items[0].results
    assert result.status == types_pb2.STATUS_OK
    assert types_pb2.WARNING_TRUNCATED in result.warnings
    assert result.smile.best_window == " ".join(words[: result.matched_reference + 1])


async def test_prepare_refuses_entries_over_a_limit_alone() -> None:
    entries = [
        references_pb2.ReferenceEntry(question="a", references=["x"] * 3),
        references_pb2.ReferenceEntry(question="b", references=["x"]),
        references_pb2.ReferenceEntry(question="c", references=[]),
    ]
    handlers = handlers_over(limits=Limits(max_references_per_item=2))
    asked = references_pb2.PrepareRequest(entries=entries, metrics=[SMILE], reference_set="mine")
    steps = [
        references_pb2.PrepareProgress.FromString(step.SerializeToString()) async for step in handlers.prepare(asked)
    ]
    failures = {failure.index: failure.status for step in steps for failure in step.failures}
    assert failures == dict.fromkeys((0, 2), types_pb2.STATUS_INVALID_INPUT)
    assert (steps[-1].entries_done, steps[-1].entries_total, steps[-1].reference_set) == (3, 3, "mine")
    assert handlers.context.admission.items.taken == 0


async def test_marks_without_end_fail_alone() -> None:
    evil = "a" + "\u0301" * 31
    reply = await handlers_over().score(request(item(), item(evil), item("the cat", "the cat", evil)))
    scored, *refused = [part.results[0] for part in reply.items]
    assert scored.status == types_pb2.STATUS_OK
    assert [result.status for result in refused] == [types_pb2.STATUS_INVALID_INPUT] * 2
    assert [result.message.split(":")[0] for result in refused] == ["prediction", "references[1]"]
    entries = [references_pb2.ReferenceEntry(references=[text]) for text in ("fine", evil)]
    asked = references_pb2.PrepareRequest(entries=entries, metrics=[SMILE])
    failures = [failure async for step in handlers_over().prepare(asked) for failure in step.failures]
    assert [(failure.index, failure.status) for failure in failures] == [(1, types_pb2.STATUS_INVALID_INPUT)]


async def test_preparing_nothing_is_complete_at_once() -> None:
    (step,) = [step async for step in handlers_over().prepare(references_pb2.PrepareRequest(metrics=[SMILE]))]
    assert step.complete


async def test_room_for_namespaces_is_made_of_idle_ones_and_never_of_the_one_just_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradewire_server.requests.handlers._MAX_VIEWS", 2)
    ports = HashEngine().ports
    handlers = handlers_over(ports=replace(ports, of_namespace=lambda _: ports))
    first, second = handlers.within("a"), handlers.within("b")
    assert handlers.within("a") is first
    third = handlers.within("c")
    assert (handlers.within("a"), handlers.within("c")) == (first, third)
    assert handlers.within("b") is not second
    monkeypatch.setattr(Handlers, "_idle", property(lambda self: self not in busy))
    busy = list(handlers._views.values())
    made = handlers.within("d")
    assert handlers.within("d") is made
    assert [*handlers._views.values()][:-1] == busy
    await handlers.close()


async def test_what_is_missing_is_listed_with_how_to_get_it() -> None:
    (status,) = HashEngine().encoder_statuses()
    missing = replace(status, state="missing", how_to_get="gradewire models build hash", digest="")

    def having(status: ModelStatus) -> ListedModels:
        return ListedModels(lambda: (status,), "there is no {}")

    ports = HashEngine().ports
    reply = await handlers_over(ports=replace(ports, encoders=having(missing))).list_models()
    assert reply.models[0].how_to_get == "gradewire models build hash"
    by_name = {metric.name: metric for metric in reply.metrics}
    assert not by_name["smile"].available
    assert "gradewire models build hash" in by_name["smile"].missing
    assert by_name["exact_match"].available
    again = having(replace(missing, state="built"))
    built = await handlers_over(ports=replace(ports, encoders=again)).list_models()
    assert built.models[0].how_to_get == ""
    assert all(metric.available for metric in built.metrics)


async def test_a_metric_whose_synonyms_are_missing_is_listed_so() -> None:
    engine = HashEngine()
    listed = {metric.name: metric for metric in (await handlers_over(engine).list_models()).metrics}
    assert (listed["meteor"].available, listed["meteor"].missing) == (True, "")
    engine.known_synonyms = None
    listed = {metric.name: metric for metric in (await handlers_over(engine).list_models()).metrics}
    assert not listed["meteor"].available
    assert listed["meteor"].missing
    assert all(metric.available for metric in listed.values() if metric.name != "meteor")
