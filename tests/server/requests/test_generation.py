"""References.Prepare with a judge that writes what is missing, over a real socket."""

import re
from typing import Any

import grpc
import pytest
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import saying
from tests.support.servers.wire import EXACT, Wire, error_of, item, request, wire_server

from gradewire_proto.conventions.reference_sets import name_set
from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_server.domain.item import ReferenceEntry
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS
from gradewire_server.requests.generation import plan_generation

PREPARED = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(synthetic=types_pb2.SYNTHETIC_MODE_PREPARED))
PROMPT = PACKAGE_PROMPTS.find("synthetic", "")
ONLY_AGAIN = re.sub(r"(?s)\[variants\.sentence\].*?(?=\[variants\.again\])", "", PROMPT.text)


def asked(*references: str, question: str = "what?", **generate: Any) -> references_pb2.PrepareRequest:
    return references_pb2.PrepareRequest(
        entries=[references_pb2.ReferenceEntry(question=question, references=references)] if references else [],
        metrics=[PREPARED],
        generate=references_pb2.SyntheticGeneration(**generate),
    )


async def prepared(wire: Wire, message: references_pb2.PrepareRequest) -> list[references_pb2.PrepareProgress]:
    return [step async for step in wire.references.Prepare(message)]


async def test_what_is_missing_is_written_kept_and_told(wire: Wire) -> None:
    wire.engine.script.on_generate = saying("It is surely the cat.", "Who knows?")
    steps = await prepared(wire, asked("the cat", "a dog", return_answers=True))
    last = steps[-1]
    assert last.complete
    assert (last.synthetic_answers_stored, last.synthetic_answers_generated, last.synthetic_answers_fallback) == (
        2,
        1,
        1,
    )
    ((failure,),) = [step.failures for step in steps if step.failures]
    assert (failure.index, failure.status) == (0, types_pb2.STATUS_UNPARSABLE)
    ((answers,),) = [step.synthetic_answers for step in steps if step.synthetic_answers]
    assert (answers.index, list(answers.synthetic_answers)) == (0, ["It is surely the cat.", "a dog"])
    score = request(item("There is a cat.", "the cat", "a dog"), metrics=(PREPARED,))
    score.reference_set = last.reference_set
    reply = await wire.scoring.Score(score)
    assert reply.items[0].results[0].status == types_pb2.STATUS_OK


async def test_sentences_and_fallbacks_are_counted_once(wire: Wire) -> None:
    def counted() -> list[float | None]:
        sample = wire.registry.get_sample_value
        return [sample("gradewire_synthetic_answers_total", {"outcome": each}) for each in ("generated", "fallback")]

    assert counted() == [0, 0]
    wire.engine.script.on_generate = saying("It is surely the cat.", "Who knows?")
    await prepared(wire, asked("the cat", "a dog"))
    assert counted() == [1, 1]
    wire.engine.script.on_generate = saying("It is surely the mouse.")
    message = asked("the mouse", question="who?")
    message.entries.add(question="whose?", references=["the mouse"])
    await prepared(wire, message)
    assert counted() == [3, 1]


async def test_judge_and_prompt_stand_in_the_last_message(wire: Wire) -> None:
    (step,) = await prepared(wire, asked())
    digest = wire.engine.digests["scripted"]
    assert step.complete
    assert [provenance.name for provenance in step.provenance] == ["smile"]
    assert step.generation == types_pb2.Provenance(
        name="synthetic",
        version=1,
        model="scripted",
        model_digest=digest,
        prompt="synthetic/1",
        prompt_digest=PROMPT.digest,
        line=f"synthetic/1?model=scripted@{digest[:12]}&prompt=synthetic/1@{PROMPT.digest[:12]}",
    )
    plain = references_pb2.PrepareRequest(metrics=[PREPARED])
    assert not (await prepared(wire, plain))[-1].HasField("generation")


async def test_answers_are_sent_back_only_where_that_is_asked_for(wire: Wire) -> None:
    wire.engine.script.on_generate = saying("It is surely the cat.")
    assert all(not step.synthetic_answers for step in await prepared(wire, asked("the cat")))
    message = asked("the cat", "lost", return_answers=True)
    message.entries.add(question="p", references=[" "])
    message.entries.add(question="p", references=["a", "b"], synthetic_answers=["It is a.", "It is b."])
    wire.engine.failures["lost It is surely the cat."] = Failure(Status.UNAVAILABLE, "disk full")
    steps = await prepared(wire, message)
    told = {each.index: list(each.synthetic_answers) for step in steps for each in step.synthetic_answers}
    assert told == {0: ["It is surely the cat.", ""], 1: [""], 2: ["It is a.", "It is b."]}
    assert {each.index: each.status for step in steps for each in step.failures} == {
        0: types_pb2.STATUS_UNAVAILABLE,
        1: types_pb2.STATUS_INVALID_INPUT,
    }


async def test_the_name_of_a_set_says_who_writes_in_it(wire: Wire) -> None:
    entries = [ReferenceEntry("what?", ("the cat",))]
    plain = asked("the cat")
    plain.ClearField("generate")
    by_judge = await plan_generation(wire.handlers.context, asked())
    assert (await prepared(wire, plain))[-1].reference_set == name_set(entries)
    written = (await prepared(wire, asked("the cat")))[-1].reference_set
    assert written == name_set(entries, by_judge.digests) != name_set(entries)
    other_prompt = asked("the cat", prompt=PROMPT.text.replace("version = 1", "version = 9"))
    wire.engine.digests["scripted"] = "1" * 64
    names = {written, (await prepared(wire, asked("the cat")))[-1].reference_set}
    assert len(names | {(await prepared(wire, other_prompt))[-1].reference_set}) == 3


@pytest.mark.parametrize(
    ("generate", "code", "says"),
    [
        ({"model": "absent"}, grpc.StatusCode.FAILED_PRECONDITION, "generate.model: there is no judge 'absent' here"),
        ({"model": "scripted@00000000"}, grpc.StatusCode.FAILED_PRECONDITION, "00000000 is asked for"),
        ({"model": "a@b@c"}, grpc.StatusCode.INVALID_ARGUMENT, "generate.model"),
        ({"prompt": "synthetic/77"}, grpc.StatusCode.INVALID_ARGUMENT, "generate.prompt: synthetic/77 is not known"),
        ({"prompt": "lave/2"}, grpc.StatusCode.INVALID_ARGUMENT, "lave/2 is a prompt of lave, not of synthetic"),
        ({"prompt": "x = [" * 30_000}, grpc.StatusCode.INVALID_ARGUMENT, "generate.prompt"),
        (
            {"prompt": 'format = 1\nname = "mine"\nversion = 1\nmetric = "synthetic"\n'},
            grpc.StatusCode.INVALID_ARGUMENT,
            "generate.prompt",
        ),
        (
            {"prompt": ONLY_AGAIN},
            grpc.StatusCode.INVALID_ARGUMENT,
            "generate.prompt: synthetic/1 has no table [variants.sentence]",
        ),
    ],
)
async def test_what_cannot_be_written_with_is_refused_before_any_work(
    wire: Wire, generate: dict[str, str], code: grpc.StatusCode, says: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await prepared(wire, asked("the cat", **generate))
    assert error_of(caught)[0] == code
    assert says in error_of(caught)[1]
    assert not wire.engine.script.asked


async def test_without_a_judge_the_call_says_so() -> None:
    async with wire_server(engine=HashEngine(judges=())) as wire:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await prepared(wire, asked("the cat"))
        assert error_of(caught)[0] == grpc.StatusCode.FAILED_PRECONDITION
        plain = references_pb2.PrepareRequest(metrics=[EXACT])
        assert (await prepared(wire, plain))[-1].complete


async def test_permits_are_given_back_when_the_caller_leaves(wire: Wire) -> None:
    wire.engine.script.on_generate = saying("It is surely the cat.")
    message = references_pb2.PrepareRequest(
        entries=[{"question": f"q{index}", "references": ["the cat"]} for index in range(100)],
        metrics=[PREPARED],
        generate=references_pb2.SyntheticGeneration(),
    )
    steps = wire.handlers.prepare(message)
    await anext(steps)
    await steps.aclose()
    assert wire.handlers.context.admission.items.taken == 0
    assert wire.engine.running == 0
    before = len(wire.engine.prepared)
    assert 0 < before < 100
    assert (await prepared(wire, message))[-1].synthetic_answers_generated == 100 - before
