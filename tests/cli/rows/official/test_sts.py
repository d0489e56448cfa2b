"""Small files in each public form of the test sets of the STS average."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.problems import InputError
from gradewire_cli.rows.official.sts import FILES, SUBSETS, missing_files, sts_records

SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def semeval(folder: Path, subset: str, sentences: str, grades: str, *, year: str = "") -> Path:
    write(folder / f"STS{year}.gs.{subset}.txt", grades)
    return write(folder / f"STS{year}.input.{subset}.txt", sentences)


def rows(path: Path) -> list[tuple[Any, ...]]:
    names = ("task", "group", "references", "prediction", "label")
    return [tuple((record.fields or {}).get(name) for name in names) for record in sts_records(str(path))]


def test_a_years_subset_has_its_grades_in_a_second_file(tmp_path: Path) -> None:
    file = semeval(
        tmp_path / "STS16-en-test", "headlines", 'a "b\tc d\tsource\tsource\nx\ty\n\u2028q\tr\n', "4.5\n\n0\n"
    )
    assert rows(file) == [
        ("STS16", "headlines", ['a "b'], "c d", 4.5),
        ("STS16", "headlines", ["x"], "y", None),
        ("STS16", "headlines", ["\u2028q"], "r", 0.0),
    ]
    assert [record.fields["id"] for record in sts_records(str(file)) if record.fields] == [
        f"STS16/headlines/{place}" for place in range(3)
    ]


@pytest.mark.parametrize(
    ("folder", "subset", "year", "task"),
    [
        ("STS13-en-test", "headlines", "", "STS13"),
        ("sts2014-test", "headlines", "", "STS14"),
        ("semeval-2015/gold", "headlines", "", "STS15"),
        ("2013", "OnWN", "", "STS13"),
        ("anywhere", "headlines", "2016", "STS16"),
        ("anywhere", "MSRpar", "", "STS12"),
    ],
)
def test_the_folder_the_file_or_the_subset_tells_the_year(
    tmp_path: Path, folder: str, subset: str, year: str, task: str
) -> None:
    file = semeval(tmp_path / folder, subset, "a\tb\n", "1\n", year=year)
    assert rows(file) == [(task, subset, ["a"], "b", 1.0)]


def test_the_benchmark_has_no_header(tmp_path: Path) -> None:
    file = write(tmp_path / "sts-test.csv", 'main-news\tMSRpar\t2012test\t1\t2.5\tOne "q.\tTwo.\textra\nshort\trow\n')
    first, second = sts_records(str(file))
    assert rows(file)[0] == ("STS-B", "", ['One "q.'], "Two.", 2.5)
    assert first.problem == ""
    assert second.problem == "has 2 columns, but at least 7 are needed"


def test_sick_is_read_from_the_test_file_or_from_the_file_of_all_parts(tmp_path: Path) -> None:
    test = write(tmp_path / "SICK_test_annotated.txt", f"{SICK_HEADER}6\tA.\tB.\t3.3\tNEUTRAL\n")
    assert rows(test) == [("SICK-R", "", ["A."], "B.", 3.3)]
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set\n"
    whole = write(tmp_path / "SICK.txt", f"{header}1\tC\tD\tNEUTRAL\t1\tTRAIN\n6\tA.\tB.\tNEUTRAL\t3.3\tTEST\n")
    assert rows(whole) == rows(test)


@pytest.mark.parametrize(
    ("place", "task"),
    [
        ("sts12-sts/test.jsonl", "STS12"),
        ("stsbenchmark-sts/test.jsonl", "STS-B"),
        ("sickr-sts/test.jsonl.gz", "SICK-R"),
        ("data/sts-b.jsonl", "STS-B"),
    ],
)
def test_rows_with_two_sentences_belong_to_the_set_that_the_path_names(tmp_path: Path, place: str, task: str) -> None:
    file = tmp_path / place
    file.parent.mkdir()
    text = "".join(
        f"{json.dumps(row)}\n"
        for row in (
            {"sentence1": "a", "sentence2": "b", "score": 2},
            {"sentence1": "a", "sentence2": None, "score": 2},
            {"sentence1": "a", "sentence2": "b", "score": "much"},
        )
    )
    file.write_bytes(gzip.compress(text.encode()) if place.endswith(".gz") else text.encode())
    assert rows(file)[0] == (task, "", ["a"], "b", 2.0)
    problems = [record.problem for record in sts_records(str(file))]
    assert problems == ["", "lacks a sentence", "has the grade 'much', which is not a number"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("STS.input.headlines.txt", "a\tb\n", "the year of this file is unknown"),
        ("STS12/STS.input.images.txt", "a\tb\n", "STS12 has no subset images in the usual average"),
        ("STS12/STS.input.MSRvid.txt", "a\tb\n", r"its grades are missing \(.*STS\.gs\.MSRvid\.txt\)"),
        ("other/rows.jsonl", '{"sentence1": "a"}\n', "names a test set"),
        ("sts12/rows.jsonl", '{"text": "a"}\n', "has the columns text, but sentence1 or sentence_A"),
        ("SICK.txt", SICK_HEADER, "has no pairs"),
        ("sts-test.csv", "", "has no pairs"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    file = write(tmp_path / name, content)
    with pytest.raises(InputError, match=message):
        list(sts_records(str(file)))


def test_grades_must_be_as_many_as_pairs(tmp_path: Path) -> None:
    file = semeval(tmp_path / "STS12", "MSRpar", "a\tb\nc\td\n", "1\n")
    with pytest.raises(InputError, match=r"has 2 pairs, but .* has 1 lines"):
        list(sts_records(str(file)))
    (record,) = sts_records(str(semeval(tmp_path / "STS12", "MSRpar", "no tab\n", "1\n")))
    assert record.problem == "has no tab between sentences"


def test_latin_1_is_named(tmp_path: Path) -> None:
    file = semeval(tmp_path / "STS12", "MSRpar", "a\tb\n", "1\n")
    file.write_bytes("caf\u00e9\tb\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"is not UTF-8 \(byte 3\)"):
        list(sts_records(str(file)))


def test_a_folder_is_searched(tmp_path: Path) -> None:
    found = [
        semeval(tmp_path / "STS/STS12-en-test", "MSRpar", "a\tb\n", "1\n"),
        write(tmp_path / "STS/STSBenchmark/sts-test.csv", "a\tb\tc\td\t1\te\tf\n"),
        write(tmp_path / "SICK/SICK_test_annotated.txt", f"{SICK_HEADER}6\tA.\tB.\t3.3\tNEUTRAL\n"),
    ]
    write(tmp_path / "STS/STSBenchmark/sts-dev.csv", "not read")
    assert sorted(FILES.files_in([str(tmp_path)])) == sorted(map(str, found))


def test_what_is_missing_is_named() -> None:
    whole = {task: list(subsets) or [""] for task, subsets in SUBSETS.items()}
    assert missing_files(whole) == []
    assert missing_files({**whole, "STS13": [""]}) == []
    del whole["STS-B"]
    whole["STS12"].remove("MSRvid")
    assert missing_files(whole) == [
        "STS12 is incomplete: STS.input.MSRvid.txt and the grades are missing",
        "STS-B is missing (sts-test.csv)",
    ]


_sentence = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.lists(st.tuples(_sentence, _sentence, st.floats(0, 5)), min_size=1, max_size=8))
def test_any_sentences_come_through(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str, float]]
) -> None:
    folder = tmp_path_factory.mktemp("sets") / "STS14"
    sentences = "".join(f"{first}\t{second}\n" for first, second, _ in pairs)
    file = semeval(folder, "images", sentences, "".join(f"{grade}\n" for *_, grade in pairs))
    read = [(row[2][0], row[3], row[4]) for row in rows(file)]
    assert read == [
        (first.removeprefix("\ufeff") if place == 0 else first, *rest) for place, (first, *rest) in enumerate(pairs)
    ]
