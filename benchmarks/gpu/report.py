"""Write a run's report: what was to be reached and what was measured, and the table of each step."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from benchmarks.gpu.machine import Machine
from benchmarks.gpu.script_step import TUNED
from benchmarks.gpu.step_processes import Outcome, Row

Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class Goal:
    """A value that the project wants to reach on one card with up to 16 cores.

    Attributes:
        step: The step next to whose table the goal stands.
        measured: Returns the value, or None if it was not measured.
    """

    step: str
    what: str
    bound: float
    sign: Literal["≥", "≤"]
    measured: Callable[[Outcomes], float | None]

    def row(self, outcomes: Outcomes) -> Row:
        """Return a row of the table of goals."""
        found = self.measured(outcomes)
        if found is None:
            state = "not measured"
        else:
            reached = found >= self.bound if self.sign == "≥" else found <= self.bound
            state = "reached" if reached else "missed"
        return {
            "goal": self.what,
            "must be": f"{self.sign} {self.bound:,g}",
            "measured": "" if found is None else f"{found:,.6g}",
            "": state,
        }


def _largest(step: str, column: str, **where: Any) -> Callable[[Outcomes], float | None]:
    def measured(outcomes: Outcomes) -> float | None:
        rows = outcomes[step].rows if step in outcomes else []
        fitting = [row for row in rows if all(row.get(name) == value for name, value in where.items())]
        return max((float(row[column]) for row in fitting), default=None)

    return measured


_COLD: Final = _largest("smile", "cold rows/s")


def _against_script(outcomes: Outcomes) -> float | None:
    cold, script = _COLD(outcomes), _largest("script", "rows/s", script=TUNED)(outcomes)
    return None if cold is None or script is None else cold / script


GOALS: Final = (
    Goal("sbert", "`sbert` through gRPC, items/s", 25_000, "≥", _largest("sbert", "items/s")),
    Goal("smile", "`smile`, rows/s cold", 4_000, "≥", _COLD),
    Goal("script", "the same, times the tuned script", 5, "≥", _against_script),
    Goal("one-answer", "one new answer, p50 in ms", 3, "≤", _largest("one-answer", "p50, ms")),
    Goal("one-answer", "one new answer, p99 in ms", 5, "≤", _largest("one-answer", "p99, ms")),
)


def table(rows: Sequence[Row]) -> list[str]:
    """Return rows as a Markdown table with the first row's columns."""
    if not rows:
        return []
    names = list(rows[0])
    cells = [[_shown(row.get(name, "")) for name in names] for row in rows]
    return [_line(names), _line(["---"] * len(names)), *map(_line, cells)]


def report(machine: Machine, titles: Mapping[str, str], outcomes: Outcomes, *, rehearsal: bool) -> str:
    """Return the complete report as Markdown. `titles` are those of the steps."""
    lines = ["# gradewire on this machine", ""]
    if rehearsal:
        lines += ["**A rehearsal on the CPU: these values say nothing about a GPU.**", ""]
    lines += [f"- {name}: {value}" for name, value in facts(machine).items()]
    lines += ["", "## Against the goals", "", *table([goal.row(outcomes) for goal in GOALS])]
    for name, outcome in outcomes.items():
        lines += ["", f"## {titles[name]}", "", *table(outcome.rows)]
        lines += ([""] if outcome.rows and outcome.why else []) + ([outcome.why] if outcome.why else [])
        lines += [f"\n{text}" for text in _goals_of(name, outcomes)]
        lines += ["", f"({outcome.seconds:.0f} s)"]
    return "\n".join(lines) + "\n"


def _goals_of(step: str, outcomes: Outcomes) -> list[str]:
    rows = [goal.row(outcomes) for goal in GOALS if goal.step == step]
    return [
        f"Goal: {row['goal']} {row['must be']}; {row['measured'] or 'nothing'} measured: {row['']}." for row in rows
    ]


def facts(machine: Machine) -> dict[str, Any]:
    """Return the machine's properties, and its load now."""
    found = asdict(machine)
    gpu = found.pop("gpu")
    usable = "usable" if gpu["index"] is not None else f"not usable: {gpu['problem']}"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    card = machine.card
    limits = (
        f"{card.flops / 1e12:.0f} TFLOP/s in fp16, {card.memory_bytes_per_s / 1e9:.0f} GB/s" if card else "not known"
    )
    return {**found, "gpu": usable, "the card's data sheet": limits, "load": load}


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
