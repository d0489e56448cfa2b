"""`gradewire bench ave` on samples whose scores the tests can work out themselves: letters of the answer over 128."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.client.cli.conftest import Command, read_rows, write_rows

from gradewire.agreement import Estimate
from gradewire.agreement.halves import half_of
from gradewire.cli.agree_tables import estimated
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2, types_pb2

NAMES = ("okvqa", "gqa")


def samples(count: int = 60, **columns: Any) -> list[dict[str, Any]]:
    """Answers of 1 to 30 letters; a longer one was graded higher, mostly. References count by their length, too."""
    random = np.random.default_rng(3)
    rows = []
    for number in range(count):
        letters = int(random.integers(1, 31))
        rows.append(
            {
                "id": f"s{number}",
                "question": f"question {number}",
                "references": ["a"],
                "prediction": "x" * letters,
                "descriptions": ["x" * (letters + int(random.integers(0, 9))) for _ in range(3)],
                "shifted_references": ["b" * int(random.integers(1, 5))],
                "grade": float(np.clip(letters / 3 + random.normal() * 2, 0, 10)),
                "dataset": NAMES[number % 2],
                **columns,
            }
        )
    return rows


def score(item: types_pb2.Item) -> float | None:
    """Letters of answer and reference over 128, which rounds nothing; none where the answer begins with z."""
    return None if item.prediction.startswith("z") else (len(item.prediction) + len(item.references[0])) / 128


def stub() -> StubTransport:
    return StubTransport(lambda request: echo_scores(request, score=score))


def expected(rows: list[dict[str, Any]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """float64[samples, parts] by the rule of `score`."""
    return np.array(
        [
            (
                (len(row["prediction"]) + 1) / 128,
                np.mean([len(text) + 1 for text in row["descriptions"]]) / 128,
                (len(row["prediction"]) + len(row["shifted_references"][0])) / 128,
            )
            for row in rows
        ]
    )


def benched(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> dict[str, Any]:
    """JSON of `bench ave` on these samples."""
    file, figures = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "figures.json"
    listed = () if "--metrics" in options else ("--metrics", "sbert")
    done = command(
        "bench", "ave", file, *listed, "--resamples", "100", "--json", figures, "--quiet", *options, stub=stub()
    )
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(figures.read_text())
    return document


def check(found: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    scores, grades = expected(rows), [row["grade"] for row in rows]
    parts = [stats.spearmanr(column, grades).statistic for column in scores.T]
    assert [part["value"] for part in found["parts"]] == pytest.approx(parts)
    assert found["alignment"]["value"] == pytest.approx(np.mean(parts))
    assert found["consistency"]["value"] == pytest.approx(math.log2(1 / np.mean(scores.var(axis=1))))


def test_the_figures_are_those_of_the_paper(command: Command, tmp_path: Path) -> None:
    rows = samples()
    document = benched(command, tmp_path, rows)
    found = document["evaluators"]["sbert"]
    check(found, rows)
    by_dataset = {}
    for name in NAMES:
        own = [row for row in rows if row["dataset"] == name]
        grades = [row["grade"] for row in own]
        by_dataset[name] = np.mean([stats.spearmanr(column, grades).statistic for column in expected(own).T])
    assert found["datasets"] == pytest.approx(by_dataset)
    assert found["generalization"]["value"] == pytest.approx(math.log2(1 / np.var(list(by_dataset.values()))))
    assert (document["samples"], found["samples"], found["failed"]) == (60, 60, [0, 0, 0])
    assert found["alignment"]["low"] < found["alignment"]["value"] < found["alignment"]["high"]


def test_columns_of_other_names_and_several_for_one_field(command: Command, tmp_path: Path) -> None:
    rows = samples()
    renamed = [
        {
            "q": row["question"],
            "gold": row["references"][0],
            "said": row["prediction"],
            **{f"desc{place}": text for place, text in enumerate(row["descriptions"])},
            "syn": row["shifted_references"][0],
            "first": row["grade"] - 1,
            "second": row["grade"] + 1,
            "from": row["dataset"],
        }
        for row in rows
    ]
    maps = ("question=q", "references=gold", "prediction=said", "descriptions=desc0,desc1,desc2")
    maps += ("shifted_references=syn", "labels=first,second", "dataset=from")
    document = benched(command, tmp_path, renamed, *(part for pair in maps for part in ("--map", pair)))
    check(document["evaluators"]["sbert"], rows)


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_json_and_csv_are_read(command: Command, tmp_path: Path, suffix: str) -> None:
    rows = samples(20)
    file = tmp_path / f"ave.{suffix}"
    if suffix == "json":
        file.write_text(json.dumps(rows))
    else:
        lines = [",".join(rows[0])]
        for row in rows:
            cells = (json.dumps(value) if isinstance(value, list) else str(value) for value in row.values())
            lines.append(",".join('"' + cell.replace('"', '""') + '"' for cell in cells))
        file.write_text("\n".join(lines))
    figures = tmp_path / "figures.json"
    done = command(*("bench", "ave", file, "--metrics", "sbert", "--resamples", "100", "--json", figures), stub=stub())
    assert done.exit_code == 0, done.output
    check(json.loads(figures.read_text())["evaluators"]["sbert"], rows)


def test_texts_may_have_names(command: Command, tmp_path: Path) -> None:
    rows = samples()
    named = [
        {**row, "descriptions": dict(zip("abc", row["descriptions"], strict=True)), "references": {"gold": "a"}}
        for row in rows
    ]
    check(benched(command, tmp_path, named)["evaluators"]["sbert"], rows)


def test_a_half_and_where_choose_samples(command: Command, tmp_path: Path) -> None:
    rows = samples(80)
    wanted = [row for row in rows if half_of(row["question"]) == "b" and row["dataset"] == "gqa"]
    assert 10 < len(wanted) < 40
    document = benched(command, tmp_path, rows, "--half", "b", "--where", "dataset=gqa")
    assert document["samples"] == len(wanted)
    check(document["evaluators"]["sbert"], wanted)


def test_metrics_of_one_name_are_told_apart_and_compared(command: Command, tmp_path: Path) -> None:
    rows = samples()
    metrics = "sfve?model=base,sfve?model=mini,rouge_l"
    document = benched(command, tmp_path, rows, "--metrics", metrics, "--baseline", "sfve?model=base")
    assert list(document["evaluators"]) == ["sfve?model=base", "sfve?model=mini", "rouge_l"]
    gain = document["differences"]["sfve?model=mini"]
    # The stub scores both alike.
    assert (gain["alignment"]["value"], gain["consistency"]["value"]) == (0, 0)
    assert list(document["differences"]) == ["sfve?model=mini", "rouge_l"]


def test_items_are_scored_elsewhere_and_read_back_whatever_is_chosen(command: Command, tmp_path: Path) -> None:
    rows = samples(40)
    file, items = write_rows(tmp_path / "ave.jsonl", rows), tmp_path / "items.jsonl"
    assert command("bench", "ave", file, "--items", items, "--half", "a").exit_code == 0
    written = read_rows(items.read_text())
    assert len(written) == 40 * 5
    assert [item["part"] for item in written[:5]] == [1, 2, 2, 2, 3]
    assert written[3] == {
        "id": "s0/2.3",
        "question": "question 0",
        "references": ["a"],
        "prediction": rows[0]["descriptions"][2],
        "label": rows[0]["grade"],
        "dataset": "okvqa",
        "part": 2,
        "half": half_of("question 0"),
        "sample": 0,
        "chosen": written[3]["chosen"],
    }
    scores = tmp_path / "scores.jsonl"
    assert command("score", items, "--metrics", "sbert", "--out", scores, "--quiet", stub=stub()).exit_code == 0
    for half in ("a", "b"):
        own = [row for row in rows if half_of(row["question"]) == half]
        document = benched(command, tmp_path, rows, "--half", half, "--scores", str(scores))
        check(document["evaluators"]["sbert"], own)


def test_failed_items_enter_no_figure_and_are_counted(command: Command, tmp_path: Path) -> None:
    rows = samples()
    rows[0]["prediction"] = "zzz"
    rows[1]["descriptions"] = ["zz", rows[1]["descriptions"][1], "z"]
    rows[2]["descriptions"] = ["z", "z", "z"]
    found = benched(command, tmp_path, rows)["evaluators"]["sbert"]
    assert found["failed"] == [1, 1, 1]
    assert found["samples"] == 58
    scores, grades = expected(rows), np.array([row["grade"] for row in rows])
    scores[1, 1] = (len(rows[1]["descriptions"][1]) + 1) / 128
    kept = np.arange(60) != 2
    assert found["parts"][1]["value"] == pytest.approx(stats.spearmanr(scores[kept, 1], grades[kept]).statistic)
    assert found["parts"][0]["value"] == pytest.approx(stats.spearmanr(scores[1:, 0], grades[1:]).statistic)
    done = command("bench", "ave", tmp_path / "rows.jsonl", "--metrics", "sbert", "--resamples", "100", stub=stub())
    assert "sbert: sbert/1" in done.stdout


def said(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> str:
    file = write_rows(tmp_path / "rows.jsonl", rows)
    done = command("bench", "ave", file, "--metrics", "sbert", "--resamples", "100", "--quiet", *options, stub=stub())
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_what_is_not_defined_is_a_dash_with_its_reason(command: Command, tmp_path: Path) -> None:
    assert "no alignment: all 60 samples have the grade 7" in said(command, tmp_path, samples(grade=7))
    one = said(command, tmp_path, samples(dataset="vqa"))
    assert "no generalization: there is one data set" in one
    equal = said(command, tmp_path, samples(prediction="xx"))
    assert "sbert has no figure for part 1: all scores are 0.02344" in equal
    rows = [{**row, **({"dataset": "d" * 50} if number < 2 else {})} for number, row in enumerate(samples())]
    rows[0]["grade"] = rows[1]["grade"]
    assert f"sbert has no generalization: all scores or grades of a part are alike in {'d' * 40}…" in said(
        command, tmp_path, rows
    )
    many = [{**row, "dataset": f"set {number // 2}"} for number, row in enumerate(samples())]
    assert "10 further data sets are in --json alone" in said(command, tmp_path, many)
    rows = [{**row, "descriptions": []} for row in samples()]
    absent = said(command, tmp_path, rows)
    assert "60 of 60 samples have no part 2 (looked for descriptions, description)" in absent
    assert "sbert has no figure for part 2: no sample has a score there" in absent
    document = benched(command, tmp_path, rows)["evaluators"]["sbert"]
    assert document["alignment"]["value"] is document["consistency"]["value"] is None
    assert document["parts"][0]["value"] is not None


def test_samples_that_cannot_be_judged_are_left_out_and_counted(command: Command, tmp_path: Path) -> None:
    rows = samples()
    good = rows[6:]
    rows[0]["grade"] = math.nan
    rows[1]["grade"] = "much"
    rows[2]["prediction"] = " "
    rows[3]["references"] = [None, ""]
    rows[4]["descriptions"] = ["x"] * 101
    rows[5]["grade"] = math.inf
    text = said(command, tmp_path, rows)
    for reason in (
        "1 rows were left out: the row has no label (first at line 1)",
        "2 rows were left out: the label cannot be read as a number (first at line 2)",
        "1 rows were left out: the row has no prediction",
        "1 rows were left out: the row has no reference",
        "1 rows were left out: the row has more than 100 descriptions",
    ):
        assert reason in text
    document = benched(command, tmp_path, rows)
    assert document["samples"] == 54
    check(document["evaluators"]["sbert"], good)


def test_ids_may_repeat_and_texts_may_be_long(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "id": "same"} for row in samples()]
    rows[0]["descriptions"] = ["x" * 10**6, "\u0000\ud800", "x " * 500_000]
    found = benched(command, tmp_path, rows)["evaluators"]["sbert"]
    assert (found["samples"], found["failed"]) == (60, [0, 0, 0])


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], (), "there is no sample to be judged: the file has none"),
        ([{"a": 1}], (), "1 rows were left out: the row has no reference (first at line 1) (its columns: a"),
        (samples(5), ("--half", "a", "--where", "dataset=none"), "there is no sample to be judged"),
        (samples(5), ("--map", "descriptions=desc1"), "there is no column 'desc1'; the columns are: id, question"),
        (samples(5), ("--where", "split=test"), "there is no column 'split'"),
        (samples(5), ("--map", "fame=x"), "write FIELD=COLUMN, FIELD one of id, question"),
        (samples(5), ("--baseline", "smile"), "--baseline smile: there is no such metric, there are sbert"),
    ],
)
def test_wrong_input_says_the_way_out(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], options: tuple[str, ...], message: str
) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows)
    done = command("bench", "ave", file, "--metrics", "sbert", "--quiet", *options, stub=stub())
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_the_table_is_like_the_papers(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "table.md"
    file = write_rows(tmp_path / "rows.jsonl", samples())
    options = ("--resamples", "100", "--markdown", page, "--quiet")
    done = command("bench", "ave", file, *options, stub=stub())
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "| evaluator | part 1 | part 2 | part 3 | alignment | consistency | generalization |" in text
    assert "| evaluator | gqa | okvqa | consistency / spread | samples | failed by part |" in text
    named = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:9]
    assert named == ["sbert", "sfve", "bertscore", "smile", "rouge_l", "bleu", "meteor", "exact_match"]
    assert "intervals: draws of whole questions, 100 for Spearman, alignment" in text


def test_bounds_from_ten_on_keep_their_digits() -> None:
    found = Estimate(10.9, 10.8, 11.25, 100)
    assert estimated(found) == "10.900 [10.800, 11.250]"
    assert estimated(Estimate(-0.25, -0.5, 0.125, 100)) == "-0.250 [-.500, .125]"


def test_no_output_replaces_the_input(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", samples(5))
    for option in ("--json", "--markdown", "--items"):
        assert command("bench", "ave", file, option, file).exit_code == 2
    assert len(read_rows(file.read_text())) == 5


def test_scores_of_other_items_are_refused(command: Command, tmp_path: Path) -> None:
    file, items = write_rows(tmp_path / "a.jsonl", samples(5)), tmp_path / "items.jsonl"
    command("bench", "ave", file, "--items", items)
    scores = tmp_path / "scores.jsonl"
    command("score", items, "--metrics", "sbert", "--out", scores, "--quiet", stub=stub())
    other = write_rows(tmp_path / "b.jsonl", samples(5, references=["c"]))
    done = command("bench", "ave", other, "--scores", scores)
    assert done.exit_code == 2
    assert "was made from another text" in done.stderr


def test_the_request_holds_the_parts(command: Command, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        seen.extend((item.references[0], item.prediction) for item in request.items)
        return echo_scores(request, score=score)

    (row,) = samples(1)
    file = write_rows(tmp_path / "rows.jsonl", [row])
    done = command("bench", "ave", file, "--metrics", "sbert", "--quiet", stub=StubTransport(answer))
    assert done.exit_code == 0, done.output
    shifted = (row["shifted_references"][0], row["prediction"])
    assert seen == [("a", row["prediction"]), *(("a", text) for text in row["descriptions"]), shifted]
