"""Attack pairwise judges: `python -m benchmarks.judges.attacks.pairs`; write a block of benchmarks/results/attacks.md.

Each pair has a right and a wrong answer to the same question. The program measures how many wrong answers win only with
an attack, and how many right answers stop winning under attack. Verdicts are stored in --results/store.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.measurements import machine, write_block
from benchmarks.common.rows import DATA_DIRECTORY, Row
from benchmarks.judges.agreement import ROOT
from benchmarks.judges.attacks.cases import PLAIN, Case, Half, attacked, read_families, read_texts, text_rows
from benchmarks.judges.attacks.rates import Rate, rates_table

from gradewire import Pair, Scorer, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

CHOOSERS: Final = ("compare", "compare?references=true")
RIGHT, WRONG = "a", "b"
# The server rejects an answer without words, so this answer does not win.
_ENDED: Final = {Status.OK, Status.INCONSISTENT, Status.UNPARSABLE, Status.INVALID_INPUT, Status.EMPTY_PREDICTION}


@dataclass(frozen=True, slots=True)
class Duel:
    """A right answer (a) against a wrong answer (b), which may contain an attack."""

    case: Case
    pair: Pair


def duels(rows: Sequence[Row], pool: Sequence[Row], half: Half) -> list[Duel]:
    """Pair wrong answers, unchanged and attacked, with a right answer to the same question from `pool`."""
    right: dict[tuple[str, str], str] = {}
    for row in pool:
        if row["label"] and row["prediction"].strip():
            right.setdefault((row["dataset"], row["question"]), row["prediction"])
    answered = [row for row in rows if (row["dataset"], row["question"]) in right]
    opponents = {row["id"]: right[row["dataset"], row["question"]] for row in answered}
    families = [family for family in read_families() if not family.in_caption]
    return [
        Duel(
            case,
            Pair(
                case.item["question"],
                opponents[case.row],
                case.item["prediction"],
                references=case.item["references"],
                id=case.item["id"],
            ),
        )
        for case in attacked(answered, families, half, pool)
    ]


def won(found: Sequence[Duel], winners: Sequence[str | None]) -> tuple[dict[str, Rate], dict[str, Rate]]:
    """Return two rates by family: wrong answers that start to win under attack, and right answers that stop winning.

    `winners` contains "a", "b", "tie" or None for each duel.
    """
    plain = {duel.case.row: winner for duel, winner in zip(found, winners, strict=True) if duel.case.family == PLAIN}
    wins: dict[str, list[bool]] = {}
    losses: dict[str, list[bool]] = {}
    for duel, winner in zip(found, winners, strict=True):
        if duel.case.is_attack and plain[duel.case.row] != WRONG:
            wins.setdefault(duel.case.family, []).append(winner == WRONG)
        if duel.case.is_attack and plain[duel.case.row] == RIGHT:
            losses.setdefault(duel.case.family, []).append(winner != RIGHT)
    return _rates(wins), _rates(losses)


def _rates(counted: dict[str, list[bool]]) -> dict[str, Rate]:
    return {name: Rate(sum(hits), len(hits)) for name, hits in counted.items()}


def main() -> None:
    """Judge missing pairs, and replace the document's block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "attacks")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "attacks.md")
    parser.add_argument("--judges", type=Path, required=True, help="directory of built judges")
    parser.add_argument("--half", choices=tuple(Half), type=Half, default=Half.HELD_BACK)
    parser.add_argument("--by", action="append", help=f"chooser; may be repeated; default: {CHOOSERS}")
    parser.add_argument("--texts", type=int, default=16, help="wrong answers")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    pool = read_texts(options.data)
    found = duels(text_rows(pool, options.half, 0, options.texts), pool, options.half)
    settings: dict[str, Any] = {"disk_directory": options.results / "store", "judge_repository": options.judges}
    rates: dict[str, dict[str, Rate]] = {}
    lines: list[str] = []
    with Scorer.embedded(judge_backend="embedded", **settings) as scorer:
        for by in options.by or CHOOSERS:
            winners, line = _winners(scorer, found, by)
            rates[f"{by}: wins"], rates[f"{by}: no longer loses"] = won(found, winners)
            lines.append(line)
            plain = [winner for duel, winner in zip(found, winners, strict=True) if duel.case.family == PLAIN]
            lines.append(
                f"{by}, unchanged: right wins {plain.count(RIGHT)}, wrong {plain.count(WRONG)} of {len(plain)}"
            )
    as_json = {label: {family: rate.as_json() for family, rate in of.items()} for label, of in rates.items()}
    (options.results / f"pairs-{options.half}.json").write_text(json.dumps(as_json, indent=1), "utf-8")
    table = rates_table(rates, read_families(), options.half)
    write_block(
        options.document,
        "attacks-pairs",
        f"{machine()}, load {load:.1f} before.\n\n{table}\n\n```\n" + "\n".join(lines) + "\n```",
    )


def _winners(scorer: Scorer, found: Sequence[Duel], by: str) -> tuple[list[str | None], str]:
    def tell(done: int, total: int) -> None:
        sys.stderr.write(f"{by}: {done} of {total}\n")

    said = scorer.compare([duel.pair for duel in found], by, progress=tell)
    lost = [each.message for each in said if each.status not in _ENDED]
    if lost:
        raise SystemExit(f"{by}: {len(lost)} pairs were not judged: {lost[0]}")
    return [each.winner for each in said], said[0].line


if __name__ == "__main__":
    main()
