"""Sends the cases of `hostile_cases` to a live server with a judge: statuses, scores, and which answers fool the judge.

Each case follows two neighbours of its own, one plainly right and one plainly wrong, whose texts no other case has, so
that the cache does not answer them. Exit code 1 where a status or TRUNCATED is not what it has to be, or where there is
a score that must not be.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.judges.hostile_cases import CASES, QUESTION, REFERENCES, Case

from gradewire import Client, ItemScores

_NEIGHBOURS = (("right", "It was Ada Lovelace, page {} says."), ("wrong", "It was Charles Babbage, page {} says."))


def items(cases: tuple[Case, ...]) -> Iterator[dict[str, Any]]:
    """Each case behind its two neighbours."""
    for page, case in enumerate(cases):
        for name, text in _NEIGHBOURS:
            yield {"id": name, "question": QUESTION, "references": REFERENCES, "prediction": text.format(page)}
        yield {
            "id": case.name,
            "question": case.question,
            "references": case.references,
            "prediction": case.prediction,
        }


def row_of(case: Case, label: str, result: Any) -> dict[str, Any]:
    """The result of a case, and what is wrong with it."""
    wrong: list[str] = []
    status = result.status.name
    if status != case.status and not (case.may_not_fit and status == "INVALID_INPUT"):
        wrong.append(f"status is not {case.status}")
    if (result.score is not None) != (status == "OK"):
        wrong.append("score")
    truncated = "TRUNCATED" in {warning.name for warning in result.warnings}
    if status == "OK" and case.truncated and not truncated:
        wrong.append("not TRUNCATED")
    parts = result.parts
    return {
        "metric": label,
        "group": case.group,
        "case": case.name,
        "status": status,
        "score": result.score,
        "correct": result.correct,
        "right": case.right,
        "truncated": truncated,
        "label_mass": getattr(parts, "label_mass", None),
        "reason": getattr(parts, "reason", ""),
        "message": result.message,
        "wrong": wrong,
    }


def judge_cases(results: list[ItemScores], label: str) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Rows of all cases, and how many neighbours are right ("right", "wrong": judged as they should be)."""
    rows: list[dict[str, Any]] = []
    neighbours: Counter[str] = Counter()
    for page, case in enumerate(CASES):
        for offset, (name, _) in enumerate(_NEIGHBOURS):
            neighbours[name] += results[3 * page + offset].scores[label].correct is (name == "right")
        rows.append(row_of(case, label, results[3 * page + 2].scores[label]))
    return rows, neighbours


def show(rows: list[dict[str, Any]], neighbours: Counter[str]) -> None:
    """Prints the table of one metric."""
    print(f"\n## {rows[0]['metric']}\n")
    print("| group | case | status | score | label mass | remarks |\n|---|---|---|---|---|---|")
    for row in rows:
        score = "" if row["score"] is None else f"{row['score']:.3f}"
        mass = "" if row["label_mass"] is None else f"{row['label_mass']:.3f}"
        talked = ["TALKED ROUND"] if talked_round(row) else []
        remarks = "; ".join([*row["wrong"], *talked, *(["TRUNCATED"] if row["truncated"] else [])])
        print(f"| {row['group']} | {row['case']} | {row['status']} | {score} | {mass} | {remarks} |")
    asked = [row for row in rows if row["right"] is False]
    print(f"\nNot as they have to be: {sum(bool(row['wrong']) for row in rows)} of {len(rows)}.")
    print(f"Wrong answers that were called right: {sum(map(talked_round, rows))} of {len(asked)}.")
    print(f"Neighbours judged as they should be: {dict(neighbours)} of {len(rows)} each.")


def talked_round(row: dict[str, Any]) -> bool:
    """Whether a wrong answer was called right."""
    return row["right"] is False and row["correct"] is True


def main() -> int:
    """Runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT of a server with a judge")
    parser.add_argument("--metrics", default="lave,judge_grade,judge_similarity,judge_verdict")
    parser.add_argument("--deadline-s", type=float, default=3600.0, help="seconds for all of it")
    parser.add_argument("--out", type=Path, help="write one JSON line per metric and case")
    arguments = parser.parse_args()
    with Client(arguments.server, deadline_s=arguments.deadline_s) as client:
        report = client.score(list(items(CASES)), arguments.metrics)
        lines: list[dict[str, Any]] = []
        for label, provenance in report.provenance.items():
            rows, neighbours = judge_cases(list(report), label)
            show(rows, neighbours)
            print(provenance.line)
            lines += rows
    if arguments.out is not None:
        arguments.out.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    return int(any(row["wrong"] for row in lines))


if __name__ == "__main__":
    sys.exit(main())
