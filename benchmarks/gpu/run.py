"""Run every step of `benchmarks/gpu.sh [OPTIONS]`, and write report.md and report.json.

Each step runs in a process of its own and has a budget. A step that cannot run says why, one that is stopped keeps what
it has measured, and at the end no server is left.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.common.rows import DEFAULT_DATA
from benchmarks.gpu.judging import JudgeChoice
from benchmarks.gpu.machine import Bench, Machine, look
from benchmarks.gpu.report import facts, report
from benchmarks.gpu.step_processes import (
    GRACE_S,
    Outcome,
    adopt_orphans,
    end_with_parent,
    exit_on_sigterm,
    report_rows,
    run_apart,
)
from benchmarks.gpu.steps import RUN_S, Step, steps_for
from benchmarks.gpu.vllm_servers import JudgeServer

from gradewire_models.repository.built import default_repository, load_built

ROOT: Final = Path(__file__).resolve().parents[2]
PACK: Final = ROOT / ".gpu-pack"
PACKED_MODELS: Final = PACK / "models"
PACKED_ROWS: Final = PACK / "rows" / DEFAULT_DATA.name
CHECKPOINTS: Final = (PACK / "checkpoint", ROOT / "model_repo" / "downloads" / "all-MiniLM-L6-v2")
ENCODERS: Final = ("all-MiniLM-L6-v2", "two-valued")
GPU_SUFFIX: Final = "-fp16-cuda"


def judge_of(parser: argparse.ArgumentParser, given: argparse.Namespace) -> JudgeChoice:
    """Return the judge from the options; exit if they contradict each other."""
    url, model, weights = given.judge_url, given.judge_model, given.judge_weights
    if bool(url) != bool(model):
        parser.error("give --judge-url and --judge-model together")
    if url and weights:
        parser.error("use either --judge-weights, which starts vLLM here, or --judge-url")
    if weights and not weights.is_dir():
        parser.error(f"--judge-weights: {weights} is not a directory. Give the directory with the model's config.json")
    return JudgeChoice(JudgeServer(url, model) if url else None, weights)


def bench_of(given: argparse.Namespace, ends_s: float) -> Bench:
    """Return the conditions of a step.

    Raises:
        ModelError: The repository lacks an encoder.
    """
    rehearsal = given.device == "cpu"
    name = given.model or next((each for each in ENCODERS if (given.repository / each).is_dir()), ENCODERS[0])
    machine = look()
    cpu = load_built(given.repository, name)
    without = rehearsal or machine.gpu.index is None  # then no step uses the GPU's encoder
    return Bench(
        machine=machine,
        repository=given.repository,
        cpu=cpu,
        gpu=cpu if without else load_built(given.repository, name + GPU_SUFFIX),
        seconds=given.seconds,
        ends_s=ends_s,
        rehearsal=rehearsal,
        rows_file=given.data,
        checkpoint=given.checkpoint,
    )


def write_report(
    output: Path, machine: Machine, titles: Mapping[str, str], outcomes: Mapping[str, Outcome], *, rehearsal: bool
) -> str:
    """Write both files, and return the text."""
    text = report(machine, titles, outcomes, rehearsal=rehearsal)
    (output / "report.md").write_text(text, "utf-8")
    steps = {name: {"rows": each.rows, "why": each.why, "seconds": each.seconds} for name, each in outcomes.items()}
    content: dict[str, Any] = {"machine": facts(machine), "rehearsal": rehearsal, "steps": steps}
    (output / "report.json").write_text(json.dumps(content, indent=1), "utf-8")
    return text


def run_all(steps: Sequence[Step], given: argparse.Namespace, ends_s: float) -> None:
    """Run the steps one after another, and write the report after each, so that it survives an early end."""
    machine = look()
    outcomes: dict[str, Outcome] = {}
    titles = {step.name: step.title for step in steps}
    given.output.mkdir(parents=True, exist_ok=True)
    text = ""
    for number, step in enumerate(steps):
        later_s = sum(each.budget_s for each in steps[number + 1 :])
        limit_s = max(step.budget_s, ends_s - time.monotonic() - later_s)
        command = [sys.executable, "-m", "benchmarks.gpu.run", *sys.argv[1:], "--step", step.name]
        command += ["--limit-s", str(limit_s), "--parent", str(os.getpid())]
        outcome = run_apart(command, limit_s, given.output / f"{step.name}.log")
        outcomes[step.name] = outcome
        print(f"{step.title}: {outcome.why or 'done'} ({outcome.seconds:.0f} s)", flush=True)
        text = write_report(given.output, machine, titles, outcomes, rehearsal=given.device == "cpu")
    print(text)


def run_here(step: Step, given: argparse.Namespace) -> None:
    """Run a step in this process, and report its rows to the process that started it."""
    end_with_parent(given.parent)
    ends_s = time.monotonic() + given.limit_s - GRACE_S
    report_rows(lambda: step.run(bench_of(given, ends_s)))


def parser_of_options() -> argparse.ArgumentParser:
    """Return the parser of the options; some are only for a step's own process."""
    parser = argparse.ArgumentParser(prog="gpu.sh", description=__doc__)
    parser.add_argument(
        "--repository", type=Path, default=PACKED_MODELS if PACKED_MODELS.is_dir() else default_repository()
    )
    parser.add_argument("--model", help="encoder for CPUs, whose -fp16-cuda variant the repository also has")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu rehearses, in tiny shapes")
    parser.add_argument("--only", nargs="+", metavar="STEP", help="run only these steps")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds for each row of a table")
    parser.add_argument("--data", type=Path, default=PACKED_ROWS if PACKED_ROWS.is_file() else DEFAULT_DATA)
    checkpoint = next((each for each in CHECKPOINTS if each.is_dir()), CHECKPOINTS[-1])
    parser.add_argument("--checkpoint", type=Path, default=checkpoint, help="folder for sentence-transformers")
    parser.add_argument("--output", type=Path, default=PACK / "report", help="directory of the report")
    parser.add_argument("--judge-url", help="base URL (http://host/v1) of a judge's OpenAI-compatible server")
    parser.add_argument("--judge-model", help="the judge's name on that server")
    parser.add_argument("--judge-weights", type=Path, help="directory of a model for this machine's vLLM")
    for name, kind in (("--step", str), ("--limit-s", float), ("--parent", int)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    return parser


def main() -> None:
    """Run all steps, or one for such a run; exit with 0 even if some steps cannot run."""
    ends_s = time.monotonic() + RUN_S
    parser = parser_of_options()
    given = parser.parse_args()
    steps = {step.name: step for step in steps_for(judge_of(parser, given))}
    if unknown := set(given.only or ()) - set(steps):
        parser.error(f"--only: there is no step {', '.join(sorted(unknown))}. Steps are: {', '.join(steps)}")
    exit_on_sigterm()
    if given.step:
        run_here(steps[given.step], given)
        return
    adopt_orphans()
    run_all([step for name, step in steps.items() if name in (given.only or steps)], given, ends_s)


if __name__ == "__main__":
    main()
