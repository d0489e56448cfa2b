"""Measure choice_match on the items of examples/choices, and compare it with how harnesses read a choice.

Writes benchmarks/results/choices.md. With --items FILE, print the table by form for another file instead.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.measurements import write_block
from benchmarks.common.rows import read_lines

from gradewire_server.domain.items import Failure, Item
from gradewire_server.metrics.choices.grading import grade_choice
from gradewire_server.metrics.choices.options import Options, any_letters, find_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "benchmarks" / "results" / "choices.md"
EXAMPLES: Final = ROOT / "examples" / "choices"
_INVALID: Final = ""
_SHOWN: Final = 70


def options_of(row: Mapping[str, Any]) -> Options:
    """Return a row's options."""
    return find_options(row["question"], tuple(row.get("choices", ()))) or any_letters(row["question"])


def verdict(row: Mapping[str, Any]) -> bool | None:
    """Return choice_match's verdict on a row, or None if the references name no option."""
    item = Item("", row["question"], tuple(row["references"]), row["prediction"], choices=tuple(row.get("choices", ())))
    graded = grade_choice(item, options_of(row))
    return None if isinstance(graded, Failure) else graded.right


def read_as_vlmevalkit(answer: str, options: Options) -> str:
    """Return the letter that VLMEvalKit reads before it asks a judge, or "".

    Signs become blanks. A letter counts if it is the only option's letter among the words and one of the last five; a
    longer answer with the word "A" counts for nothing. Otherwise an option counts if it is the only one whose text the
    answer contains, and the answer is at most twice as long as all options.
    """
    words = re.sub(r"[.()\[\],:;!*#{}]", " ", answer).split()
    letters = [letter for letter in options.labels if letter in words]
    if len(letters) == 1:
        if "A" in words and len(words) > 3:
            return _INVALID
        if words.index(letters[0]) > len(words) - 5:
            return letters[0]
    if len(answer) > 2 * sum(map(len, options.texts)):
        return _INVALID
    found = [
        label
        for label, text in zip(options.labels, options.texts, strict=True)
        if text and text.lower() in answer.lower()
    ]
    return found[0] if len(found) == 1 else _INVALID


def read_by_phrase(answer: str, options: Options) -> str:
    """Return the letter that lm-eval's filter of MMLU-Pro reads, the first one after "answer is", or ""."""
    del options
    found = re.search(r"answer is \(?([A-J])\)?", answer)
    return found[1] if found else _INVALID


def read_by_letters(answer: str, options: Options) -> str:
    """Return the letter that lm-eval's multiple-choice filter reads, or "".

    The first letter in brackets counts, otherwise the first option's text in the answer, otherwise the first letter
    behind a colon.
    """
    if found := re.search(r"\(([A-Z])\)", answer):
        return found[1]
    plain = re.sub(r"[^\w\s]", "", answer.lower())
    places = {
        plain.find(re.sub(r"[^\w\s]", "", text.lower())): label
        for label, text in zip(options.labels, options.texts, strict=True)
        if text and re.sub(r"[^\w\s]", "", text.lower()) in plain
    }
    if places:
        return places[min(places)]
    found = re.search(rf":\s*([A-{options.labels[-1]}])", answer)
    return found[1] if found else _INVALID


HARNESSES: Final[dict[str, Callable[[str, Options], str]]] = {
    "VLMEvalKit": read_as_vlmevalkit,
    "lm-eval, phrase": read_by_phrase,
    "lm-eval, letters": read_by_letters,
}


def table_by_form(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the share of right verdicts by form, with the wrong verdicts by kind."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        right, label = verdict(row), bool(row["label"])
        kind = (
            "right" if right is label else "no verdict" if right is None else "false right" if right else "false wrong"
        )
        for form in (row["form"], "**all**"):
            counts[form][kind] += 1
    ordered = [form for form in counts if form != "**all**"] + ["**all**"]
    lines = ["| form | items | right verdicts | called right, but wrong | called wrong, but right | no verdict |"]
    lines.append("|---|---|---|---|---|---|")
    for form in ordered:
        count = counts[form]
        total = sum(count.values())
        kinds = " | ".join(str(count[kind]) for kind in ("false right", "false wrong", "no verdict"))
        lines.append(f"| {form} | {total} | {count['right'] / total:.3f} | {kinds} |")
    return "\n".join(lines)


def compared(rows: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Return a table of agreement with the harnesses, and a list of answers on which the verdicts differ."""
    counts: dict[str, Counter[tuple[bool, bool]]] = defaultdict(Counter)
    differing: list[str] = []
    for row in rows:
        options = options_of(row)
        if options.kind == "number" or len(row["references"]) > 1 or row.get("form") == "multi":
            continue
        item = Item("", row["question"], tuple(row["references"]), "-", choices=tuple(row.get("choices", ())))
        graded = grade_choice(item, options)
        if isinstance(graded, Failure):
            continue
        wanted, label = graded.parts.expected[0], bool(row["label"])
        ours = verdict(row) is label
        theirs = {name: (read(row["prediction"], options) == wanted) is label for name, read in HARNESSES.items()}
        for name, right in theirs.items():
            counts[name][right, ours] += 1
        if not ours or not all(theirs.values()):
            said = " ".join(row["prediction"].split()).replace("|", "\\|")
            shown = said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"
            wrong = ", ".join(name for name, right in theirs.items() if not right) or "none"
            differing.append(
                f"| {shown} | {wanted} | {'right' if label else 'wrong'} | {wrong} | {'no' if ours else 'yes'} |"
            )
    lines = [
        "| their rule | both right | only choice_match right | only their rule right | both wrong |",
        "|---|---|---|---|---|",
    ]
    for name, count in counts.items():
        cells = (count[True, True], count[False, True], count[True, False], count[False, False])
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    head = [
        "| answer | right option | label | rules that misjudge it | choice_match misjudges it |",
        "|---|---|---|---|---|",
    ]
    return "\n".join(lines), "\n".join((*head, *differing))


def main() -> None:
    """Write the page's tables, or print the table of another file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=Path, help="print the table by form for FILE")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    if options.items:
        print(table_by_form(read_lines(options.items)))
        return
    development = read_lines(EXAMPLES / "development.jsonl")
    answers = read_lines(EXAMPLES / "harness_answers.jsonl")
    write_block(options.document, "development", table_by_form(development))
    counts, listed = compared(answers)
    write_block(options.document, "harness-answers", f"{counts}\n\n{listed}")
    write_block(options.document, "harness-development", compared(development)[0])


if __name__ == "__main__":
    main()
