"""The steps of a run in their order, each with the seconds that it may take."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.gpu import encoder_steps, judging, script_step, serving_steps
from benchmarks.gpu.machine import Bench
from benchmarks.gpu.step_processes import Row

RUN_S: Final = 510.0
"""Seconds of all steps together, so that the run ends in less than nine minutes."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step.

    Attributes:
        budget_s: Seconds that the step certainly gets. Time that earlier steps leave is added.
        run: Yields the rows of the step's table.
    """

    name: str
    title: str
    budget_s: float
    run: Callable[[Bench], Iterator[Row]]


def steps_for(judge: judging.JudgeChoice) -> tuple[Step, ...]:
    """Return the steps. The most important values come first, and the steps that can use spare time last."""
    return (
        Step("parity", "Parity of the GPU with the CPU", 20, encoder_steps.parity),
        Step("smile-parity", "Parity of SMILE on the GPU with the CPU", 30, encoder_steps.smile_parity),
        Step("tokens", "Tokens a second on the GPU, against its roofline", 25, encoder_steps.gpu_tokens),
        Step("sbert", "`sbert` items a second through gRPC, by server processes and calls", 65, serving_steps.sbert),
        Step("smile", "`smile` rows a second, by server processes and clients", 60, serving_steps.smile),
        Step("one-answer", "Latency of one new answer", 18, serving_steps.one_answer),
        Step("script", "A script around sentence-transformers on the same device", 40, script_step.script),
        Step("lave", "`lave` through vLLM, against a plain client", 175, lambda bench: judging.lave(bench, judge)),
        Step("own-judge-parity", "Parity of our own judge on the GPU with the CPU", 15, judging.own_judge_parity),
        Step("cpu-tokens", "Tokens a second on the CPU", 12, encoder_steps.cpu_tokens),
        Step("cpu-sbert", "`sbert` items a second through gRPC, on the CPU by workers", 18, serving_steps.cpu_sbert),
        Step("cpu-smile", "`smile` rows a second on the CPU", 18, serving_steps.cpu_smile),
        Step("own-judge", "Items a second of our own judge, after a kept prefix", 14, judging.own_judge),
    )
