"""verifiers' own tasks score rollouts with rewards of a real server."""

from typing import Any

import pytest
import verifiers.v1 as vf
from tests.client.small_server import SmallServer
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.configs.task import RewardFunctionConfig, TaskConfig
from verifiers.v1.errors import TaskError
from verifiers.v1.trace import AgentInfo, Trace, TraceTask

from gradewire.rewards.verifiers import GradewireJudge, GradewireJudgeConfig

PLUGGED = TaskConfig(rewards={"gradewire": RewardFunctionConfig(fn="gradewire.rewards.verifiers:reward", weight=0.5)})


class Data(vf.TaskData):
    answer: str | list[str]


class PluggedTask(vf.Task[Data, vf.State, TaskConfig]):
    pass


class JudgingTask(vf.Task[Data, vf.State, TaskConfig]):
    @vf.reward
    async def right(self, trace: Trace) -> float:
        judge = GradewireJudge(GradewireJudgeConfig(settings={"metric": "exact_match"}, question_field="name"))
        return await judge.score(self.data, trace)


@pytest.fixture(autouse=True)
def _address(small_server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_SERVER", small_server.address)


def rollout(task: vf.Task[Any, Any, Any], reply: str) -> Trace:
    return Trace(
        task=TraceTask(type=type(task).__name__, data=task.data),
        agent=AgentInfo(config=AgentConfig()),
        root_reply=reply,
    )


async def test_a_reward_function_is_plugged_by_configuration(small_server: SmallServer) -> None:
    seen: list[Any] = []
    small_server.script.score = lambda item: seen.append(item) or 0.25  # type: ignore[func-returns-value]
    task = PluggedTask(Data(prompt="What sleeps?", answer=["a cat", "cats"]), PLUGGED)
    trace = rollout(task, r"<think>hm</think> \boxed{a cat}")
    await task.score(trace)
    assert (trace.rewards["gradewire"].score, trace.rewards["gradewire"].value) == (0.25, 0.125)
    assert trace.info["gradewire"]["gradewire_line"] == "smile/1"
    (item,) = seen
    assert (item.prediction, item.question, list(item.references)) == ("a cat", "What sleeps?", ["a cat", "cats"])


async def test_a_task_asks_the_judge_itself(small_server: SmallServer) -> None:
    del small_server
    task = JudgingTask(Data(prompt="p", name="What sleeps?", answer="a cat"))
    right, wrong = rollout(task, "a cat"), rollout(task, "a dog")
    await task.score(right)
    await task.score(wrong)
    assert (right.rewards["right"].score, wrong.rewards["right"].score) == (1.0, 0.0)
    assert right.info["gradewire"]["gradewire_line"] == "exact_match/1?answer=whole"


@pytest.mark.parametrize("reply", ["", "<think>it could be"])
async def test_without_a_reward_the_rollout_fails_and_has_no_zero(reply: str) -> None:
    task = PluggedTask(Data(prompt="What sleeps?", answer="a cat"), PLUGGED)
    trace = rollout(task, reply)
    with pytest.raises(TaskError, match="RewardExcluded: no reward"):
        await task.score(trace)
    assert trace.rewards["gradewire"] is None
    assert trace.info["gradewire"]["gradewire_status"] == "EMPTY_PREDICTION"


async def test_a_field_that_is_not_there_is_named() -> None:
    task = JudgingTask(Data(prompt="p", answer="a cat"))
    judge = GradewireJudge(GradewireJudgeConfig(answer_field="gold"))
    with pytest.raises(ValueError, match="there is no column gold"):
        await judge.score(task.data, rollout(task, "a cat"))
