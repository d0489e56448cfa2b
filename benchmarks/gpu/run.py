"""Run every step of `benchmarks/gpu.sh [OPTIONS]`, and write report.md and report.json."""

import argparse
import json
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.gpu.judging import JudgeChoice, JudgeServer
from benchmarks.gpu.machine import Machine, look
from benchmarks.gpu.steps import Budget, Steps, run_step

from gradewire_models.repository.built import default_repository

ROOT: Final = Path(__file__).resolve().parents[2]
PACK: Final = ROOT / ".gpu-pack"
PACKED: Final = ("two-valued", "two-valued-fp16-cuda")
BUDGET_S: Final = 540.0
"""Seconds after which benchmarks/gpu.sh stops the run."""
REAL: Final = ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2-fp16-cuda")


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as a Markdown table with the first row's columns."""
    if not rows:
        return []
    names = list(rows[0])
    cells = [[_shown(row.get(name, "")) for name in names] for row in rows]
    return [_line(names), _line(["---"] * len(names)), *map(_line, cells)]


def report(machine: Machine, results: dict[str, tuple[list[dict[str, Any]], str, float]]) -> str:
    """Return the complete report as Markdown."""
    lines = ["# gradewire on this machine", ""]
    lines += [f"- {name}: {value}" for name, value in _facts(machine).items()]
    for title, (rows, why, seconds) in results.items():
        lines += ["", f"## {title}", "", *table(rows)]
        lines += ([""] if rows and why else []) + ([why] if why else []) + ["", f"({seconds:.0f} s)"]
    return "\n".join(lines) + "\n"


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


def exit_on_sigterm() -> None:
    """Exit on SIGTERM, so that this process stops its servers."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def main() -> None:
    """Run all steps, and return 0 even if some steps cannot run."""
    ends_s = time.monotonic() + BUDGET_S
    parser = argparse.ArgumentParser(description=__doc__)
    packed = PACK / "models"
    parser.add_argument("--repository", type=Path, default=packed if packed.is_dir() else default_repository())
    parser.add_argument("--models", nargs=2, metavar=("CPU", "GPU"), default=PACKED if packed.is_dir() else REAL)
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds for each measurement")
    parser.add_argument("--output", type=Path, default=PACK / "report", help="directory of the report")
    parser.add_argument("--judge-url", help="base URL (http://host/v1) of a judge's OpenAI-compatible server")
    parser.add_argument("--judge-model", help="the judge's name on that server")
    parser.add_argument("--judge-weights", type=Path, help="directory of a model for this machine's vLLM")
    arguments = parser.parse_args()
    judge = judge_of(parser, arguments)
    exit_on_sigterm()
    machine = look()
    budget = Budget(arguments.seconds, ends_s)
    steps = Steps(machine, arguments.repository, tuple(arguments.models), budget, judge)
    results = {}
    for title, step in steps.all().items():
        began_s = time.monotonic()
        rows, why = run_step(step)
        results[title] = rows, why, time.monotonic() - began_s
        print(f"{title}: {why or 'done'}", flush=True)
        # Write the report after each step, so that the report survives an early end.
        arguments.output.mkdir(parents=True, exist_ok=True)
        text = report(machine, results)
        (arguments.output / "report.md").write_text(text, "utf-8")
        content = {
            "machine": _facts(machine),
            "steps": {name: {"rows": rows, "why": why} for name, (rows, why, _) in results.items()},
        }
        (arguments.output / "report.json").write_text(json.dumps(content, indent=1), "utf-8")
    print(text)


def _facts(machine: Machine) -> dict[str, Any]:
    facts = asdict(machine)
    gpu = facts.pop("gpu")
    usable = "usable" if gpu["index"] is not None else f"not usable: {gpu['problem']}"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    card = machine.card
    limits = (
        f"{card.flops / 1e12:.0f} TFLOP/s in fp16, {card.memory_bytes_per_s / 1e9:.0f} GB/s" if card else "not known"
    )
    return {**facts, "gpu": usable, "the card's data sheet": limits, "load before": load}


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
