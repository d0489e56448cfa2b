"""Sets that are what their digest says: named in the provenance, pinned by calls, and closed for good."""

import re
from typing import Any

import grpc
import pytest
from grpc import aio
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import saying
from tests.support.servers.wire import EXACT, Wire, error_of, item, request, wire_server

from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import digest_entries, name_set
from gradewire_server.domain.items import Failure, ReferenceEntry, Status
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.requests.prepare import plan_generation

CIDER = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=types_pb2.CORPUS_PREPARED))
ITEMS = [
    types_pb2.Item(question="which?", references=["a brown dog"], prediction="a brown dog runs"),
    types_pb2.Item(question="who?", references=["two men on a horse"], prediction="two men"),
]


def entries_of(*texts: str) -> list[references_pb2.ReferenceEntry]:
    return [references_pb2.ReferenceEntry(question="what?", references=[text]) for text in texts]


TEXTS = ("a brown dog", "a red cat", "two men on a horse")
ALL = digest_entries(entries_of(*TEXTS))


async def prepare(wire: Wire, *texts: str, name: str = "prod", metric: Any = CIDER, **fields: Any) -> Any:
    """The last message."""
    call = references_pb2.PrepareRequest(entries=entries_of(*texts), metrics=[metric], reference_set=name, **fields)
    return [progress async for progress in wire.references.Prepare(call)][-1]


async def refused(wire: Wire, *texts: str, **fields: Any) -> str:
    """Why a preparation is refused; nothing of it is stored."""
    before = {name: set(entries) for name, entries in wire.engine.corpora.items()}
    with pytest.raises(aio.AioRpcError) as caught:
        await prepare(wire, *texts, **fields)
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert {name: set(entries) for name, entries in wire.engine.corpora.items()} == before
    return details


async def score(wire: Wire, reference_set: str) -> scoring_pb2.ScoreResponse:
    asked = request(*ITEMS, metrics=(CIDER,))
    asked.reference_set = reference_set
    reply: scoring_pb2.ScoreResponse = await wire.scoring.Score(asked)
    return reply


async def test_scores_over_another_corpus_have_another_line(wire: Wire) -> None:
    await prepare(wire, *TEXTS)
    before = await score(wire, "prod")
    assert before.provenance[0].corpus_digest == ALL, "the client works out the same digest"
    again = await score(wire, "prod")
    assert again.provenance[0].line == before.provenance[0].line
    await prepare(wire, "a brown horse", "a brown cat")
    after = await score(wire, "prod")
    assert after.items[0].results[0].score != before.items[0].results[0].score
    assert after.provenance[0].line != before.provenance[0].line
    assert after.provenance[0].corpus_digest != ALL


async def test_the_order_and_the_calls_in_which_a_set_came_make_no_other_digest(wire: Wire) -> None:
    await prepare(wire, *TEXTS)
    for text in reversed(TEXTS):
        await prepare(wire, text, text, name="other")
    digests = {(await score(wire, name)).provenance[0].corpus_digest for name in ("prod", "other")}
    assert digests == {ALL}


@pytest.mark.parametrize("pin", [ALL, ALL[:8], ALL[:12].upper()])
async def test_a_call_can_insist_on_a_corpus(wire: Wire, pin: str) -> None:
    await prepare(wire, *TEXTS)
    reply = await score(wire, f"prod@{pin}")
    assert reply.provenance[0].line.endswith(f"reference_set=prod@{ALL[:12]}")
    assert reply == await _same(wire, reply)
    await prepare(wire, "one more")
    with pytest.raises(aio.AioRpcError) as caught:
        await score(wire, f"prod@{pin}")
    code, details, _ = error_of(caught)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert pin.lower() in details
    now = (await score(wire, "prod")).provenance[0].corpus_digest
    assert now in details


async def _same(wire: Wire, reply: scoring_pb2.ScoreResponse) -> scoring_pb2.ScoreResponse:
    """The same call without a digest, with what differs from run to run taken from `reply`."""
    other = await score(wire, "prod")
    other.server_s = reply.server_s
    for one, answered in zip(other.items, reply.items, strict=True):
        one.results[0].timing.CopyFrom(answered.results[0].timing)
    return other


async def test_a_digest_of_a_set_without_a_corpus_is_an_error(wire: Wire) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await score(wire, f"nobody@{ALL}")
    assert error_of(caught)[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_digest_that_the_store_cannot_confirm_is_no_score(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    await prepare(wire, *TEXTS)

    async def away(_: str) -> Failure:
        return Failure(Status.UNAVAILABLE, "the store is away")

    monkeypatch.setattr(wire.handlers.context.scorer, "corpus_digest", away)
    with pytest.raises(aio.AioRpcError) as caught:
        await score(wire, f"prod@{ALL}")
    assert error_of(caught)[0] is grpc.StatusCode.UNAVAILABLE
    assert (await score(wire, "prod")).provenance[0].corpus_digest == ""


async def test_a_stream_goes_on_with_the_corpus_that_it_began_with(wire: Wire) -> None:
    await prepare(wire, *TEXTS)
    alone = (await score(wire, "prod")).items[0].results[0].score
    stream = wire.scoring.ScoreStream()
    config = scoring_pb2.ScoreStreamConfig(metrics=[CIDER], reference_set=f"prod@{ALL}")
    await stream.write(scoring_pb2.ScoreStreamRequest(config=config))
    first = await stream.read()
    assert first.provenance[0].corpus_digest == ALL
    await prepare(wire, "a brown horse", "a brown cat")
    await stream.write(scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=ITEMS[:1])))
    await stream.done_writing()
    reply = await stream.read()
    assert reply.items[0].results[0].score == alone


async def test_an_immutable_set_takes_nothing_more(wire: Wire) -> None:
    last = await prepare(wire, *TEXTS, immutable=True)
    assert last.corpus_digest == ALL
    assert last.provenance[0].corpus_digest == ALL
    before = await score(wire, "prod")
    assert "accepts no new entries" in await refused(wire, "one more")
    assert ALL in await refused(wire, *TEXTS, "one more")
    assert ALL in await refused(wire, *TEXTS, "one more", immutable=True)
    assert ALL in await refused(wire, "one more", immutable=True, expected_digest=ALL)
    assert (await prepare(wire, *TEXTS, immutable=True)).corpus_digest == ALL, "the same again changes nothing"
    assert (await prepare(wire, TEXTS[0])).complete, "and neither does a part of it"
    after = await score(wire, "prod")
    assert [each.results[0].score for each in after.items] == [each.results[0].score for each in before.items]


async def test_a_name_with_other_content_cannot_become_immutable(wire: Wire) -> None:
    await prepare(wire, "somebody else's")
    assert "use another name" in await refused(wire, *TEXTS, immutable=True)
    assert "use another name" in await refused(wire, *TEXTS[:1], immutable=True, expected_digest=ALL)
    assert wire.engine.seals == {}
    assert (await prepare(wire, *TEXTS)).complete, "and stays what it was"


async def test_a_set_that_grew_to_the_same_content_can_become_immutable(wire: Wire) -> None:
    await prepare(wire, *TEXTS[:2])
    assert (await prepare(wire, *TEXTS, immutable=True)).corpus_digest == ALL


async def test_a_set_in_several_calls_is_sealed_by_its_first_and_whole_after_its_last(wire: Wire) -> None:
    whole = {"immutable": True, "expected_digest": ALL}
    assert (await prepare(wire, *TEXTS[:2], **whole)).corpus_digest == ""
    assert "use another name" in await refused(wire, "a stranger"), "who did not say immutable must not add"
    assert "prepare the missing entries" in await refused(wire, **whole)
    results = [each.results[0] for each in (await score(wire, "prod")).items]
    assert {result.status for result in results} == {types_pb2.STATUS_NOT_PREPARED}
    await prepare(wire, *TEXTS[2:], **whole)
    assert (await prepare(wire, **whole)).corpus_digest == ALL
    assert (await score(wire, "prod")).items[0].results[0].status == types_pb2.STATUS_OK


async def test_entries_that_a_wrong_digest_was_said_for_never_score(wire: Wire) -> None:
    whole = {"immutable": True, "expected_digest": "0" * 32}
    await prepare(wire, *TEXTS, **whole)
    assert "prepare the missing entries" in await refused(wire, **whole)
    results = [each.results[0] for each in (await score(wire, "prod")).items]
    assert {result.status for result in results} == {types_pb2.STATUS_NOT_PREPARED}


async def test_an_immutable_set_has_a_corpus_whatever_the_metrics(wire: Wire) -> None:
    assert (await prepare(wire, *TEXTS, metric=EXACT, immutable=True)).corpus_digest == ALL
    assert (await score(wire, f"prod@{ALL}")).provenance[0].corpus_digest == ALL


@pytest.mark.parametrize(
    ("texts", "fields", "message"),
    [
        (("a", " "), {"immutable": True}, "entries[1]: references[0]: is blank"),
        (("a", "b" + "\u0301" * 40), {"immutable": True}, "entries[1]: references[0]: more than 30"),
        ((), {"immutable": True}, "entries: must contain at least one entry"),
        (("a",), {"expected_digest": ALL}, "expected_digest: needs immutable"),
        (("a",), {"immutable": True, "expected_digest": "xyz"}, "expected_digest: must be 32 hex digits"),
        (("a",), {"name": "prod@12345678"}, "reference_set: must not end in"),
    ],
)
async def test_what_cannot_be_said_is_refused_before_anything_is_stored(
    wire: Wire, texts: tuple[str, ...], fields: dict[str, Any], message: str
) -> None:
    assert (await refused(wire, *texts, **fields)).startswith(message)
    assert wire.engine.seals == {}


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
        ({"model": "scripted@00000000"}, grpc.StatusCode.FAILED_PRECONDITION, "not 00000000"),
        ({"model": "a@b@c"}, grpc.StatusCode.INVALID_ARGUMENT, "generate.model"),
        ({"prompt": "synthetic/77"}, grpc.StatusCode.INVALID_ARGUMENT, "generate.prompt: unknown prompt synthetic/77"),
        ({"prompt": "lave/2"}, grpc.StatusCode.INVALID_ARGUMENT, "lave/2 is a prompt for lave, not for synthetic"),
        ({"prompt": "x = [" * 30_000}, grpc.StatusCode.INVALID_ARGUMENT, "generate.prompt"),
        (
            {"prompt": 'format = 1\nname = "mine"\nversion = 1\nmetric = "synthetic"\n'},
            grpc.StatusCode.INVALID_ARGUMENT,
            "generate.prompt",
        ),
        (
            {"prompt": ONLY_AGAIN},
            grpc.StatusCode.INVALID_ARGUMENT,
            "generate.prompt: synthetic/1 must contain the table [variants.sentence]",
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
