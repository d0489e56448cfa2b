"""Files of data sets with human labels, in the published forms: what becomes of each row, as one reads them by hand."""

import gzip
import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from tests.cli.conftest import Command
from tests.cli.judged import CUT_LETTERS, judging_stub
from tests.hostile.gateway_readers import steps
from tests.support.damaged_documents import check_rows, mangled

from gradewire_cli.problems import InputError
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official.human_labels import BEM_LOG, EVOUNA_LOG, FILES, VERIFIERBENCH_LOG, split_references
from gradewire_cli.rows.row import open_rows

LOGS = {"verifierbench": VERIFIERBENCH_LOG, "bem": BEM_LOG, "evouna": EVOUNA_LOG}

VERIFIERBENCH: list[dict[str, Any]] = [
    {
        "question": "How many legs has a spider?",
        "gold_answer": "8",
        "llm_response": "A spider has eight legs.",
        "gold_judgment": "A",
        "data_source": "zoo",
        "domain": "Knowledge",
        "answer_type": "Numerical",
    },
    {"question": "2 + 2?", "gold_answer": "4", "llm_response": "It is 5.", "gold_judgment": "B", "domain": "Math"},
    {"question": "Which?", "gold_answer": "['C']", "llm_response": "so so so so", "gold_judgment": "C"},
]
BEM: list[dict[str, Any]] = [
    {"qid": "x1", "gold_index": 0, "context": "…", "question": "Who?", "reference": "Ada", "candidate": "Ada L."},
    {"qid": "x1", "gold_index": 0, "context": "…", "question": "Who?", "reference": "Ada", "candidate": "Bob"},
    {"qid": "x1", "gold_index": 0, "context": "…", "question": "Who?", "reference": "Ada", "candidate": "Ada L."},
    {"qid": "x2", "gold_index": 1, "context": "…", "question": "When?", "reference": "1815", "candidate": "in 1815"},
]
for entry, score in zip(BEM, (1.0, 0.0, 0.0, 1.0), strict=True):
    entry["score"] = score
EVOUNA: list[dict[str, Any]] = [
    {
        "question": "which river runs through paris",
        "golden_answer": "the Seine/ Seine",
        "answer_fid": "Seine",
        "judge_fid": True,
        "answer_newbing": "The river is the Rhine.",
        "judge_newbing": False,
        "improper": False,
    },
    {
        "question": "who is prime minister now",
        "golden_answer": "N. N.",
        "answer_fid": "M. M.",
        "judge_fid": None,
        "answer_newbing": None,
        "judge_newbing": False,
        "improper": True,
    },
]
DOCUMENTS = {"verifierbench": VERIFIERBENCH, "bem": BEM, "evouna": EVOUNA}


def as_list(entries: list[dict[str, Any]]) -> bytes:
    return json.dumps(entries, indent=1).encode()


def as_lines(entries: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in entries).encode()


def read(name: str, path: Path) -> list[Record]:
    return list(LOGS[name].read(str(path)))


@pytest.fixture(params=[as_list, as_lines], ids=["list", "lines"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], list[Record]]:
    """Reads a data set's file, written as a list or line by line."""

    def call(name: str) -> list[Record]:
        path = tmp_path / f"{name}-test.json"
        path.write_bytes(request.param(DOCUMENTS[name]))
        return read(name, path)

    return call


def test_judgments_of_verifierbench(written: Callable[[str], list[Record]]) -> None:
    first, second, third = (record.fields or {} for record in written("verifierbench"))
    assert first == {
        "id": "verifierbench-test/0",
        "question": "How many legs has a spider?",
        "references": "8",
        "prediction": "A spider has eight legs.",
        "label": 1,
        "flags": [],
        "dataset": "zoo",
        "domain": "Knowledge",
        "answer_type": "Numerical",
    }
    assert (second["label"], second["dataset"], second["domain"]) == (0, "", "Math")
    assert (third["label"], third["flags"], third["references"]) == (None, ["invalid"], ["C"])


def test_ratings_of_one_example_of_bem_are_one_row(written: Callable[[str], list[Record]]) -> None:
    records = written("bem")
    assert [record.index for record in records] == [0, 1, 2]
    found = [record.fields or {} for record in records]
    assert [(row["id"], row["question_id"], row["prediction"], row["labels"]) for row in found] == [
        ("bem-test/x1/0", "x1", "Ada L.", [1.0, 0.0]),
        ("bem-test/x1/1", "x1", "Bob", [0.0]),
        ("bem-test/x2/3", "x2", "in 1815", [1.0]),
    ]
    assert found[0]["references"] == ["Ada"]
    assert found[0]["dataset"] == "bem-test"


def test_systems_of_evouna_are_rows_of_their_own(written: Callable[[str], list[Record]]) -> None:
    found = [record.fields or {} for record in written("evouna")]
    assert [(row["id"], row["model"], row["prediction"], row["label"], row["flags"]) for row in found] == [
        ("evouna-test/0/fid", "fid", "Seine", True, []),
        ("evouna-test/0/newbing", "newbing", "The river is the Rhine.", False, []),
        ("evouna-test/1/fid", "fid", "M. M.", None, ["improper"]),
        ("evouna-test/1/newbing", "newbing", None, None, ["improper"]),
    ]
    assert found[0]["references"] == ["the Seine", "Seine"]
    assert {row["question_id"] for row in found} == {"evouna-test/0", "evouna-test/1"}


@pytest.mark.parametrize(
    "text",
    [
        "3/4",
        "1 3/4 cups",
        "km/h",
        "60 km/h",
        "1.5 Gbit/s",
        "24/7",
        "and/or",
        "cats and/or dogs",
        "n/a",
        "I/O",
        "5 mg/dL",
        "9.8 m/s²",
        "und/oder",
        "9/11/2001",
        "2001/9/11",
        "1979/80",
        "winter 406/5 BC",
        "https://a.org/b/c",
        "see www.a.org/b",
    ],
)
def test_a_slash_inside_a_reference_stays(text: str) -> None:
    assert split_references(text) == [text]
    assert split_references(f"{text} / Paris") == [text, "Paris"]


@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("the Seine/ Seine", ["the Seine", "Seine"]),
        ("Olivia/MFSK", ["Olivia", "MFSK"]),
        ("5/five", ["5", "five"]),
        ("3/Three/three", ["3", "Three", "three"]),
        ("31 states/31", ["31 states", "31"]),
        ("BBC/the BBC", ["BBC", "the BBC"]),
        ("JFK/J.F.K", ["JFK", "J.F.K"]),
        ("1977/May 25, 1977/in 1977", ["1977", "May 25, 1977", "in 1977"]),
        ("\u65e5\u672c\u570b/Nippon/\u65e5\u672c", ["\u65e5\u672c\u570b", "Nippon", "\u65e5\u672c"]),
        ("\U0001f401/Mouse", ["\U0001f401", "Mouse"]),
        ("a thing//another thing/", ["a thing", "another thing"]),
        ("/", []),
        # Doubtful: the parts, and the whole text.
        *[
            (f"{left}/{right}", [left, right, f"{left}/{right}"])
            for left, right in (
                *(("AC", "DC"), ("LA", "New York"), ("NY", "LA"), ("USA", "UK"), ("Li", "Wu"), ("he", "she")),
                *(("yes", "no"), ("$5", "$6"), ("$500", "$600"), ("TCP", "IP"), ("AI", "ML")),
            )
        ],
        ("GNU/Linux/Linux", ["GNU", "Linux", "GNU/Linux"]),
        ("1938/1933/1912", ["1938", "1933", "1912", "1938/1933/1912"]),
        ("1918/30 October 1918", ["1918", "30 October 1918", "1918/30 October 1918"]),
        ("UN/LOCODE/Koblenz", ["UN", "LOCODE", "Koblenz", "UN/LOCODE"]),
        ("4 in/4-inch", ["4 in", "4-inch", "4 in/4-inch"]),
    ],
)
def test_a_slash_between_references_separates_them(text: str, references: list[str]) -> None:
    assert split_references(text) == references


def test_the_steps_grow_with_the_urls_of_a_text_and_not_faster() -> None:
    few, many = (steps(lambda size=size: split_references("www.a/ " * size)) for size in (200, 2_000))
    assert many <= 11 * few


@given(st.lists(st.text("aB1 /.:,", max_size=6), max_size=6).map("/".join))
def test_splitting_loses_no_words(text: str) -> None:
    found = split_references(text)
    assert all(part and part == part.strip() and part in text for part in found)
    assert len(set(found)) == len(found)
    words = re.findall(r"[^/\s]+", text)
    assert {word for part in found for word in re.findall(r"[^/\s]+", part)} == set(words)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("False", False),
        ("true", True),
        (" YES ", True),
        ("no", False),
        ("0", False),
        ("1", True),
        (0, False),
        (1.0, True),
        (None, None),
        ("", None),
        ("nan", None),
        (math.nan, None),
    ],
)
def test_words_and_numbers_are_truth_values(tmp_path: Path, value: Any, label: Any) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(as_lines([{**EVOUNA[0], "judge_fid": value}, {**EVOUNA[0], "improper": value}]))
    found = [record.fields or {} for record in read("evouna", path)]
    assert [row["label"] for row in found[:2]] == [label, False]
    assert [row["flags"] for row in found[2:]] == [["improper"] if label else []] * 2
    assert found[2]["label"] is (None if label else True)


@pytest.mark.parametrize("value", ["maybe", 2, 0.5, [True], {"a": 1}])
def test_other_values_are_an_error_of_the_answer_that_names_field_and_line(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(as_lines([EVOUNA[0], {**EVOUNA[0], "judge_fid": value}, {**EVOUNA[0], "improper": value}]))
    rows = list(open_rows("mine", EVOUNA_LOG.read(str(path)), RowOptions(), only_texts=False).rows)
    assert [row.problem for row in rows] == [
        "",
        "",
        f"line 2 fid has {value!r} as judge_fid. Write true or false (yes and no, or 1 and 0, are also read)",
        "",
        *(
            f"line 3 {system} has {value!r} as improper. Write true or false (yes and no, or 1 and 0, are also read)"
            for system in ("fid", "newbing")
        ),
    ]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("verifierbench", [{"question": "q", "answer": "a"}], "row 1 lacks gold_answer and llm_response and gold_judg"),
        ("bem", [{"question": "q", "reference": "a"}], "row 1 lacks candidate and score .its fields: question, refere"),
        ("evouna", [{"question": "q"}], "row 1 lacks golden_answer .its fields: question"),
        ("evouna", [{"question": "q", "golden_answer": "a"}], "lacks answer_SYSTEM and judge_SYSTEM"),
        ("evouna", VERIFIERBENCH, "It looks like a log from verifierbench. Use --from verifierbench"),
        ("verifierbench", EVOUNA, "It looks like a log from evouna. Use --from evouna"),
        ("verifierbench", BEM, "It looks like a log from bem. Use --from bem"),
    ],
)
def test_other_files_are_refused_with_the_missing_fields(
    tmp_path: Path, name: str, content: list[dict[str, Any]], says: str
) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(as_list(content))
    with pytest.raises(InputError, match=f"is not a file from {name}: .*{says}"):
        read(name, path)


def test_an_entry_that_lacks_a_field_is_a_row_with_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl.gz"
    path.write_bytes(gzip.compress(as_lines([*BEM, {"question": "Why?", "candidate": "so"}])))
    assert [bool(record.problem) for record in read("bem", path)] == [False, False, False, True]


def test_a_judgment_that_is_none_of_the_three_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(as_lines([VERIFIERBENCH[0], {**VERIFIERBENCH[1], "gold_judgment": "maybe"}]))
    rows = list(open_rows("mine", LOGS["verifierbench"].read(str(path)), RowOptions(), only_texts=False).rows)
    assert [(row.human.value, bool(row.human.unreadable)) for row in rows] == [(1.0, False), (None, True)]


@pytest.mark.parametrize("name", LOGS)
def test_parquet_is_read_too(name: str, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    plain, path = tmp_path / "part.json", tmp_path / "part.parquet"
    plain.write_bytes(as_list(DOCUMENTS[name]))
    parquet.write_table(pyarrow.Table.from_pylist(DOCUMENTS[name]), path)
    names = ("id", "references", "prediction", "label", "labels", "flags")
    found, expected = (
        [[(record.fields or {}).get(each) for each in names] for record in read(name, file)] for file in (path, plain)
    )
    assert found == expected


@pytest.mark.parametrize("name", LOGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_mangled_files_are_rows_problems_or_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data.draw(mangled(DOCUMENTS[name]))))
    check_rows(LOGS[name].read, path)


def test_every_format_is_offered(command: Command) -> None:
    assert {files.name for files in FILES} == LOGS.keys()
    for name in ("agree", "calibrate"):
        refused = command(name, "x.json", "--from", "squad")
        assert refused.exit_code == 2
        assert all(f"'{each}'" in refused.stderr for each in LOGS)
        assert "'vqa'" not in refused.stderr


def test_agree_counts_what_it_leaves_out_and_says_why(command: Command, tmp_path: Path) -> None:
    # Answers of 5 to 12 letters; the stub calls those of at least CUT_LETTERS right.
    many = [
        {
            **EVOUNA[0],
            "question": f"question {number}",
            "answer_fid": "x" * (5 + number),
            "judge_fid": number % 3 == 0,
            "answer_newbing": "x" * (12 - number),
            "judge_newbing": number < 5,
        }
        for number in range(8)
    ]
    path = tmp_path / "NQ.json"
    path.write_bytes(as_list([*many, EVOUNA[1]]))
    options = ("--from", "evouna", "--metrics", "rouge_l", "--resamples", "100")
    done = command("agree", path, *options, "--json", tmp_path / "found.json", stub=judging_stub())
    assert done.exit_code == 0, done.output
    assert "left out 2 rows without a label (flagged: improper 2)" in done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["labels"]["unlabelled_rows"] == 2
    assert found["labels"]["unlabelled_flags"] == {"improper": 2}
    cells = {cell["model"]: cell for cell in found["metrics"]["rouge_l"]["cells"] if cell["level"] == "cell"}
    for system in ("fid", "newbing"):
        said = [len(entry[f"answer_{system}"]) >= CUT_LETTERS for entry in many]
        expected = cohen_kappa_score([entry[f"judge_{system}"] for entry in many], said)
        assert (cells[system]["dataset"], cells[system]["kappa"]["value"]) == ("NQ", pytest.approx(expected))


def test_agree_reads_the_ratings_of_bem_as_annotators(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "ae_dev.jsonl"
    path.write_bytes(as_lines([{**entry, "candidate": entry["candidate"] + "x" * 5} for entry in BEM] * 2))
    run = partial(command, "agree", path, "--from", "bem", "--metrics", "rouge_l", "--resamples", "100")
    out = tmp_path / "found.json"
    done = run("--json", out, stub=judging_stub())
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    # Every example twice in the file: four ratings, two and two.
    assert found["annotators"]["items"] == 3
    assert found["annotators"]["annotators"] == 4
    assert found["metrics"]["rouge_l"]["cells"][-1]["rows"] == 3


@pytest.mark.parametrize(
    ("rule", "labels"),
    [(None, [0.75, 0.5, 0.25, 0]), ("mean", [0.75, 0.5, 0.25, 0]), ("majority", [1, 0.5, 0, 0])],
)
def test_ratings_of_bem_make_a_label_and_a_tie_counts_as_right(
    command: Command, tmp_path: Path, rule: str | None, labels: list[float]
) -> None:
    ratings = [[1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0]]
    # Every verdict of the stub is "right", and its scores are lengths.
    letters = [CUT_LETTERS + more for more in (4, 3, 0, 1)]
    path, out = tmp_path / "ae.jsonl", tmp_path / "found.json"
    entries = [
        {**BEM[0], "question": f"question {count}", "candidate": "x" * count, "score": float(score)}
        for count, scores in zip(letters, ratings, strict=True)
        for score in scores
    ]
    path.write_bytes(as_lines(entries))
    options = ("--from", "bem", "--metrics", "rouge_l", "--resamples", "100", "--json", out)
    done = command("agree", path, *options, *(("--labels", rule) if rule else ()), stub=judging_stub())
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())["metrics"]["rouge_l"]["cells"][-1]
    assert found["pearson"]["value"] == pytest.approx(np.corrcoef(letters, labels)[0, 1])
    # Three of four and the tie are right.
    assert (found["rows"], found["accuracy"]["value"]) == (4, 0.5)


def test_score_reads_them_too(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "verifierbench.json"
    path.write_bytes(as_list(VERIFIERBENCH))
    done = command("score", path, "--from", "verifierbench", "--metrics", "rouge_l", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"verifierbench/{row}" for row in range(3)]
    assert lines[0]["input"] == {"domain": "Knowledge", "answer_type": "Numerical"}
