"""Reward posts to a gateway on a real socket, in front of a real server: rewards, refusals, policies, gathering."""

import asyncio
import base64
import json
from typing import Any

import httpx2
from tests.gateway.conftest import EXACT, gym_post, openrlhf_post, slime_post
from tests.support.servers.gateway import SCORE, RunningGateway, gateway_over
from tests.support.servers.wire import Wire, until, wire_server

from gradewire_gateway.rewards import AGGREGATE_PATH, OPENRLHF_PATH, SEED_PATH, SLIME_PATH, VERIFY_PATH
from gradewire_gateway.settings import RewardPostSettings


def problem(reply: httpx2.Response) -> tuple[int, str, str]:
    """Status, code and detail of a problem, whose form is checked."""
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json()
    assert (body["status"], body["requestId"]) == (reply.status_code, reply.headers["x-request-id"])
    return reply.status_code, body["code"], body["detail"]


async def test_each_framework_gets_the_reward_in_its_own_form(posts: RunningGateway) -> None:
    openrlhf = (await posts.post(OPENRLHF_PATH, openrlhf_post("<think>a dog?</think>the cat</s>", "a dog"))).json()
    assert (openrlhf["rewards"], openrlhf["scores"]) == ([1.0, 0.0], [1.0, 0.0])
    assert openrlhf["gradewire"][0]["gradewire_line"].startswith("exact_match/")
    assert (await posts.post(SLIME_PATH, slime_post())).json() == 1.0
    verified = (await posts.post(VERIFY_PATH, gym_post(r"So \boxed{the cat}", uuid="7"))).json()
    assert (verified["reward"], verified["uuid"], verified["extracted_answer"]) == (1.0, "7", "the cat")
    assert (await posts.post(SEED_PATH, {"resources_session_id": "s"})).json() == {"resources_session_id": "s"}
    metrics = (await posts.post(AGGREGATE_PATH, {"verify_responses": [verified, {"reward": 0}]})).json()
    assert metrics["key_metrics"] == {"mean/reward": 0.5}


async def test_a_sample_without_a_reward_is_no_number(posts: RunningGateway) -> None:
    reply = await posts.post(OPENRLHF_PATH, openrlhf_post("the cat", "<think>it could be"))
    assert problem(reply)[:2] == (422, "failed_precondition")
    assert [told["gradewire_status"] for told in reply.json()["rewards"]] == ["OK", "EMPTY_PREDICTION"]
    assert problem(await posts.post(SLIME_PATH, slime_post(label=None)))[0] == 422
    masked = (await posts.post(VERIFY_PATH, gym_post("<think>it could be"))).json()
    assert (masked["mask_sample"], masked["failure_kind"]) == (True, "gradewire:no_answer")


SETTINGS: list[tuple[dict[str, Any], dict[str, Any], float]] = [
    ({"empty_value": -0.5}, slime_post(""), -0.5),
    ({"policy": "value", "value": -1.0}, slime_post(label=None), -1.0),
    ({"extraction": "boxed", "empty_value": 0.25}, slime_post("the cat"), 0.25),
    ({"reads": "correct", "slime_key": "score"}, slime_post("the cat"), 1.0),
]


async def test_settings_say_what_a_reward_is(wire: Wire) -> None:
    for settings, body, expected in SETTINGS:
        rewards = RewardPostSettings(metric="exact_match", **settings)
        async with gateway_over(f"127.0.0.1:{wire.port}", rewards=rewards) as gateway:
            found = (await gateway.post(SLIME_PATH, body)).json()
        assert (found["score"] if rewards.slime_key else found) == expected, settings


async def test_single_posts_share_calls_and_a_bad_one_fails_alone(wire: Wire, posts: RunningGateway) -> None:
    bodies = [slime_post("\ud800" if index == 7 else f"the cat{index % 2 * 's'}") for index in range(60)]
    replies = await asyncio.gather(*(posts.post(SLIME_PATH, json.dumps(body)) for body in bodies))
    assert [reply.status_code for reply in replies] == [422 if index == 7 else 200 for index in range(60)]
    assert "prediction" in replies[7].json()["detail"]
    values = [reply.json() for index, reply in enumerate(replies) if index != 7]
    assert values == [float(index % 2 == 0) for index in range(60) if index != 7]
    streams = [line for line in await wire.log_lines() if line["method"].endswith("ScoreStream")]
    assert len(streams) < 20
    assert all(line["request_id"].startswith("rewards-") for line in streams)


async def test_tokens_are_the_server_s_and_never_share_a_call() -> None:
    async with wire_server(tokens=("one", "two")) as wire, gateway_over(f"127.0.0.1:{wire.port}", rewards=EXACT) as at:
        basic = base64.b64encode(b"any:two").decode()
        given = ["Bearer one", f"Basic {basic}", "Bearer wrong", "Basic ?", ""]
        replies = await asyncio.gather(
            *(at.post(SLIME_PATH, slime_post(), authorization=given[index % 5]) for index in range(25))
        )
        assert [reply.status_code for reply in replies] == [200, 200, 401, 401, 401] * 5
        assert replies[2].headers["www-authenticate"] == "Bearer"
        assert problem(replies[2])[1] == "unauthenticated"
        codes = [line["code"] for line in await wire.log_lines() if line["method"].endswith("ScoreStream")]
        assert codes.count("OK") >= 2, "one call at the least for each token"


UNREADABLE: list[tuple[str, dict[str, Any], str]] = [
    (OPENRLHF_PATH, {"query": ["q"], "prompts": ["p"]}, "labels is missing"),
    (OPENRLHF_PATH, openrlhf_post("x") | {"prompts": 7}, "prompts is a int"),
    (SLIME_PATH, {"prompt": "\ud800", "response": "r", "\ud800": 1}, "label is missing"),
    (SLIME_PATH, slime_post() | {"prompt": {"role": []}}, "prompt is a dict"),
    (SLIME_PATH, slime_post() | {"response": None}, "response is a NoneType: post a string"),
    (VERIFY_PATH, {}, "response is missing"),
    (VERIFY_PATH, gym_post() | {"responses_create_params": {"input": 3}}, "responses_create_params.input is a int"),
    (AGGREGATE_PATH, {"verify_responses": [{"reward": True}]}, "verify_responses[0].reward"),
    (AGGREGATE_PATH, {"verify_responses": [{"reward": 1, "_ng_task_index": []}]}, "_ng_task_index"),
    (AGGREGATE_PATH, {"verify_responses": [7]}, "verify_responses[0] is a int"),
]


async def test_a_post_that_cannot_be_read_is_told_why(posts: RunningGateway) -> None:
    for path, body, named in UNREADABLE:
        status, code, detail = problem(await posts.post(path, json.dumps(body)))
        assert (status, code, named in detail) == (400, "invalid_argument", True), detail


async def test_a_post_of_too_many_samples_is_refused(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", rewards=EXACT) as gateway:
        assert (await gateway.post(OPENRLHF_PATH, openrlhf_post(*["the cat"] * 4096))).status_code == 200
        refused = problem(await gateway.post(OPENRLHF_PATH, openrlhf_post(*[""] * 4097)))
        assert refused == (413, "resource_exhausted", "the post has 4097 samples; post at most 4096 at a time")


async def test_a_field_under_both_of_its_names_is_an_error(posts: RunningGateway) -> None:
    status, code, detail = problem(await posts.post(SCORE, {"referenceSet": "s", "reference_set": "t"}))
    assert (status, code) == (400, "invalid_argument")
    assert detail == "reference_set: is set twice, also under the name referenceSet"


async def test_what_is_missing_among_many_names_is_told_shortly(posts: RunningGateway) -> None:
    status, _, detail = problem(await posts.post(SLIME_PATH, {f"{'x' * 200}{number}": 0 for number in range(200)}))
    assert status == 400
    assert detail.startswith("prompt is missing from the body")
    assert len(detail) < 3_000


HOSTILE: list[tuple[bytes | str, int]] = [
    ("{", 400),
    ("[]", 400),
    ('{"prompt": 1, "prompt": 2}', 400),
    ("[" * 90_000, 400),
    ('{"response": {"output": []}, "responses_create_params": {}, "answer": "x", "z": 1e999}', 400),
    (b"\xff", 400),
    (" " * 100_001, 413),
]


async def test_hostile_bodies_are_refused(posts: RunningGateway) -> None:
    reply = await posts.client.post(SLIME_PATH, content="{}", headers={"content-type": "text/plain"})
    assert problem(reply)[0] == 415, "what a form of a browser sends"
    for body, status in HOSTILE:
        assert problem(await posts.post(VERIFY_PATH, body))[0] == status
    assert (await posts.post(SLIME_PATH, slime_post())).status_code == 200


async def test_the_header_s_deadline_is_the_post_s_and_its_server_is_let_go(wire: Wire) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    async with gateway_over(f"127.0.0.1:{wire.port}", rewards=RewardPostSettings(metric="sbert")) as gateway:
        reply = await gateway.post(SLIME_PATH, slime_post(), connect_timeout_ms="300")
        assert problem(reply)[:2] == (503, "unavailable")
        assert reply.headers["retry-after"] == "1"
        await asyncio.wait_for(wire.calls.idle(), 10)
    gate.set_result(None)


async def test_a_caller_that_goes_away_ends_its_call(wire: Wire) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    async with gateway_over(f"127.0.0.1:{wire.port}", rewards=RewardPostSettings(metric="sbert")) as gateway:
        calling = asyncio.create_task(gateway.post(SLIME_PATH, slime_post()))
        await until(lambda: any(kind == "embed" for kind, *_ in wire.engine.calls))
        calling.cancel()
        await asyncio.wait((calling,))
        await asyncio.wait_for(wire.calls.idle(), 10)
    gate.set_result(None)
    assert [line["code"] for line in await wire.log_lines()] == ["CANCELLED"]


async def test_a_server_that_is_away_is_told_without_its_address() -> None:
    async with gateway_over("127.0.0.1:1", rewards=RewardPostSettings(deadline_s=0.3)) as gateway:
        reply = await gateway.post(SLIME_PATH, slime_post())
        assert problem(reply)[:2] == (503, "unavailable")
        assert "127.0.0.1" not in reply.text
        masked = (await gateway.post(VERIFY_PATH, gym_post())).json()
        assert (masked["mask_sample"], masked["failure_kind"]) == (True, "transport_unreachable")


async def test_the_policy_raise_is_503_for_every_framework(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", rewards=RewardPostSettings(policy="raise")) as gateway:
        for path, body in ((SLIME_PATH, slime_post(label=None)), (VERIFY_PATH, gym_post() | {"expected_answer": None})):
            assert problem(await gateway.post(path, body))[:2] == (503, "unavailable")


async def test_a_metric_without_a_verdict_is_said_to_be_a_setting(wire: Wire) -> None:
    async with gateway_over(
        f"127.0.0.1:{wire.port}", rewards=RewardPostSettings(metric="sbert", reads="correct")
    ) as gateway:
        status, code, detail = problem(await gateway.post(SLIME_PATH, slime_post()))
        assert (status, code, "reads='correct'" in detail) == (400, "failed_precondition", True)


async def test_figures_count_rewards_by_status(posts: RunningGateway) -> None:
    await posts.post(OPENRLHF_PATH, openrlhf_post("the cat", "a dog"))
    await posts.post(VERIFY_PATH, gym_post(""))
    text = (await posts.client.get("/metrics")).text
    assert f'gradewire_gateway_rewards_total{{route="{OPENRLHF_PATH}",status="OK"}} 2.0' in text
    assert f'gradewire_gateway_rewards_total{{route="{VERIFY_PATH}",status="EMPTY_PREDICTION"}} 1.0' in text
    assert f'gradewire_gateway_requests_total{{route="{VERIFY_PATH}",status="200"}} 1.0' in text
