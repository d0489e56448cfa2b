"""What is said of pictures that cannot be shown."""

from pathlib import Path

from gradewire_cli.rows.row import Row, item_with_picture


def test_why_a_picture_is_not_shown_is_told_without_the_keys_of_its_url(tmp_path: Path) -> None:
    row = Row(0, "line 1", "a", {"id": "a"}, "", "0", picture="sftp://u:SECRET@host/a.png?key=SECRET")
    item, lack = item_with_picture(row, tmp_path)
    assert item == {"id": "a"}
    assert lack == "picture sftp://…@host/a.png?…: the file is not in the folder of the rows"
