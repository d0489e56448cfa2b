"""Answer the HTTP posts that RL frameworks (OpenRLHF, slime, NeMo Gym) send to a reward server.

The functions turn a post's JSON into a reply, and need no web framework:

```python
reply = await answer_openrlhf(scorer, body)  # reply.status, reply.headers, reply.body
```
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Any, Final, TypeVar

from gradewire.errors import GradewireError, InvalidRequest, TransportError
from gradewire.results import Status
from gradewire.rewards.answer import completion_in, last_question, without_end
from gradewire.rewards.framework_settings import reference_name
from gradewire.rewards.reward import Reward, RewardError, RewardSample, as_references
from gradewire.rewards.scorer import RewardScorer

T = TypeVar("T")

# Frameworks retry after a status of 500 or more; slime retries after every status except 200.
_UNAVAILABLE = 503
_UNPROCESSABLE = 422
_BAD_REQUEST = 400
_BAD_GATEWAY = 502

_TASK = "_ng_task_index"
_MOST_REWARD = 1e100  # means and deviations of larger rewards overflow

# Limits on the number and length of field names in an error message.
_MOST_LISTED = 30
_MOST_CHARACTERS = 80
# NeMo Gym's names for types of failures, and ours for samples without a reward that did not fail.
_KINDS = {
    Status.OK: "gradewire:uncertain",
    Status.EMPTY_PREDICTION: "gradewire:no_answer",
    Status.TIMEOUT: "transport_timeout",
    Status.UNAVAILABLE: "transport_unreachable",
    Status.UNPARSABLE: "judge_unparseable",
}


@dataclass(frozen=True, slots=True)
class PostReply:
    """The reply to a post.

    Attributes:
        body: Value to serialize as JSON.
        status: HTTP status.
        headers: Extra HTTP headers.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def no_reward(rewards: Sequence[Reward]) -> PostReply | None:
    """Return an error reply if a sample has no reward, or None if all samples have a reward.

    The framework would train on any number, so the reply contains no number. The status is 503 if a retry may help, and
    422 otherwise.
    """
    missing = [reward for reward in rewards if reward.value is None]
    if not missing:
        return None
    may_pass = all(reward.status.may_pass for reward in missing)
    problem = _problem(
        _UNAVAILABLE if may_pass else _UNPROCESSABLE,
        f"{len(missing)} of {len(rewards)} samples have no reward: {_reason(missing[0])}",
    )
    problem["rewards"] = [reward.to_info() for reward in rewards]
    return PostReply(problem, problem["status"], {"Retry-After": "1"} if may_pass else {})


def _reason(reward: Reward) -> str:
    return reward.reason if reward.scored else f"{reward.status}: {reward.reason}"


def _failed(error: GradewireError) -> PostReply:
    """Return the reply to a failed call: 400 if the post is wrong, 503 if a retry may help, and 502 otherwise."""
    status = _BAD_GATEWAY
    if isinstance(error, InvalidRequest):
        status = _BAD_REQUEST
    elif isinstance(error, RewardError) or (isinstance(error, TransportError) and error.may_pass):
        status = _UNAVAILABLE
    return PostReply(_problem(status, str(error)), status, {"Retry-After": "1"} if status == _UNAVAILABLE else {})


def _typed(value: object, kind: type[T], at: str, wanted: str) -> T:
    """Return a posted value if its type is right; otherwise, raise InvalidRequest and say what to post.

    Without this check, null or a list would be converted to text, graded as an answer, and get a reward of 0.
    """
    if not isinstance(value, kind):
        raise InvalidRequest(f"{at} is a {type(value).__name__}: post {wanted}")
    return value


def _fields_of(body: object, *needed: str) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = body if isinstance(body, Mapping) else _typed(body, dict, "the body", "a JSON object")
    for name in needed:
        if name not in fields:
            names = sorted(str(name)[:_MOST_CHARACTERS] for name in fields)
            there = ", ".join(names[:_MOST_LISTED]) or "nothing"
            raise InvalidRequest(f"{name} is missing from the body (found: {there})")
    return fields


def _question_of(prompt: object, at: str) -> str:
    """Return the question in a prompt. Raise InvalidRequest unless the prompt is a string or a list of messages."""
    if isinstance(prompt, list) and all(isinstance(turn, Mapping) for turn in prompt):
        return last_question(prompt)
    return _typed(prompt, str, at, "a string, or a list of messages")


def _problem(status: int, detail: str) -> dict[str, Any]:
    titles = {400: "Bad Request", 422: "No reward", 502: "Bad Gateway", 503: "No reward now"}
    return {"type": "about:blank", "title": titles[status], "status": status, "detail": detail}


def openrlhf_samples(body: Any) -> list[RewardSample]:
    """Return the samples in a post from OpenRLHF. Each query contains the prompt and the model's answer.

    Raises:
        InvalidRequest: A field is missing, the fields differ in length, or a query does not contain its prompt.
    """
    fields = _fields_of(body, "query", "prompts", "labels")
    queries, prompts, labels = (_typed(fields[name], list, name, "a list") for name in ("query", "prompts", "labels"))
    if not len(queries) == len(prompts) == len(labels):
        raise InvalidRequest(f"query, prompts and labels have {len(queries)}, {len(prompts)} and {len(labels)} entries")
    samples = []
    for index, (posted, given, label) in enumerate(zip(queries, prompts, labels, strict=True)):
        query, prompt = (
            _typed(text, str, f"{name}[{index}]", "a string") for name, text in (("query", posted), ("prompts", given))
        )
        completion = completion_in(query, prompt)
        if completion is None:
            raise InvalidRequest(f"query[{index}] does not contain prompts[{index}], so the completion is unknown")
        samples.append(RewardSample(completion, as_references(label), prompt))
    return samples


def openrlhf_reply(rewards: Sequence[Reward]) -> dict[str, Any]:
    """Return the reply that OpenRLHF expects. OpenRLHF logs only the numbers in `extra_logs`."""
    values = [reward.value for reward in rewards]
    return {
        "rewards": values,
        "scores": values,
        "extra_logs": {"gradewire_scored": [float(reward.scored) for reward in rewards]},
        "gradewire": [reward.to_info() for reward in rewards],
    }


def slime_sample(body: Any) -> RewardSample:
    """Return the sample in a post from slime.

    Raises:
        InvalidRequest: A field is missing, or the response is not a string.
    """
    fields = _fields_of(body, "prompt", "response", "label")
    return RewardSample(
        without_end(_typed(fields["response"], str, "response", "a string")),
        as_references(fields["label"]),
        _question_of(fields["prompt"], "prompt"),
    )


def slime_reply(reward: Reward, reward_key: str | None = None) -> Any:
    """Return the reply that slime expects: the reward, or a mapping with the reward under `reward_key`."""
    return reward.value if reward_key is None else {reward_key: reward.value, **reward.to_info()}


def nemo_gym_sample(body: Any, reference_column: str = "") -> RewardSample:
    """Return the sample in a post from NeMo Gym to `/verify`.

    Args:
        body: The post's parsed JSON.
        reference_column: Field of the right answers; if empty, the field with a usual name.

    Raises:
        InvalidRequest: A field is missing or has a wrong type.
    """
    fields = _fields_of(body, "response", "responses_create_params")
    response, asked = fields["response"], fields["responses_create_params"]
    if not isinstance(response, Mapping) or not isinstance(response.get("output"), list):
        raise InvalidRequest("response.output is missing: post an answer of the Responses API")
    metadata = fields.get("verifier_metadata")
    columns = {**(metadata if isinstance(metadata, Mapping) else {}), **fields}
    references = columns[reference_name(columns, reference_column)]
    prompt = asked.get("input", "") if isinstance(asked, Mapping) else ""
    # Skip entries that are not messages, such as tool calls.
    turns = [turn for turn in prompt if _is_turn(turn)] if isinstance(prompt, list) else prompt
    question = _question_of(turns, "responses_create_params.input")
    completion = [turn for turn in response["output"] if _is_turn(turn)]
    return RewardSample(completion, as_references(references), question, columns=tuple(map(str, columns)))


def nemo_gym_reply(fields: Mapping[str, Any], reward: Reward) -> dict[str, Any]:
    """Return the reply that NeMo Gym expects from `/verify`: the request's fields, with the reward or the mask."""
    reply = {**fields, "extracted_answer": reward.answer, "gradewire": reward.to_info()}
    if reward.value is not None:
        return {**reply, "reward": reward.value}
    config = fields.get("instance_config")
    # Older versions of NeMo RL read the mask here.
    masked = {**(config if isinstance(config, Mapping) else {}), "mask_sample": True}
    return {
        **reply,
        "reward": 0.0,
        "mask_sample": True,
        "failure_kind": _KINDS.get(reward.status, "verifier_error"),
        "failure_reason": _reason(reward),
        "instance_config": masked,
    }


@dataclass(frozen=True, slots=True)
class RewardForm:
    """The format of one framework's posts.

    Attributes:
        read: A function that takes a post and the scorer's `reference_column`. It returns the post's samples, or raises
            InvalidRequest and names the wrong field.
        write: A function that takes a post and its samples' rewards, and returns the reply.
    """

    read: Callable[[Any, str], Sequence[RewardSample]]
    write: Callable[[Any, Sequence[Reward]], PostReply]

    async def answer(self, scorer: RewardScorer, body: Any) -> PostReply:
        """Answer a post. Samples of simultaneous posts are scored in one batch."""
        try:
            rewards = await scorer.ascore(self.read(body, scorer.reference_column))
        except GradewireError as error:
            return _failed(error)
        return self.write(body, rewards)


OPENRLHF: Final = RewardForm(
    lambda body, _: openrlhf_samples(body), lambda _, rewards: no_reward(rewards) or PostReply(openrlhf_reply(rewards))
)
NEMO_GYM: Final = RewardForm(
    lambda body, column: [nemo_gym_sample(body, column)],
    lambda body, rewards: PostReply(nemo_gym_reply(body, rewards[0])),
)


def slime_form(reward_key: str | None = None) -> RewardForm:
    """Return the format of slime's posts; see `answer_slime` for `reward_key`."""
    return RewardForm(
        lambda body, _: [slime_sample(body)],
        lambda _, rewards: no_reward(rewards) or PostReply(slime_reply(rewards[0], reward_key)),
    )


async def answer_openrlhf(scorer: RewardScorer, body: Any) -> PostReply:
    """Answer a post from OpenRLHF 0.11 (`--reward.remote_url`)."""
    return await OPENRLHF.answer(scorer, body)


async def answer_slime(scorer: RewardScorer, body: Any, reward_key: str | None = None) -> PostReply:
    """Answer a post from slime (`--rm-type remote_rm`).

    slime tries ten times, then stops the run. `gradewire.rewards.slime`, which runs in slime's process, can leave
    samples out instead of stopping the run.

    Args:
        scorer: The scorer that computes the reward.
        body: The post's parsed JSON.
        reward_key: Key of the reward in the reply, a mapping that also contains status, reason, answer, line and
            digest. None means that the reply is only the reward's number.
    """
    return await slime_form(reward_key).answer(scorer, body)


async def verify(scorer: RewardScorer, body: Any) -> PostReply:
    """Answer a post from NeMo Gym 0.7 to `/verify`. The reply contains the request's fields and the reward.

    Replies to Gym must contain a number. A sample without a reward therefore gets 0 and `mask_sample`, so that Gym
    leaves the sample out. The reply also contains the reason.
    """
    return await NEMO_GYM.answer(scorer, body)


def seed_session(body: Any) -> PostReply:
    """Answer a post to `/seed_session` by confirming the requested id."""
    fields = _fields_of(body)
    session = fields.get("resources_session_id")
    return PostReply({} if session is None else {"resources_session_id": session})


def aggregate_metrics(body: Any) -> PostReply:
    """Answer a post to `/aggregate_metrics` with reward statistics by task and overall, without masked samples.

    Raises:
        InvalidRequest: A field is missing or not a number.
    """
    posted = _fields_of(body, "verify_responses")["verify_responses"]
    responses = _typed(posted, list, "verify_responses", "a list")
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
    response = _typed(response, dict, at, "the reply of /verify")
    task, reward = response.get(_TASK, 0), response.get("reward")
    if type(task) is not int:  # excludes bool
        raise InvalidRequest(f"{at}.{_TASK} is a {type(task).__name__}: post a number")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not abs(reward) < _MOST_REWARD:
        raise InvalidRequest(f"{at}.reward is not a finite number: post the reward of /verify")
    return task, float(reward)


def _is_turn(turn: object) -> bool:
    return isinstance(turn, Mapping) and "content" in turn and turn.get("type", "message") == "message"


def _reward_statistics(rewards: Sequence[float]) -> dict[str, float]:
    if not rewards:
        return {}
    least, most = min(rewards), max(rewards)
    return {
        "mean/reward": fmean(rewards),
        "min/reward": least,
        "max/reward": most,
        "std/reward": pstdev(rewards) if least < most else 0.0,  # pstdev is slow, because it uses fractions
    }
