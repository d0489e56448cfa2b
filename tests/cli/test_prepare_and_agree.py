import json
import math
from pathlib import Path

import pytest
from scipy import stats
from tests.cli.conftest import Command, answer, write_rows

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2

ROWS = [
    {
        "question": f"question {index // 2}",
        "references": "a",
        "prediction": "x" * (1 + (index * 7) % 20),
        "label": int((index * 7) % 20 + index % 3 > 10),
        "dataset": "nq" if index < 20 else "tq",
        "model": "big" if index % 2 else "small",
    }
    for index in range(40)
]


def test_agree_prints_tables_and_writes_all_figures(command: Command, tmp_path: Path) -> None:
    file, figures = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "figures.json"
    done = command("agree", file, "--metrics", "smile,exact_match", "--resamples", "200", "--json", figures)
    assert done.exit_code == 0
    assert "Mean of 4 cells" in done.stdout
    document = json.loads(figures.read_text())
    cells = document["metrics"]["smile"]["cells"]
    assert [cell["level"] for cell in cells] == ["cell"] * 4 + ["dataset"] * 2 + ["model"] * 2 + ["all"]
    expected = stats.pearsonr([len(row["prediction"]) for row in ROWS], [row["label"] for row in ROWS]).statistic
    assert cells[-1]["pearson"]["value"] == pytest.approx(expected)
    assert cells[-1]["pearson"]["low"] < expected < cells[-1]["pearson"]["high"]
    mean = sum(cell["pearson"]["value"] for cell in cells[:4]) / 4
    assert document["metrics"]["smile"]["headline"]["pearson"]["value"] == pytest.approx(mean)
    # The stub's smile has no verdict; exact_match is one itself (never 1 here, so right where the label is 0).
    assert cells[-1]["accuracy"]["value"] is None
    wrong = sum(row["label"] == 0 for row in ROWS) / len(ROWS)
    assert document["metrics"]["exact_match"]["cells"][-1]["accuracy"]["value"] == pytest.approx(wrong)


def test_scores_of_an_earlier_run_give_the_same_figures(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    options = ("--resamples", "100", "--where", "model=big", "--metrics", "smile,sbert", "--compare", "smile", "sbert")
    command("score", file, "--out", out, "--metrics", "smile,sbert", "--quiet")

    def never(_: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        raise AssertionError("nothing is to be scored")

    earlier = command("agree", file, "--scores", out, *options, stub=StubTransport(never))
    now = command("agree", file, *options)
    assert (earlier.exit_code, earlier.stdout) == (0, now.stdout)
    found = next(line.split() for line in now.stdout.splitlines() if "smile minus sbert" in line)
    assert found[3:] == ["Pearson", "20", *["+0.0000", "[+0.0000,", "+0.0000]", "p", "=", "1.000"] * 2]


@pytest.mark.parametrize("kept", ["all", "model,label"])
def test_scores_with_kept_columns_belong_to_the_same_rows(command: Command, tmp_path: Path, kept: str) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--metrics", "smile", "--keep-columns", kept, "--quiet")
    assert command("agree", file, "--scores", out, "--resamples", "100").exit_code == 0
    changed = write_rows(tmp_path / "b.jsonl", [*ROWS[:5], {**ROWS[5], "prediction": "other"}])
    assert "a different row at line 6" in command("agree", changed, "--scores", out).stderr


def test_scores_of_another_file_are_refused(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--quiet")
    changed = write_rows(tmp_path / "b.jsonl", [*ROWS[:5], {**ROWS[5], "prediction": "other"}])
    done = command("agree", changed, "--scores", out)
    assert done.exit_code == 2
    assert "a different row at line 6" in done.stderr
    longer = write_rows(tmp_path / "c.jsonl", [*ROWS, ROWS[0]])
    assert "no scores for line 41" in command("agree", longer, "--scores", out).stderr


def test_scores_in_a_table_are_refused_with_the_way_out(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.csv"
    assert command("score", file, "--out", out, "--quiet").exit_code == 0
    done = command("agree", file, "--scores", out)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{out}: --scores reads JSONL, not tables. Run: gradewire score --out FILE.jsonl" in done.stderr
    done = command("agree", file, "--scores", file)
    assert f"{file}: line 1 is not an output row from gradewire score" in done.stderr
    assert "--out" not in done.stderr


def test_a_metric_is_not_compared_with_itself(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    for other in ("smile", "smile:v1"):
        done = command("agree", file, "--metrics", "smile,sbert", "--compare", "smile", other)
        assert done.exit_code == 2
        assert f"--compare smile {other} names one metric twice. Name two metrics" in done.stderr


def test_failures_are_counted_and_unlabelled_rows_left_out(command: Command, tmp_path: Path) -> None:
    labels = [None, "?", math.nan, "", 10**400, "[1,", "nan", [1, "x"]]
    rows = [*ROWS, {**ROWS[0], "prediction": ""}, *({**ROWS[0], "label": label} for label in labels)]
    file, figures = write_rows(tmp_path / "a.jsonl", rows), tmp_path / "figures.json"
    done = command("agree", file, "--resamples", "100", "--json", figures)
    document = json.loads(figures.read_text())
    smile = document["metrics"]["smile"]
    assert (smile["cells"][-1]["rows"], smile["cells"][-1]["failed"]) == (40, 1)
    assert smile["statuses"] == {"OK": 40, "EMPTY_PREDICTION": 1}
    assert (document["labels"]["unlabelled_rows"], document["labels"]["unreadable"]) == (3, 5)
    assert "left out 3 rows without a label" in done.stderr
    assert "5 rows have an unreadable label (first at line 43: '?'; --label-map gives words a value)" in done.stderr
    assert not math.isnan(smile["cells"][-1]["pearson"]["value"])


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("score", 1, "1    some rows have no score (see --fail-on)"),
        ("prepare", 1, "1    some rows could not be prepared"),
        ("agree", 0, "141  standard output was closed early"),
    ],
)
def test_the_help_says_what_bad_rows_do_to_the_exit_code(
    command: Command, tmp_path: Path, name: str, code: int, said: str
) -> None:
    file = write_rows(tmp_path / "a.jsonl", [*ROWS, {"references": [["a"]], "prediction": "b", "label": 1}])
    assert command(name, file, *(["--resamples", "100"] if name == "agree" else [])).exit_code == code
    helped = command(name, "--help").stdout
    assert said in helped
    assert ("--fail-on" in helped) == (name == "score")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--where", "size=big"], "no column 'size'. Columns: question, references"),
        (["--where", "model"], "write COLUMN=VALUE"),
        (["--where", "model=huge"], "a.jsonl has no rows that match --where model=huge"),
        (["--where", "model=huge", "--against", "smile"], "a.jsonl has no rows that match --where model=huge"),
        (
            ["--map", "label=question"],
            "the first labels are all unreadable (line 1: 'question 0'). Give words a value",
        ),
        (["--map", "label=size"], "no column 'size'. Columns: question, references"),
        (["--compare", "smile", "sbert"], "--compare sbert: no such metric. Choose one of smile"),
        (["--scores", "nowhere.jsonl"], "nowhere.jsonl does not exist"),
    ],
)
def test_wrong_usage_of_agree(command: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    done = command("agree", write_rows(tmp_path / "a.jsonl", ROWS), *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_agree_on_a_file_that_is_not_there_exits_2(command: Command, tmp_path: Path) -> None:
    done = command("agree", tmp_path / "data.jsonl", "--metrics", "smile")
    assert (done.exit_code, done.stderr) == (2, f"Error: {tmp_path / 'data.jsonl'}: No such file or directory\n")


def test_agree_without_a_label_column_names_the_columns(command: Command, tmp_path: Path) -> None:
    done = command("agree", write_rows(tmp_path / "a.jsonl", [{"references": "a", "prediction": "b"}]))
    assert done.exit_code == 2
    assert "(looked for label, human_score, labels, annotations). Columns: references" in done.stderr


def test_prepare_prints_the_name_of_the_set_and_nothing_else(command: Command, tmp_path: Path) -> None:
    rows = [{"question": f"q{index % 3}", "reference": "a", "syn_ans": ["It is a."]} for index in range(9)]
    done = command("prepare", write_rows(tmp_path / "a.jsonl", rows))
    again = command("prepare", write_rows(tmp_path / "b.jsonl", rows[:3]), "--quiet")
    assert done.exit_code == again.exit_code == 0
    assert len(done.stdout) == 33
    assert done.stdout == again.stdout, "the name is made of the distinct references"
    assert "3 reference lists in 9 rows" in done.stderr
    assert again.stderr == ""


def test_prepare_names_the_rows_it_cannot_read(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"references": "a"}\n{broken\n{"references": [3.5, null]}\n')
    done = command("prepare", file)
    assert done.exit_code == 1
    assert "not prepared: line 2 is not JSON" in done.stderr
    assert "not prepared: line 3: INVALID_INPUT" in done.stderr


def test_prepare_without_references_says_so(command: Command, tmp_path: Path) -> None:
    done = command("prepare", write_rows(tmp_path / "a.jsonl", [{"prediction": "x"}]))
    assert done.exit_code == 2
    assert "no column for references" in done.stderr
    done = command("prepare", write_rows(tmp_path / "a.jsonl", [{"references": "x"}]), "--reference-set", "name")
    assert "derives the name from the content" in done.stderr


def test_stub_answers_are_those_of_the_conftest() -> None:
    # The figures above rest on it: scores grow with the length of the prediction.
    request = scoring_pb2.ScoreRequest(items=[{"prediction": "xxx"}], metrics=[{"smile": {}}])
    assert answer(request).items[0].results[0].score == pytest.approx(0.03)
