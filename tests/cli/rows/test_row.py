"""Messages about pictures that cannot be shown, and rows of questions without an answer."""

import math
from pathlib import Path
from typing import Any

import pytest

from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.row import Row, item_with_pictures, open_rows


def test_why_a_picture_is_not_shown_is_told_without_the_keys_of_its_url(tmp_path: Path) -> None:
    row = Row(0, "line 1", "a", {"id": "a"}, "", "0", pictures=("sftp://u:SECRET@host/a.png?key=SECRET",))
    item, lack = item_with_pictures(row, tmp_path)
    assert item == {"id": "a"}
    assert lack == "picture sftp://…@host/a.png?…: the file is not in the folder of the rows"


def rows_of(*fields: dict[str, Any], only_texts: bool = False) -> list[Row]:
    records = [Record(index, f"line {index + 1}", each) for index, each in enumerate(fields)]
    return list(open_rows("a.jsonl", records, RowOptions(), only_texts=only_texts).rows)


@pytest.mark.parametrize("references", [None, [], "", [""], math.nan, {"text": []}])
@pytest.mark.parametrize("answerable", [False, "false", "FALSE", 0])
def test_a_question_without_an_answer_needs_no_references(references: object, answerable: object) -> None:
    row, other = rows_of(
        {"prediction": "a", "references": references, "answerable": answerable},
        {"prediction": "a", "references": None, "answerable": None},
    )
    assert row.item == {"id": "0", "prediction": "a", "references": [], "answerable": False}
    assert other.item is None
    assert other.problem == "line 2 has no references: column references is empty"


def test_a_file_of_such_questions_needs_no_column_of_references() -> None:
    (row,) = rows_of({"prediction": "", "answerable": "false"}, only_texts=True)
    assert row.item == {"id": "0", "prediction": "", "references": [], "answerable": False}
    (impossible,) = rows_of({"prediction": "", "references": None, "is_impossible": True})
    assert impossible.item is None, "is_impossible has the opposite meaning, so it is no other name of the column"
