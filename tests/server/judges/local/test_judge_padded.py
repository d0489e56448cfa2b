"""An embedded judge on a graph for GPUs: on ONNX Runtime's CPU provider, and what is said where there is no GPU."""

import asyncio
from pathlib import Path

import pytest
from tests.models.judges.build.conftest import qwen2, tiny_judges
from tests.models.judges.build.tiny_judges import TinyJudge

from gradewire_models.judges.build.install import build_judge
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.local.judge import EmbeddedJudges
from gradewire_server.settings.judge import EmbeddedJudgeConfig

from .embedded_judge import Observed

__all__ = ["qwen2", "tiny_judges"]  # fixtures

NAME = "tiny-qwen2"
FIXED = (Turn(Role.SYSTEM, "Rate the answer from 1 to 3."),)


@pytest.fixture(scope="module")
def repository(qwen2: TinyJudge, tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("judges")
    build_judge(qwen2.judge, repository, forms=("int8", "fp16"), wheels=qwen2.wheels)
    return repository


def choose(answer: str) -> Choose:
    return Choose("", JudgePrompt(FIXED, "Q: capital?\nA: ", answer, opening="Rating:"), ("1", "2", "3"))


async def answers(repository: Path, form: str, needs: list[Choose | Generate]) -> list[object]:
    judges = EmbeddedJudges(EmbeddedJudgeConfig(repository, form=form, nice=0), Observed())  # type: ignore[arg-type]
    judge = await judges.open(NAME)
    try:
        replies = await asyncio.gather(*(judge.answer(need) for need in needs))
        assert judge.status.precision == {"int8": "int8-row-cpu", "fp16": "fp16-cuda"}[form]
        return [reply.answer for reply in replies]
    finally:
        await judge.close()


async def test_its_choices_are_near_those_of_the_int8_graph_and_its_texts_go_on(repository: Path) -> None:
    needs: list[Choose | Generate] = [choose(answer) for answer in ("Paris", "it is Rome, I think", "no" * 40)]
    texts: list[Choose | Generate] = [
        Generate("", JudgePrompt(FIXED, f"Say {word}"), max_tokens=length) for word, length in (("a", 3), ("bc", 9))
    ]
    found, int8 = await answers(repository, "fp16", [*needs, *texts]), await answers(repository, "int8", needs)
    for one, other in zip(found[:3], int8, strict=True):
        assert isinstance(one, Choice)
        assert isinstance(other, Choice)
        assert one.probabilities == pytest.approx(other.probabilities, abs=0.05)
    assert [text.generated_tokens for text in found[3:] if isinstance(text, Generated)] == [3, 9]


async def test_without_a_gpu_the_message_says_what_to_install(repository: Path) -> None:
    with pytest.raises(JudgeUnavailableError) as caught:
        await EmbeddedJudges(EmbeddedJudgeConfig(repository, device="cuda"), Observed()).open(NAME)
    failure: Failure = caught.value.failure
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert "cannot run on cuda" in failure.message
    assert "has no CUDAExecutionProvider. Install onnxruntime-gpu" in failure.message
    assert str(repository) not in failure.message


async def test_without_its_form_the_message_says_how_to_build_it(qwen2: TinyJudge, tmp_path: Path) -> None:
    build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels)
    with pytest.raises(
        JudgeUnavailableError, match=r"has no form fp16 or int4, which cuda:1 needs\. Run: .* --form fp16"
    ):
        await EmbeddedJudges(EmbeddedJudgeConfig(tmp_path, device="cuda:1"), Observed()).open(NAME)


def test_a_gpu_takes_fp16_by_itself_and_no_form_for_cpus(repository: Path) -> None:
    (status,) = [
        each
        for each in EmbeddedJudges(EmbeddedJudgeConfig(repository, device="cuda"), Observed()).listed()
        if each.name == NAME
    ]
    assert (status.state, status.precision) == ("built", "fp16-cuda")
    with pytest.raises(ValueError, match="judge_device cuda needs the judge's form fp16 or int4, not int8"):
        EmbeddedJudgeConfig(repository, device="cuda", form="int8")
