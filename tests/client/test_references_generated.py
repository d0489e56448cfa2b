"""Synthetic answers written by a judge, seen from the client."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.judged_transport import JudgedTransport
from tests.support.servers.handlers import context_over

import gradewire
from gradewire import Client, PrepareProgress, Status, SyntheticGeneration
from gradewire_proto.v1 import references_pb2
from gradewire_proto.wire_rules import name_set
from gradewire_server.domain.items import ReferenceEntry
from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.requests.prepare import plan_generation
from gradewire_server.settings.limits import Limits

PROMPT = PACKAGE_PROMPTS.find("synthetic", "")
_ANSWER = re.compile(r"Answer: (.*)")


def write(need: Generate) -> Generated:
    """A good sentence, but for references that begin with "odd"."""
    found = _ANSWER.search(need.prompt.lead)
    assert found is not None
    text = "Who knows?" if found[1].startswith("odd") else f"It is surely {found[1]}."
    return Generated(text, complete=True, prompt_tokens=9, generated_tokens=4)


@pytest.fixture
def transport() -> JudgedTransport:
    return JudgedTransport(write, limits=Limits(max_items_per_request=8))


@pytest.fixture
def client(transport: JudgedTransport) -> Iterator[Client]:
    with Client(transport=transport, deadline_s=20) as client:
        yield client


def entries(count: int, *, prefix: str = "r") -> list[dict[str, Any]]:
    return [{"question": f"q{index}", "references": [f"{prefix}{index}"]} for index in range(count)]


def test_written_answers_come_back_and_are_used(client: Client, transport: JudgedTransport) -> None:
    steps: list[PrepareProgress] = []
    given = [*entries(18), {"question": "mine", "references": ["x"], "synthetic_answers": ["That is x."]}]
    report = client.prepare(given, generate=True, progress=steps.append)
    assert report.failures == report.fallbacks == ()
    assert (report.synthetic_answers_stored, report.synthetic_answers_generated) == (19, 18)
    assert report.synthetic_answers == {
        **{index: (f"It is surely r{index}.",) for index in range(18)},
        18: ("That is x.",),
    }
    assert report.generation is not None
    assert (report.generation.model, report.generation.prompt) == ("scripted", "synthetic/1")
    assert report.provenance["smile"].reference_set == report.reference_set
    assert [step.entries_done for step in steps] == sorted(step.entries_done for step in steps)
    assert (steps[-1].entries_done, steps[-1].entries_total, steps[-1].synthetic_answers_generated) == (19, 19, 18)
    answers = [{**given[3], "prediction": "It may be r3."}]
    scored = client.score(answers, synthetic="prepared", reference_set=report.reference_set)
    assert scored[0].scores["smile"].status is Status.OK
    again = client.prepare(given, generate=True)
    assert (again.reference_set, again.synthetic_answers) == (report.reference_set, report.synthetic_answers)
    assert (again.synthetic_answers_generated, again.cache_hits.computed) == (0, 0)
    assert len(transport.engine.script.asked) == 18


def test_all_requests_of_a_call_hold_the_server_to_one_judge_and_prompt(
    client: Client, transport: JudgedTransport
) -> None:
    client.prepare(entries(20), generate="scripted")
    first, *rest = transport.requests
    assert (first.generate.model, first.generate.prompt, len(first.entries)) == ("scripted", "", 0)
    digest = transport.engine.digests["scripted"]
    assert len(rest) == 3
    assert {request.generate.model for request in rest} == {f"scripted@{digest}"}
    assert {request.generate.prompt for request in rest} == {f"synthetic/1@{PROMPT.digest}"}
    assert len({request.reference_set for request in rest}) == 1


def test_a_prompt_of_ones_own_goes_along_and_makes_another_set(client: Client, transport: JudgedTransport) -> None:
    mine = PROMPT.text.replace('name = "synthetic"', 'name = "mine"', 1)
    one = client.prepare(entries(2), generate=SyntheticGeneration(prompt=mine))
    assert one.generation is not None
    assert one.generation.prompt == "mine/1"
    assert {request.generate.prompt for request in transport.requests} == {mine}
    named = client.prepare(entries(2), generate=SyntheticGeneration(judge="scripted", prompt="synthetic/1"))
    default = client.prepare(entries(2), generate=True)
    assert named.reference_set == default.reference_set != one.reference_set
    assert client.prepare(entries(2)).reference_set not in {default.reference_set, one.reference_set}


def test_fallbacks_are_no_failures(client: Client) -> None:
    given = [*entries(2), *entries(2, prefix="odd"), {"question": "", "references": ["a"]}]
    report = client.prepare(given, generate=True)
    assert [(each.index, each.status) for each in report.failures] == [(4, Status.INVALID_INPUT)]
    assert [(each.index, each.status) for each in report.fallbacks] == [(2, Status.UNPARSABLE), (3, Status.UNPARSABLE)]
    assert report.synthetic_answers[2] == ("odd0",)
    assert report.synthetic_answers[4] == (None,)


def test_a_break_is_taken_up_where_it_was(client: Client, transport: JudgedTransport) -> None:
    breaks = iter((2, 3))
    seen = {"until": next(breaks), "messages": 0}

    def trouble(step: references_pb2.PrepareProgress) -> None:
        seen["messages"] += bool(step.entries_total)
        if seen["messages"] == seen["until"]:
            seen.update(until=next(breaks, -1), messages=0)
            raise gradewire.ServerUnreachable("gone", retry_after_s=0.001)

    transport.trouble = trouble
    given = [{"question": f"q{index}", "references": [f"r{index}-{n}" for n in range(9)]} for index in range(4)]
    report = client.prepare(given, generate=True)
    assert report.failures == ()
    assert report.synthetic_answers_stored == 36
    assert len(report.synthetic_answers) == 4
    # The message that was lost told of some that nobody counts now.
    assert 0 < report.synthetic_answers_generated < 36
    assert len(transport.engine.prepared) == 36
    assert len(transport.engine.script.asked) == 36, "what was written is not written again"


@pytest.mark.parametrize(
    ("generate", "says"),
    [
        (3, "generate is a int"),
        (None, "generate is a NoneType"),
        ("\ud800", "generate.judge"),
        (SyntheticGeneration(judge=None), "generate.judge is None"),  # type: ignore[arg-type]
        (SyntheticGeneration(prompt=7), "generate.prompt is a int"),  # type: ignore[arg-type]
    ],
)
def test_wrong_wishes_are_refused_at_once(client: Client, transport: JudgedTransport, generate: Any, says: str) -> None:
    with pytest.raises(gradewire.InvalidRequest, match=says):
        client.prepare(entries(1), generate=generate)
    assert not transport.requests


async def test_client_and_server_name_a_set_alike(client: Client, transport: JudgedTransport) -> None:
    rows = [
        {"question": "cafe\u0301?", "references": ["a", "b"]},
        {"references": ["c"], "synthetic_answers": ["It is c."]},
    ]
    read = [
        ReferenceEntry("caf\u00e9?", ("a", "b")),
        ReferenceEntry("", ("c",), ("It is c.",)),
    ]
    wanted = references_pb2.PrepareRequest(generate=references_pb2.SyntheticGeneration())
    plan = await plan_generation(context_over(transport.engine), wanted)
    assert plan is not None
    assert client.prepare(rows).reference_set == name_set(read)
    assert client.prepare(rows, generate=True).reference_set == name_set(read, plan.digests) != name_set(read)
