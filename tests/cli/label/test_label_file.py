"""The label file: one column an annotator, written after each label, read back as it was."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Command, write_rows

from gradewire_cli.label.label_file import LABELS, LabelFile
from gradewire_cli.problems import InputError

_IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
_NAMES = ("ann", "Ben B.", "ça-va_2")


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


@given(
    st.lists(st.tuples(_IDS, st.sampled_from(_NAMES), st.one_of(st.none(), st.sampled_from(LABELS))), max_size=30),
)
def test_any_labels_are_read_back_as_they_were_set(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, float | None]]
) -> None:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    file = LabelFile.open(path, _NAMES)
    expected: dict[str, dict[str, float]] = {}
    for identifier, name, label in steps:
        file.set(identifier, name, label)
        given = expected.setdefault(identifier, {})
        given.pop(name, None)
        given |= {} if label is None else {name: label}
        again = LabelFile.open(path, [])
        assert again.labels == {key: labels for key, labels in expected.items() if labels}
        assert again.annotators == list(_NAMES)


def test_a_second_annotator_gets_a_column_and_the_first_one_keeps_hers(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    file = LabelFile.open(path, ["ann"])
    file.set("r1", "ann", 1)
    file.set("r2", "ann", 0.25)
    file = LabelFile.open(path, ["ben"])
    file.set("r2", "ben", 0)
    assert table(path) == [["id", "ann", "ben"], ["r1", "1", ""], ["r2", "0.25", "0"]]
    assert (file.label("r2", "ann"), file.label("r1", "ben")) == (0.25, None)


@given(
    st.lists(
        st.tuples(
            _IDS,
            st.sampled_from(_NAMES),
            st.one_of(
                st.sampled_from(LABELS),
                st.sampled_from([(), ("bad-gold",), ("time-dependent", "bad-gold")]),
                st.sampled_from(["synonym", "own, with a comma"]),
            ),
        ),
        max_size=20,
    )
)
def test_any_flags_and_classes_are_read_back_beside_the_labels(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, float | tuple[str, ...] | str]]
) -> None:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    file = LabelFile.open(path, _NAMES)
    for identifier, name, value in steps:
        if isinstance(value, float):
            file.set(identifier, name, value)
        elif isinstance(value, tuple):
            file.set_flags(identifier, name, value)
        else:
            file.set_class(identifier, name, value)
    again = LabelFile.open(path, _NAMES)
    assert (again.labels, again.flags, again.classes) == (file.labels, file.flags, file.classes)
    assert again.annotators == list(_NAMES)


def test_a_label_that_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file = LabelFile.open(folder / "labels.csv", ["ann"])
    file.set("r1", "ann", 1)
    (folder / "labels.csv").unlink()
    folder.rmdir()
    for identifier, label in (("r1", 0.0), ("r1", None), ("r2", 1.0)):
        with pytest.raises(OSError, match="No such file"):
            file.set(identifier, "ann", label)
    assert file.labels == {"r1": {"ann": 1.0}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("question,label\nx,1\n", "its first column is not id"),
        ("", "its first column is not id"),
        ("id,ann\nr1,1,0\n", "row 2 has 3 cells, but the first has 2"),
        ("id,ann\nr1,1\nr1,0\n", "row 3 repeats the id r1"),
        ("id,ann\nr1,yes\n", "row 2 has the label yes"),
        ("id,ann\nr1,2\n", "row 2 has the label 2"),
        ("id,ann\nr1,nan\n", "row 2 has the label nan"),
        ("id,label\nr1,1\n", "--annotator label: this is the name of another column"),
        ("id,ann,ann\nr1,1,1\n", "--annotator ann is given twice"),
        ('id,ann\n"r1,1\n', "is not a CSV file"),
    ],
)
def test_another_file_is_refused_and_stays(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        LabelFile.open(path, ["ben"])
    assert path.read_text() == content


@pytest.mark.parametrize("name", ["", "a,b", "=1+1", "id", "Labels", "correct", "a\nb", "x" * 65, "ann ", "a=b"])
def test_a_name_that_is_no_column_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--annotator"):
        LabelFile.open(tmp_path / "labels.csv", [name])


def test_agree_reads_the_annotators_columns(command: Command, tmp_path: Path) -> None:
    rows = [{"id": f"r{place}", "references": ["x"], "prediction": "x" * (1 + place % 7)} for place in range(12)]
    answers = write_rows(tmp_path / "answers.jsonl", rows)
    file = LabelFile.open(tmp_path / "answers.labels.csv", ["ann", "ben"])
    for place, row in enumerate(rows):
        file.set(str(row["id"]), "ann", float(place % 7 > 3))
        file.set(str(row["id"]), "ben", float(place % 7 > 2))
    mapped = ("--labels-file", file.path, "--labels-map", "labels=ann,ben")
    done = command("agree", answers, *mapped, "--metrics", "rouge_l", "--resamples", "100")
    assert done.exit_code == 0, done.output
    assert "12 rows" in done.output
    assert "Krippendorff" in done.output
