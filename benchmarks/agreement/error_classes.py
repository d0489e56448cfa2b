"""Compare the classes of errors that the default judge names with those that the authors gave to 28 items.

Writes benchmarks/results/error-classes.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.measurements import machine
from benchmarks.common.rows import read_lines

from gradewire import Scorer
from gradewire.metrics import Lave
from gradewire_cli.results.error_classes import WrongVerdicts
from gradewire_cli.scoring.class_judging import prompt_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire_cli.results.error_classes import OpenQuestion

ITEMS: Final = Path(__file__).with_suffix(".jsonl")
OUT: Final = Path("benchmarks/results/error-classes.md")
HEAD: Final = """# Classes of errors by a judge

How often does the default judge name the class of an error that the authors of gradewire gave? The 28 items are their
own: right answers that a judge called wrong, and wrong answers that it called right. The prompt's form was chosen on
half a and confirmed on half b. `agree --error-classes judge` asks the same questions.
"""
_FIELDS: Final = ("id", "question", "references", "prediction")


def wrong_verdicts(rows: Sequence[dict[str, Any]]) -> WrongVerdicts:
    """Return the items as wrong verdicts of a judge."""
    found = WrongVerdicts()
    for row in rows:
        item = {name: row[name] for name in _FIELDS}
        result = {"score": float(row["label"] == 0), "line": "lave/1"}
        found.add(item, "lave", result, called_right=row["label"] == 0, given=row["error_class"])
    return found


def ask(scorer: Scorer, wrong: WrongVerdicts, questions: Sequence[OpenQuestion]) -> None:
    """Add the class that the judge names to each verdict."""
    for question in questions:
        prompt = prompt_of(question.classes, called_right=question.called_right)
        report = scorer.score([wrong.item_of(question)], [Lave(prompt=prompt, binary="judge", references="all")])
        parts: Any = report.items[0].scores[report.labels[0]].parts
        _, phrase = max(zip(parts.probabilities, parts.labels, strict=True))
        wrong.name(question, next(each.name for each in question.classes if each.phrase == phrase))


def table(rows: Sequence[dict[str, Any]], wrong: WrongVerdicts) -> Iterator[str]:
    """Yield the lines of a table with a row for each half and verdict."""
    yield "| half | the judge's verdict | items | same class | classes that the judge named |"
    yield "|---|---|---:|---:|---|"
    for half in "ab":
        for called_right in (False, True):
            found = [
                each
                for row, each in zip(rows, wrong.listed, strict=True)
                if (row["half"], each.called_right) == (half, called_right)
            ]
            same = sum(each.judged_class == each.given for each in found)
            named = ", ".join(f"{name} {n}" for name, n in Counter(each.judged_class for each in found).most_common())
            yield f"| {half} | {'right' if called_right else 'wrong'} | {len(found)} | {same} | {named} |"


def main() -> None:
    """Ask the judge and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = list(read_lines(ITEMS))
    wrong = wrong_verdicts(rows)
    with Scorer.embedded() as scorer:
        ask(scorer, wrong, [each for each in wrong.open_questions() if each.kind == "class"])
    command = "```\npython -m benchmarks.agreement.error_classes\n```\n"
    about = f"{datetime.now(UTC).date()}, {machine()}.\n"
    options.out.write_text("\n".join([HEAD, about, command, *table(rows, wrong)]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
