"""The items name known classes, and the table counts the equal ones by half and verdict."""

from benchmarks.agreement.error_classes import ITEMS, table, wrong_verdicts
from benchmarks.common.rows import read_lines


def test_every_given_class_is_among_those_that_the_judge_is_asked_for() -> None:
    rows = read_lines(ITEMS)
    wrong = wrong_verdicts(rows)
    asked = {
        each.position: {one.name for one in each.classes} for each in wrong.open_questions() if each.kind == "class"
    }
    assert sorted(asked) == list(range(len(rows)))
    # An extended answer is a class of vectors, and the question is about a judge's error.
    unlisted = [row["error_class"] for place, row in enumerate(rows) if row["error_class"] not in asked[place]]
    assert unlisted == ["extended answer"]


def test_the_table_counts_equal_classes() -> None:
    rows = read_lines(ITEMS)
    wrong = wrong_verdicts(rows)
    for question in wrong.open_questions():
        if question.kind == "class":
            wrong.name(question, question.classes[0].name)
    _, _, *lines = table(rows, wrong)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [(half, verdict, int(items)) for half, verdict, items, *_ in cells] == [
        ("a", "wrong", 8),
        ("a", "right", 6),
        ("b", "wrong", 8),
        ("b", "right", 6),
    ]
    assert cells[3][3] == str(sum(row["error_class"] == "overgeneralization" for row in rows if row["half"] == "b"))
    assert cells[3][4] == "overgeneralization 6"
