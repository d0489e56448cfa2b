"""`gradewire bench flips` over a stub: right from 8 letters on, UNCERTAIN at 8 or 9."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.cli.conftest import Command, answer, figures_of, read_rows, write_rows

from gradewire.testing import StubTransport
from gradewire_cli.bench.answer_edits import EDITS
from gradewire_cli.results.manifest import read_manifest
from gradewire_proto.v1 import scoring_pb2, types_pb2


def judge(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    for item in reply.items:
        for result in item.results:
            letters = round(result.score * 100)
            if request.metrics[result.metric_index].WhichOneof("metric") != "sbert":
                result.correct = letters >= 8
                if letters in {8, 9}:
                    result.warnings.append(types_pb2.WARNING_UNCERTAIN)
    return reply


def pair(answer: int, changed: int, label: int, **columns: Any) -> dict[str, Any]:
    """A pair of answers of so many letters."""
    row = {"question": "which", "references": ["a"], "answer": "x" * answer, "changed": "y" * changed, "label": label}
    return row | columns


# By the stub: noticed; a tie, silently wrong; UNCERTAIN right answer, and a wrong one called right; a kept verdict; a
# verdict that turns.
PAIRS = [
    pair(12, 4, 0, kind="role", id="one"),
    pair(12, 12, 0, kind="role"),
    pair(8, 20, 0, kind="number"),
    pair(12, 15, 1, kind="number"),
    pair(12, 3, 1, kind="number"),
]


@pytest.fixture
def flips(command: Command) -> Command:
    def run(*arguments: Any, **more: Any) -> Result:
        return command("bench", "flips", *arguments, stub=StubTransport(judge), **more)

    return run


def values(found: dict[str, Any]) -> dict[str, Any]:
    return {name: each["value"] if isinstance(each, dict) else each for name, each in found.items()}


def test_pairs_by_hand(flips: Command, tmp_path: Path) -> None:
    document = figures_of(flips, tmp_path, PAIRS, "--metrics", "smile,sbert", "--group-by", "kind")
    assert values(document["flips"]["smile"]) == {
        "pairs": 5,
        "right": 7,
        "wrong": 3,
        "without_score": 0,
        "without_verdict": 0,
        "decided_right": pytest.approx(6 / 10),
        "wrong_called_right": pytest.approx(2 / 3),
        "right_called_wrong": pytest.approx(1 / 7),
        "uncertain_right": pytest.approx(1 / 7),
        "uncertain_wrong": 0.0,
        "noticed": pytest.approx(1 / 3),
        "noticed_pairs": 3,
        "kept": 0.5,
        "kept_pairs": 2,
    }
    groups = document["groups"]["kind"]
    assert list(groups) == ["number", "role"]
    assert values(groups["role"]["smile"])["noticed"] == 0.5
    assert values(groups["number"]["smile"])["pairs"] == 3
    without = values(document["flips"]["sbert"])
    assert (without["decided_right"], without["kept"], without["noticed"]) == (None, None, pytest.approx(1 / 3))
    assert document["bootstrap"]["unit"] == "question"
    manifest = read_manifest(tmp_path / "figures.json.manifest.json")
    assert (manifest.command, manifest.counts.statuses["smile"]) == ("bench flips", {"OK": 10})


def test_tables(flips: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "pairs.jsonl", PAIRS)
    done = flips(file, "--metrics", "smile,sbert", "--group-by", "kind,label+kind", "--resamples", "100")
    assert done.exit_code == 0, done.output
    assert "Verdicts on 7 right and 3 wrong answers, as shares" in done.stdout
    assert "3 wrong and 2 harmless changes" in done.stdout
    assert "Decided and right, by kind" in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "number 3 0.500 -" in lines
    assert "0, role 2 0.750 -" in lines
    assert "all rows 5 0.600 -" in lines
    assert "sbert gives no verdicts, so it has no shares of verdicts" in done.stdout
    assert "Verdicts that change" not in done.stdout
    plain = flips(file, "--metrics", "smile", "--resamples", "100")
    assert "--all-tables" not in plain.stderr, "there are no more tables"


def test_edits_by_hand(flips: Command, tmp_path: Path) -> None:
    rows = [pair(6, 3, 0), pair(6, 3, 0), pair(12, 7, 1)]
    document = figures_of(flips, tmp_path, rows, "--metrics", "smile", "--edits")
    # The distinct right answers have 6, 12 and 7 letters.
    assert document["edits"].keys() == {
        *(EDITS.keys() - {"lower case", "without full stop", "NFD", "NFC", "non-breaking blanks"}),
        "all edits",
    }
    quoted = values(document["edits"]["double quotes"]["smile"])
    assert (quoted["answers"], quoted["scored"], quoted["judged"]) == (3, 3, 3)
    assert quoted["score_change"] == pytest.approx(0.02)
    assert quoted["verdicts_changed"] == pytest.approx(2 / 3), "6 and 7 letters become 8 and 9"
    assert quoted["certain_changed"] == pytest.approx(2 / 3)
    stopped = values(document["edits"]["with full stop"]["smile"])
    assert stopped["verdicts_changed"] == pytest.approx(1 / 3)
    assert document["edited_answers"] == 3 * 8
    assert document["flips"]["smile"]["pairs"] == 3, "edits are no pairs"


def test_edited_answers_take_up_items_in_the_order_of_their_places(flips: Command, tmp_path: Path) -> None:
    file, items = write_rows(tmp_path / "pairs.jsonl", PAIRS[:1]), tmp_path / "items.jsonl"
    done = flips(file, "--edits", "--items", items)
    assert done.exit_code == 0, done.output
    written = read_rows(items.read_text())
    assert [row["id"] for row in written[:4]] == [
        "one/answer",
        "one/changed",
        "one/answer/upper case",
        "one/answer/with full stop",
    ]
    assert [row["label"] for row in written[:3]] == [1, 0, 1]
    assert "wrote 10 items of 1 pairs" in done.stderr


def test_stored_scores_give_the_same_values(flips: Command, command: Command, tmp_path: Path) -> None:
    options = ("--metrics", "smile", "--edits")
    document = figures_of(flips, tmp_path, PAIRS, *options)
    file, items, scores = (tmp_path / name for name in ("rows.jsonl", "items.jsonl", "scores.jsonl"))
    flips(file, *options, "--items", items)
    command("score", items, "--metrics", "smile", "--out", scores, stub=StubTransport(judge))
    again = figures_of(flips, tmp_path, PAIRS, "--edits", "--scores", scores)
    assert {name: again[name] for name in ("flips", "edits")} == {name: document[name] for name in ("flips", "edits")}


BAD = [
    ({"changed": ""}, "no changed in column changed"),
    ({"answer": None}, "no answer in column answer"),
    ({"question": " "}, "no question in column question"),
    ({"references": []}, "no references in column references or reference or answers"),
    ({"references": ["a", True]}, "references[1] is True, a truth value"),
    ({"answer": {"a": 1}}, "answer is"),
    ({"label": 0.5}, "the label in column label is not 0 or 1"),
    ({"label": "perhaps"}, "the label in column label is not 0 or 1"),
    ({"label": None}, "no label in column label"),
]


@pytest.mark.parametrize(("columns", "said"), BAD)
def test_a_bad_row_names_file_line_and_field_and_its_neighbours_count(
    flips: Command, tmp_path: Path, columns: dict[str, Any], said: str
) -> None:
    file = write_rows(tmp_path / "pairs.jsonl", [PAIRS[0], PAIRS[1] | columns, *PAIRS[2:]])
    figures = tmp_path / "figures.json"
    done = flips(file, "--metrics", "smile", "--resamples", "100", "--json", figures)
    assert done.exit_code == 0, done.output
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("left out"))
    assert line.startswith(f"left out 1 row: {said}")
    assert line.endswith(f"(first at {file} line 2)")
    assert json.loads(figures.read_text())["flips"]["smile"]["pairs"] == 4


def test_several_files_name_the_file_of_a_bad_row(flips: Command, tmp_path: Path) -> None:
    one = write_rows(tmp_path / "one.jsonl", PAIRS[:2])
    other = write_rows(tmp_path / "other.jsonl", [*PAIRS[2:], {"question": "q"}])
    done = flips(one, other, "--metrics", "smile", "--resamples", "100")
    assert f"(first at {other} line 4)" in done.stderr
    assert "Verdicts on 7 right" in done.stdout


def test_csv_with_other_columns_and_words_as_labels(flips: Command, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text(
        "question,gold,answer,other,verdict\nwhich,a;b,xxxxxxxxxxxx,yyyy,bad\nwhich,a,xxxxxxxxxxxx,yyyy,good\n"
    )
    maps = ("--map", "references=gold", "--map", "changed=other", "--map", "label=verdict")
    words = ("--label-map", "good=1,bad=0", "--reference-separator", ";")
    items = tmp_path / "items.jsonl"
    assert flips(file, *maps, *words, "--items", items).exit_code == 0
    written = read_rows(items.read_text())
    assert [row["label"] for row in written] == [1, 0, 1, 1]
    assert written[0]["references"] == ["a", "b"]


def test_missing_names_and_ids_of_questions(flips: Command, tmp_path: Path) -> None:
    rows = [
        pair(12, 4, 0, id=float("nan"), kind=None, question_id=7),
        pair(12, 4, 0, id="", kind=float("nan"), question_id="8"),
    ]
    file, items = write_rows(tmp_path / "pairs.jsonl", rows), tmp_path / "items.jsonl"
    assert flips(file, "--items", items).exit_code == 0
    written = read_rows(items.read_text())
    assert [row["id"] for row in written] == ["0/answer", "0/changed", "1/answer", "1/changed"]
    assert [row["question_id"] for row in written] == ["7", "7", "8", "8"]
    document = figures_of(flips, tmp_path, rows, "--metrics", "smile", "--group-by", "kind")
    assert list(document["groups"]["kind"]) == ["(none)"]
    assert document["flips"]["smile"]["noticed"]["questions"] == 2


def test_where_chooses_pairs_and_a_page_shows_the_tables(flips: Command, tmp_path: Path) -> None:
    file, page = write_rows(tmp_path / "pairs.jsonl", PAIRS), tmp_path / "page.html"
    done = flips(file, "--metrics", "smile", "--where", "kind=role", "--resamples", "100", "--html", page)
    assert done.exit_code == 0, done.output
    assert "Verdicts on 2 right and 2 wrong answers" in page.read_text()


def test_answers_that_cannot_be_scored_are_counted_by_status(command: Command, tmp_path: Path) -> None:
    def fail(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = judge(request)
        for item, given in zip(reply.items, request.items, strict=True):
            if given.prediction == "y" * 12:
                result = item.results[0]
                result.Clear()
                result.status, result.message = types_pb2.STATUS_INVALID_INPUT, "items[0].prediction: no"
        return reply

    run = partial(command, "bench", "flips", stub=StubTransport(fail))
    document = figures_of(run, tmp_path, PAIRS, "--metrics", "smile")
    found = document["flips"]["smile"]
    assert (found["without_score"], found["without_verdict"], found["noticed_pairs"]) == (1, 1, 2)
    assert document["metrics"]["smile"]["statuses"] == {"OK": 9, "INVALID_INPUT": 1}
    done = run(tmp_path / "rows.jsonl", "--metrics", "smile", "--resamples", "100")
    assert "smile is INVALID_INPUT, for example 1/changed: prediction: no" in done.stdout
    assert "0.500" in next(line for line in done.stdout.splitlines() if "(2 of 3 pairs)" in line)


@pytest.mark.parametrize(
    ("rows", "arguments", "said"),
    [
        ([], [], "pairs.jsonl has no rows"),
        ([{"question": "q"}], [], "no pair can be read: left out 1 row: no answer in column answer"),
        (PAIRS, ["--map", "changed=other"], "the file has no column 'other'"),
        (PAIRS, ["--map", "prediction=x"], "where FIELD is one of id, kind, question"),
        (PAIRS, ["--where", "half=a"], "the file has no column 'half'"),
        (PAIRS, ["--group-by", "type"], "the file has no column 'type'"),
        (PAIRS, ["--group-by", "kind+kind"], "names a column twice"),
    ],
)
def test_wrong_files_and_options_say_the_way_out(
    flips: Command, tmp_path: Path, rows: list[dict[str, Any]], arguments: list[str], said: str
) -> None:
    done = flips(write_rows(tmp_path / "pairs.jsonl", rows), *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
