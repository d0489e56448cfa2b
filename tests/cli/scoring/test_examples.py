"""The example file holds what its README promises; the demo and the oracle build on it."""

import json
from collections import Counter
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"
ROWS = [json.loads(line) for line in (EXAMPLES / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
FIELDS = {"id", "group", "question", "references", "prediction", "label"}


def test_every_failure_mode_has_eight_rows_and_stands_in_the_readme() -> None:
    modes = Counter(row["group"] for row in ROWS)
    assert modes == dict.fromkeys(
        (
            "synonym",
            "verbose",
            "number",
            "yes_no",
            "over_specified",
            "under_specified",
            "several_references",
            "wrong_but_fluent",
            "unicode",
        ),
        8,
    )
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [mode for mode in modes if f"| `{mode}` |" not in readme] == []
    assert f"{len(ROWS)} answers" in readme


def test_rows_are_well_formed() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert FIELDS <= row.keys() <= FIELDS | {"synthetic_answers"}, row["id"]
        assert row["label"] in {0, 1}, row["id"]
        assert row["references"], row["id"]
        assert all(text.strip() for text in (row["question"], row["prediction"], *row["references"])), row["id"]
        assert len(row.get("synthetic_answers", row["references"])) == len(row["references"]), row["id"]


def test_every_mode_has_right_and_wrong_answers() -> None:
    # Without both there is no correlation and no AUC to be had.
    for mode in {row["group"] for row in ROWS}:
        labels = Counter(row["label"] for row in ROWS if row["group"] == mode)
        assert min(labels[0], labels[1]) >= 3, (mode, labels)


def test_special_cases_are_there() -> None:
    assert sum("synthetic_answers" in row for row in ROWS) >= 20
    assert sum(len(row["references"]) > 1 for row in ROWS) >= 8
    assert any("\u0308" in row["prediction"] for row in ROWS), "a combining mark, which NFC composes"
    questions = Counter(row["question"] for row in ROWS)
    assert max(questions.values()) >= 3, "several answers to one question, which a bootstrap has to draw together"
