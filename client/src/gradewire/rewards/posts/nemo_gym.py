"""NeMo Gym's resources server: `/verify`, `/seed_session` and `/aggregate_metrics` (0.7)."""

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

from gradewire.errors import GradewireError, InvalidRequest
from gradewire.results import Status
from gradewire.rewards.posts.reply import PostReply, failed, fields_of, question_of
from gradewire.rewards.reward import Reward, RewardSample, as_references
from gradewire.rewards.scorer import RewardScorer
from gradewire.rewards.shared import reference_name

_TASK = "_ng_task_index"
_MOST_REWARD = 1e100  # means and deviations of larger ones overflow
# Gym's words for kinds of failures.
_KINDS = {
    Status.TIMEOUT: "transport_timeout",
    Status.UNAVAILABLE: "transport_unreachable",
    Status.UNPARSABLE: "judge_unparseable",
}


async def verify(scorer: RewardScorer, body: Any) -> PostReply:
    """Answers `/verify`: the request's fields, with the reward.

    Gym's replies always have a number. Where there is no reward it is the 0 that Gym's own servers send then, and
    `mask_sample` says that it is no measurement: Gym leaves the sample out, with kind and reason of the failure.
    """
    try:
        reward = await scorer.ascore_one(sample_of(body))
    except GradewireError as error:
        return failed(error)
    return PostReply(reply_of(fields_of(body), reward))


def sample_of(body: Any) -> RewardSample:
    """The sample of a `/verify`: the last message of the response, and the right answers beside it.

    Raises:
        InvalidRequest: A field is missing.
    """
    fields = fields_of(body, "response", "responses_create_params")
    response, asked = fields["response"], fields["responses_create_params"]
    if not isinstance(response, Mapping) or not isinstance(response.get("output"), list):
        raise InvalidRequest("response.output is missing: post an answer of the Responses API")
    metadata = fields.get("verifier_metadata")
    columns = {**(metadata if isinstance(metadata, Mapping) else {}), **fields}
    references = columns[reference_name(columns, None)]
    prompt = asked.get("input", "") if isinstance(asked, Mapping) else ""
    # Calls of tools and the like stand between the messages.
    turns = [turn for turn in prompt if _is_turn(turn)] if isinstance(prompt, list) else prompt
    question = question_of(turns, "responses_create_params.input")
    return RewardSample([turn for turn in response["output"] if _is_turn(turn)], as_references(references), question)


def reply_of(fields: Mapping[str, Any], reward: Reward) -> dict[str, Any]:
    """Gym's reply to `/verify`: the request's fields, with the reward or the mask."""
    reply = {**fields, "extracted_answer": reward.answer, "gradewire": reward.to_info()}
    if reward.value is not None:
        return {**reply, "reward": reward.value}
    config = fields.get("instance_config")
    # The second place is read by older versions of NeMo RL.
    masked = {**(config if isinstance(config, Mapping) else {}), "mask_sample": True}
    kind = "gradewire:no_answer" if reward.status is Status.EMPTY_PREDICTION else None
    return {
        **reply,
        "reward": 0.0,
        "mask_sample": True,
        "failure_kind": kind or _KINDS.get(reward.status, "verifier_error"),
        "failure_reason": f"{reward.status}: {reward.reason}",
        "instance_config": masked,
    }


def seed_session(body: Any) -> PostReply:
    """Answers `/seed_session`: nothing is kept between posts; an id that is asked for is confirmed."""
    fields = fields_of(body)
    session = fields.get("resources_session_id")
    return PostReply({} if session is None else {"resources_session_id": session})


def aggregate_metrics(body: Any) -> PostReply:
    """Answers `/aggregate_metrics`: the rewards of each task and of all, without masked samples.

    Raises:
        InvalidRequest: A field is missing, or no number where one is needed.
    """
    responses = fields_of(body, "verify_responses")["verify_responses"]
    if not isinstance(responses, list):
        raise InvalidRequest(f"verify_responses is a {type(responses).__name__}: post a list")
    tasks: dict[int, list[float]] = {}
    for index, response in enumerate(responses):
        task, reward = _rewarded(response, f"verify_responses[{index}]")
        rewards = tasks.setdefault(task, [])
        if not response.get("mask_sample"):
            rewards.append(reward)
    measured = [reward for rewards in tasks.values() for reward in rewards]
    overall = _reward_statistics(measured)
    if len(measured) < len(responses):
        overall["coverage/measured_rollouts"] = len(measured)
        overall["coverage/masked_rollouts"] = len(responses) - len(measured)
    return PostReply(
        {
            "group_level_metrics": [
                {_TASK: task, **_reward_statistics(rewards)} for task, rewards in tasks.items() if rewards
            ],
            "agent_metrics": overall,
            "key_metrics": {name: value for name, value in overall.items() if name.startswith("mean/")},
        }
    )


def _rewarded(response: Any, at: str) -> tuple[int, float]:
    """The task of a response, and its reward."""
    if not isinstance(response, Mapping):
        raise InvalidRequest(f"{at} is a {type(response).__name__}: post what /verify answered")
    task, reward = response.get(_TASK, 0), response.get("reward")
    if type(task) is not int:  # no bool
        raise InvalidRequest(f"{at}.{_TASK} is a {type(task).__name__}: post a number")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not abs(reward) < _MOST_REWARD:
        raise InvalidRequest(f"{at}.reward is no number that can be averaged")
    return task, float(reward)


def _is_turn(turn: object) -> bool:
    return isinstance(turn, Mapping) and "content" in turn and turn.get("type", "message") == "message"


def _reward_statistics(rewards: Sequence[float]) -> dict[str, float]:
    if not rewards:
        return {}
    return {
        "mean/reward": fmean(rewards),
        "min/reward": min(rewards),
        "max/reward": max(rewards),
        "std/reward": pstdev(rewards),
    }
