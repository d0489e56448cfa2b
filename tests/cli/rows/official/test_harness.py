"""Letters of choices and what they stand for."""

from pathlib import Path
from typing import Any

import pytest

from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.input_file import official_files
from gradewire_cli.rows.official.harness import (
    NoSuchFilterError,
    OfficialFiles,
    choice_texts,
    letter_position,
    option_named,
    options_in,
)


@pytest.mark.parametrize(
    ("text", "place"),
    [("B", 1), ("(B)", 1), ("C.", 2), (" A: ", 0), ("b", None), ("AB", None), ("A cat", None), ("", None)],
)
def test_a_letter_by_itself_names_a_choice(text: str, place: int | None) -> None:
    assert letter_position(text) == place


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        (["pear", "brick"], ["pear", "brick"]),
        ({"text": ["pear", "brick"], "label": ["A", "B"]}, ["pear", "brick"]),
        (["pear"], ["A", "B"]),
        (None, ["A", "B"]),
    ],
)
def test_letters_that_were_offered_become_the_documents_texts(choices: Any, expected: list[str]) -> None:
    assert choice_texts(["A", "B"], choices) == expected
    assert choice_texts(["oak", "iron"], choices) == ["oak", "iron"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Which?\nA. pear\nB. brick\nAnswer:", ["pear", "brick"]),
        ("Q1\nA. one\nB. two\nAnswer: A\n\nQ2\nA. pear\nB. brick\nAnswer:", ["pear", "brick"]),
        ("Which?\nA. pear\nB. brick\nC. wool\nAnswer:", ["A", "B"]),
        ("Which?", ["A", "B"]),
    ],
)
def test_letters_of_a_document_without_choices_become_the_texts_that_the_prompt_lists(
    prompt: str, expected: list[str]
) -> None:
    """MedQA's documents have ending0 to ending3."""
    assert choice_texts(["A", "B"], None, prompt) == expected
    assert choice_texts(["pear", "brick"], None, "A. one\nB. two") == ["pear", "brick"]


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("Which?\nA. red\nB. dark blue\nAnswer:", ["red", "dark blue"]),
        ("Which?\n(A) red\n(B) blue\n", ["red", "blue"]),
        ("Q\nA. x\nB. y\n\nQ\nA. red\nB. blue\nC. green", ["red", "blue", "green"]),
        ("A. Lincoln was who?", []),
        ("B. red\nC. blue", []),
        ("", []),
    ],
)
def test_options_of_a_prompt(prompt: str, options: list[str]) -> None:
    assert options_in(prompt) == options


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", "blue"),
        ("(A)", "red"),
        ("B. blue", "blue"),
        ("B. red", "B. red"),
        ("Z", "Z"),
        ("blue", "blue"),
        ("b", "blue"),
        ("(a)", "red"),
    ],
)
def test_answers_name_options_by_letter_or_by_both(answer: str, expected: str) -> None:
    assert option_named(answer, ["red", "blue"]) == expected


def test_a_small_letter_that_is_an_option_itself_is_that_option() -> None:
    assert option_named("a", ["b", "a"]) == "a"


def of(**options: object) -> OfficialFiles:
    whole = {"name": "mine", "records": lambda _: iter([Record(0, "line 1", {})]), "type_columns": (), **options}
    return OfficialFiles(**whole)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "later").mkdir()
    for name in ("samples_b.jsonl", "samples_a.jsonl", "results.json", "later/samples_c.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "samples_d.jsonl").mkdir()
    return tmp_path


def test_a_folder_stands_for_the_files_with_samples_below_it(run: Path) -> None:
    found = of(patterns=("samples_*.jsonl", "*_a.jsonl")).files_in([str(run), "-", "else.jsonl"])
    names = [str(run / name) for name in ("later/samples_c.jsonl", "samples_a.jsonl", "samples_b.jsonl")]
    assert found == (*names, "-", "else.jsonl")


@pytest.mark.parametrize(
    ("options", "names", "message"),
    [
        ({"patterns": ("*.eval",)}, ("",), r"this folder has no file named \*\.eval"),
        ({"patterns": ("samples_*.jsonl",)}, ("", "samples_a.jsonl"), r"samples_a\.jsonl is named twice"),
        ({}, ("",), "is a folder. With --from mine, name the folder's files"),
        ({"several": False}, ("samples_a.jsonl", "samples_b.jsonl"), "reads a single file of results"),
    ],
)
def test_what_cannot_be_read_together_is_refused(
    run: Path, options: dict[str, object], names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        of(**options).files_in([str(run / name) for name in names])


def test_one_file_by_two_names_is_refused(run: Path) -> None:
    again = f"{run}/later/../samples_a.jsonl"
    with pytest.raises(
        InputError, match=r"\.\./samples_a\.jsonl is named twice \(also as .*samples_a\.jsonl\)\. Leave"
    ):
        of().files_in([str(run / "samples_a.jsonl"), again])


def test_of_several_files_those_without_the_filter_are_left_out_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    logs = Path(__file__).parents[3] / "support/harness_logs/lm_eval"
    files = official_files({"official": "lm-eval", "sample_filter": "strict"})
    assert files is not None
    (found,) = files.files_in([str(logs)])
    assert "gw_sums" in found
    told = capsys.readouterr().err.splitlines()
    assert len(told) == len(list(logs.iterdir())) - 1
    assert told[0].endswith("no sample has filter strict. Use --filter with one of none")
    unknown = official_files({"official": "lm-eval", "sample_filter": "loose"})
    assert unknown is not None
    with pytest.raises(NoSuchFilterError, match="no sample has filter loose"):
        unknown.files_in([str(logs)])


def test_the_options_are_written_as_they_were_given() -> None:
    files = of(companions={"--questions": "q.json", "--annotations": ""}, options={"--filter": "x"})
    assert files.arguments == ("--from", "mine", "--questions", "q.json", "--filter", "x")
