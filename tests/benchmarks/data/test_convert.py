"""Rows of the public files' form, by small files of our own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.data.convert import ConversionError, evouna, nq301
from tests.benchmarks.data.sources_in_form import DEVELOPMENT, UNSEEN, question, write_evouna, write_nq301


def test_evouna_gives_the_development_part_of_proper_questions(tmp_path: Path) -> None:
    nq = [question(UNSEEN), question(improper=True, fid=("x", None)), question(fid=(" One\u00a0or two. ", True))]
    rows = list(evouna(write_evouna(tmp_path, nq=nq, tq=[question(golden="Skorpio")])))
    assert [row["id"] for row in rows[4:6]] == ["nq-2-newbing", "tq-0-fid"]
    assert rows[0] == {
        "id": "nq-2-fid",
        "question": DEVELOPMENT,
        "references": ["one", "1"],
        "prediction": "One\u00a0or two.",
        "label": 1,
        "dataset": "nq",
        "model": "fid",
    }
    assert (rows[9]["references"], rows[9]["label"], rows[9]["dataset"]) == (["Skorpio"], 0, "tq")
    assert [row["model"] for row in rows[:5]] == ["fid", "gpt35", "chatgpt", "gpt4", "newbing"]


def test_evounas_answers_that_nobody_judged_are_no_rows(tmp_path: Path) -> None:
    nq = [question(gpt4=("None", "nan"), newbing=(None, None))]
    assert [row["model"] for row in evouna(write_evouna(tmp_path, nq=nq, tq=[]))] == ["fid", "gpt35", "chatgpt"]


def test_nq301_has_a_row_a_line_with_its_annotators(tmp_path: Path) -> None:
    lines = [
        "1\twho sang\tAn answer \tYes\tYes\tYes\t",
        '1\twho sang\t"Mercy (The Ecology)" is a song\tNo\tNo\tYes\tNo',
        '2\twhat is it\tSteven "Steve" K\tYes\tNo\tYes\tYes',
    ]
    sources = write_nq301(tmp_path, lines, {"what is it": ["K."], "who sang": ["a", "b\u00a0c"]})
    first, second, third = nq301(sources)
    assert first == {
        "id": "nq301-0",
        "question": "who sang",
        "references": ["a", "b\u00a0c"],
        "prediction": "An answer",
        "labels": [1, 1],
        "label": 1,
        "dataset": "nq301",
    }
    # As Python's csv reads it, and the rows of the figures have it: a quote that opens the cell is none of its text.
    assert (second["prediction"], second["labels"], second["label"]) == ("Mercy (The Ecology) is a song", [0, 1, 0], 0)
    assert (third["id"], third["prediction"], third["references"]) == ("nq301-2", 'Steven "Steve" K', ["K."])


@pytest.mark.parametrize(
    ("convert", "write", "said"),
    [
        (
            evouna,
            lambda at: write_evouna(at, nq=[question(), {"question": "?"}], tq=[]),
            r"NQ\.json: question 1 .*improper",
        ),
        (evouna, lambda at: write_evouna(at, nq=[], tq=["text"]), r"TQ\.json: question 0"),
        (nq301, lambda at: write_nq301(at, ["1\tq\ta\tMaybe\tYes\tYes\t"], {"q": ["r"]}), r"human\.tsv: row 0 .*Maybe"),
        (nq301, lambda at: write_nq301(at, ["1\tq\ta\tYes\tYes\tYes\t"], {"other": ["r"]}), r"human\.tsv: row 0 .*'q'"),
        (nq301, lambda at: write_nq301(at, ["1\tq\ta"], {"q": ["r"]}), r"human\.tsv: row 0"),
    ],
)
def test_another_form_is_told_with_its_place(
    tmp_path: Path, convert: Callable[..., Any], write: Callable[[Path], list[Path]], said: str
) -> None:
    with pytest.raises(ConversionError, match=said):
        list(convert(write(tmp_path)))
