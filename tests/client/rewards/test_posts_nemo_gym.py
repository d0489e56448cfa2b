"""NeMo Gym's posts."""

from typing import Any

import pytest

from gradewire.rewards import FailureHandling, RewardScorer
from gradewire.rewards.posts import aggregate_metrics, answer_slime, seed_session, verify
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2, types_pb2


def post(text: str) -> dict[str, Any]:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "What sleeps?"}]},
        "response": {"id": "r", "output": [{"type": "reasoning", "summary": [], "content": None}, message]},
        "expected_answer": "a cat",
        "uuid": "7",
    }


async def test_a_verified_response_is_the_request_with_its_reward(scorer: RewardScorer) -> None:
    body = post(r"So \boxed{a cat}")
    reply = await verify(scorer, body)
    assert reply.status == 200
    assert {**reply.body, **body} == reply.body
    assert (reply.body["reward"], reply.body["extracted_answer"]) == (1.0, "a cat")
    assert "mask_sample" not in reply.body


@pytest.mark.parametrize(
    ("text", "kind"),
    [("a dog", "transport_timeout"), ("<think>hm", "gradewire:no_answer"), ("", "gradewire:no_answer")],
)
async def test_without_a_reward_the_sample_is_masked(scorer: RewardScorer, text: str, kind: str) -> None:
    body = (await verify(scorer, post(text))).body
    assert (body["mask_sample"], body["instance_config"]["mask_sample"], body["failure_kind"]) == (True, True, kind)
    assert body["failure_reason"].startswith(body["gradewire"]["gradewire_status"])


async def test_an_uncertain_sample_may_be_masked_with_its_reason() -> None:
    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = echo_scores(request, score=lambda _: 0.9)
        for item in reply.items:
            item.results[0].warnings.append(types_pb2.WARNING_UNCERTAIN)
        return reply

    async with RewardScorer(
        StubTransport(answer), "correctness", failures=FailureHandling(uncertain="exclude")
    ) as scorer:
        body = (await verify(scorer, post("maybe a cat"))).body
        slime = await answer_slime(scorer, {"prompt": "What?", "response": "maybe a cat", "label": "a cat"})
    assert (body["mask_sample"], body["failure_kind"]) == (True, "gradewire:uncertain")
    assert body["failure_reason"] == "UNCERTAIN (score 0.9): left out"
    assert (slime.status, "1 of 1 samples have no reward: UNCERTAIN" in slime.body["detail"]) == (422, True)


async def test_of_two_fields_the_setting_names_the_right_answers() -> None:
    body = {**post("a cat"), "solution": "a dog", "answer": "a cat"}
    del body["expected_answer"]
    exact = StubTransport(
        lambda request: echo_scores(request, score=lambda item: float(item.prediction in item.references))
    )
    async with RewardScorer(exact, "exact_match") as scorer:
        refused = await verify(scorer, body)
    assert (refused.status, "the columns answer and solution could both" in refused.body["detail"]) == (400, True)
    for column, reward in (("answer", 1.0), ("solution", 0.0)):
        async with RewardScorer(exact, "exact_match", reference_column=column) as scorer:
            assert (await verify(scorer, body)).body["reward"] == reward


async def test_right_answers_may_stand_in_the_verifiers_metadata(scorer: RewardScorer) -> None:
    body = post("a cat")
    body["verifier_metadata"] = {"expected_answer": body.pop("expected_answer")}
    assert (await verify(scorer, body)).body["reward"] == 1.0


async def test_wrong_posts_are_told_what_is_wrong(scorer: RewardScorer) -> None:
    assert "response is missing" in (await verify(scorer, {})).body["detail"]
    assert "response.output is missing" in (await verify(scorer, {**post("x"), "response": {}})).body["detail"]


def test_sessions_are_confirmed() -> None:
    assert seed_session({}).body == {}
    assert seed_session({"resources_session_id": "s", "task_id": 1}).body == {"resources_session_id": "s"}


def test_masked_samples_enter_no_metric() -> None:
    responses = [
        {"_ng_task_index": 0, "reward": 1.0},
        {"_ng_task_index": 0, "reward": 0.0, "mask_sample": True},
        {"_ng_task_index": 1, "reward": 0.5},
        {"_ng_task_index": 2, "reward": 0.0, "mask_sample": True},
    ]
    body = aggregate_metrics({"verify_responses": responses}).body
    assert body["key_metrics"] == {"mean/reward": 0.75}
    assert [group["_ng_task_index"] for group in body["group_level_metrics"]] == [0, 1]
    assert body["group_level_metrics"][0]["mean/reward"] == 1.0
    assert body["agent_metrics"]["coverage/masked_rollouts"] == 2
    assert aggregate_metrics({"verify_responses": []}).body["agent_metrics"] == {}
