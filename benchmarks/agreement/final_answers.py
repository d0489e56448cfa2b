"""Count the right final answers in `examples/final_answers` by kind, language, position, confidence; measure cost."""

from __future__ import annotations

import argparse
import json
import os
import time
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradewire_proto.final_answer import FinalAnswer, find_final_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = Path(__file__).parents[2] / "examples" / "final_answers"

BANDS = ((0.95, "0.95 to 1"), (0.8, "0.8 to 0.95"), (0.6, "0.6 to 0.8"), (0, "below 0.6"))


def read(half: str) -> list[dict[str, Any]]:
    """Return the rows of a half."""
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()]


def normal(text: str) -> str:
    """Return a text in NFC, without blanks around it and without one final full stop."""
    stripped = unicodedata.normalize("NFC", text).strip()
    return stripped[:-1].rstrip() if stripped.endswith((".", "。")) else stripped


def is_right(row: Mapping[str, Any], text: str) -> bool:
    """Return True if a text is one of the row's answers."""
    return normal(text) in {normal(each) for each in (row["want"], *row.get("also", ()))}


def counts(rows: Sequence[Mapping[str, Any]], found: Sequence[FinalAnswer]) -> dict[str, dict[str, list[int]]]:
    """Return right and all answers by kind, by language, by position and by band of confidence."""
    tables: dict[str, dict[str, list[int]]] = {
        name: defaultdict(lambda: [0, 0]) for name in ("kind", "language", "position", "confidence")
    }
    for row, answer in zip(rows, found, strict=True):
        right = is_right(row, answer.text)
        band = next(name for least, name in BANDS if answer.confidence >= least)
        values = {"kind": row["kind"], "language": row["language"], "position": answer.position, "confidence": band}
        for name, value in values.items():
            tables[name][value][0] += right
            tables[name][value][1] += 1
    return tables


def main() -> None:
    """Print the tables of one half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("half", choices=["development", "report"])
    parser.add_argument("--misses", action="store_true", help="also print each answer that is not right")
    parser.add_argument("--repeats", type=int, default=5, help="runs over the half; the fastest counts")
    options = parser.parse_args()
    rows = read(options.half)
    find_final_answer("")
    fastest_s = float("inf")
    for _ in range(options.repeats):
        began_s = time.thread_time()
        found = [find_final_answer(row["text"]) for row in rows]
        fastest_s = min(fastest_s, time.thread_time() - began_s)
    tables = counts(rows, found)
    right = sum(each[0] for each in tables["kind"].values())
    print(f"{options.half}: {right} of {len(rows)} right ({right / len(rows):.1%})")
    for name, table in tables.items():
        print(f"\n{name:<14}{'right':>6}{'all':>6}{'share':>8}{'(right + 1) / (all + 2)':>26}")
        for value, (good, count) in sorted(table.items()):
            print(f"{value:<14}{good:>6}{count:>6}{good / count:>8.1%}{(good + 1) / (count + 2):>26.2f}")
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{fastest_s / len(rows) * 1e6:.0f} microseconds per completion; load {load} on {os.cpu_count()} cores")
    if options.misses:
        for row, answer in zip(rows, found, strict=True):
            if not is_right(row, answer.text):
                print(f"{row['id']} ({answer.position}): {answer.text!r}, not {row['want']!r}")


if __name__ == "__main__":
    main()
