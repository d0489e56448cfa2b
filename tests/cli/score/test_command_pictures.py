"""Pictures that rows name: which were shown stands in the output, and another one is shown again."""

import base64
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, answer, read_rows, write_rows
from tests.cli.score.judging_server import listing

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2, types_pb2

SEEN = "judge_verdict?image=true"
ROWS: list[dict[str, Any]] = [
    {"id": f"r{index}", "references": ["a"], "prediction": "x" * (index + 1), "image": f"{index}.png"}
    for index in range(6)
]
URI = "data:image/png;base64,"
Run = Callable[..., list[dict[str, Any]]]


class SeeingStub(StubTransport):
    """Answers as a server with a judge that sees, and remembers what it was shown, by the items' ids."""

    def __init__(self) -> None:
        super().__init__(self._answer, models=listing())
        self.shown: dict[str, list[bytes | str]] = {}

    def _answer(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        for item, answered in zip(request.items, reply.items, strict=True):
            self.shown[item.id] = [image.data or image.uri for image in item.images]
            for spec, result in zip(request.metrics, answered.results, strict=True):
                if spec.WhichOneof("metric") == "judge_verdict" and not item.images:
                    result.ClearField("score")
                    result.status, result.message = types_pb2.STATUS_INVALID_INPUT, "images: there is none"
        return reply


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for row in ROWS:
        (tmp_path / row["image"]).write_bytes(f"picture {row['id']}".encode())
    write_rows(tmp_path / "rows.jsonl", ROWS)
    return tmp_path


@pytest.fixture
def run(command: Command, folder: Path) -> Run:
    """Scores the rows of the folder; gives the rows of the output."""

    def scored(*options: str | Path, stub: StubTransport | None = None, metrics: str = SEEN) -> list[dict[str, Any]]:
        words = ["score", folder / "rows.jsonl", "--metrics", metrics, "--out", folder / "out.jsonl", *options]
        done = command(*words, "--fail-on", "never", stub=stub or SeeingStub())
        assert done.exit_code == 0, done.output
        return read_rows((folder / "out.jsonl").read_text())

    return scored


def test_a_row_whose_picture_is_another_one_is_shown_again(run: Run, folder: Path) -> None:
    before = run()
    assert len({row["picture_digest"] for row in before}) == len(ROWS)
    (folder / "1.png").write_bytes(b"another picture")
    (folder / "3.png").rename(folder / "moved.png")
    write_rows(folder / "rows.jsonl", [{**row, "image": "moved.png"} if row["id"] == "r3" else row for row in ROWS])
    stub = SeeingStub()
    after = run("--resume", stub=stub)
    assert stub.shown == {"r1": [b"another picture"]}, "the bytes count, not the name"
    assert [row["index"] for row in read_rows((folder / "out.jsonl.resume").read_text())] == [1]
    assert after == run("--overwrite")
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, *[True] * 4]
    stub = SeeingStub()
    assert run("--resume", stub=stub) == after
    assert stub.shown == {}


def test_a_picture_that_can_no_longer_be_read_is_a_problem_of_its_row_and_metric(run: Run, folder: Path) -> None:
    metrics = f"{SEEN},exact_match"
    run(metrics=metrics)
    (folder / "2.png").unlink()
    stub = SeeingStub()
    rows = run("--resume", metrics=metrics, stub=stub)
    assert stub.shown == {"r2": []}
    assert [row["scores"][SEEN]["status"] for row in rows] == ["OK", "OK", "INVALID_INPUT", "OK", "OK", "OK"]
    failed = rows[2]["scores"]
    assert failed[SEEN]["message"] == (
        "images: there is none (picture 2.png: the file is not in the folder of the rows)"
    )
    assert "picture_digest" not in rows[2]
    assert failed["exact_match"]["status"] == "OK"
    (folder / "2.png").write_bytes(b"back again")
    assert run("--resume", metrics=metrics)[2]["scores"][SEEN]["status"] == "OK"


def test_the_letters_of_an_address_are_what_is_shown(run: Run, folder: Path) -> None:
    uris = [URI + base64.b64encode(row["id"].encode()).decode() for row in ROWS]
    write_rows(folder / "rows.jsonl", [{**row, "image": uri} for row, uri in zip(ROWS, uris, strict=True)])
    run()
    uris[4] = "https://images.example.org/4.png"
    write_rows(folder / "rows.jsonl", [{**row, "image": uri} for row, uri in zip(ROWS, uris, strict=True)])
    stub = SeeingStub()
    run("--resume", stub=stub)
    assert stub.shown == {"r4": [uris[4]]}


def test_outputs_without_pictures_are_as_before(run: Run, folder: Path) -> None:
    rows = run(metrics="judge_verdict")
    assert [set(row) for row in rows] == [{"id", "index", "scores", "digest"}] * len(ROWS)
    (folder / "1.png").write_bytes(b"another picture")
    stub = SeeingStub()
    assert run("--resume", metrics="judge_verdict", stub=stub) == rows
    assert stub.shown == {}


def test_a_corpus_of_one_request_counts_a_row_with_another_picture_as_left(
    run: Run, command: Command, folder: Path
) -> None:
    metrics = f"{SEEN},cider?corpus=request"
    run(metrics=metrics)
    (folder / "1.png").write_bytes(b"another picture")
    words = ["score", folder / "rows.jsonl", "--metrics", metrics, "--out", folder / "out.jsonl", "--resume"]
    done = command(*words, stub=SeeingStub())
    assert (done.exit_code, "only 1 of 6 rows is left" in done.stderr) == (2, True), done.output


def test_agree_joins_the_scores_without_the_pictures(run: Run, command: Command, folder: Path) -> None:
    run()
    for row in ROWS:
        (folder / row["image"]).unlink()
    labelled = [{**row, "label": index % 2} for index, row in enumerate(ROWS)]
    file = write_rows(folder / "labelled.jsonl", labelled)
    done = command("agree", file, "--scores", folder / "out.jsonl", "--resamples", "100")
    assert done.exit_code == 0, done.output
    assert "judge_verdict" in done.stdout


def test_a_table_has_them_beside_the_digest_of_the_text(command: Command, folder: Path) -> None:
    (folder / "2.png").unlink()
    file = write_rows(folder / "rows.jsonl", [{**row, "picture_digest": "mine"} for row in ROWS])
    words = ["score", file, "--metrics", SEEN, "--out", folder / "out.csv", "--keep-columns", "picture_digest"]
    assert command(*words, "--fail-on", "never", stub=SeeingStub()).exit_code == 0
    with (folder / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0])[-2:] == ["picture_digest", "digest"]
    assert [len(row["picture_digest"]) for row in rows] == [32, 32, 0, 32, 32, 32]
    assert {row["input.picture_digest"] for row in rows} == {"mine"}


def test_a_list_of_pictures_is_shown_in_its_order(run: Run, folder: Path) -> None:
    def write(lists: list[Any]) -> None:
        rows = [{name: value for name, value in row.items() if name != "image"} for row in ROWS]
        write_rows(folder / "rows.jsonl", [row | {"images": each} for row, each in zip(rows, lists, strict=True)])

    uri = "https://images.example.org/4.png"
    lists: list[Any] = [["0.png", uri], '["1.png", "0.png"]', "2.png", {"path": "3.png"}, [None, "4.png"], [URI + "AA"]]
    write(lists)
    stub = SeeingStub()
    before = run(stub=stub)
    assert stub.shown == {
        "r0": [b"picture r0", uri],
        "r1": [b"picture r1", b"picture r0"],
        "r2": [b"picture r2"],
        "r3": [b"picture r3"],
        "r4": [b"picture r4"],
        "r5": [URI + "AA"],
    }
    write([lists[0], lists[1], *lists[2:]])
    (folder / "0.png").write_bytes(b"another picture")
    stub = SeeingStub()
    after = run("--resume", stub=stub)
    assert sorted(stub.shown) == ["r0", "r1"], "rows with the changed picture"
    assert [len({one["picture_digest"], two["picture_digest"]}) for one, two in zip(before, after, strict=True)] == [
        *(2, 2, 1, 1, 1, 1)
    ]


def test_one_unusable_picture_of_a_list_is_a_problem_of_its_row(run: Run, folder: Path) -> None:
    lists = [["0.png", "gone.png"], ["1.png", {"bytes": "x"}], ["2.png"] * 65, ["3.png", "../x"], [], ["5.png"]]
    write_rows(folder / "rows.jsonl", [{**row, "image": each} for row, each in zip(ROWS, lists, strict=True)])
    stub = SeeingStub()
    rows = run(stub=stub)
    assert [row["scores"][SEEN]["status"] for row in rows] == [*["INVALID_INPUT"] * 5, "OK"]
    told = [row["scores"][SEEN].get("message", "") for row in rows]
    assert "(picture 2 of 2 gone.png: the file is not in the folder of the rows)" in told[0]
    assert "(picture 2 of 2 has no path or address)" in told[1]
    assert "(the row has 65 pictures, but at most 64 can be shown)" in told[2]
    assert "(picture 2 of 2 ../x: the file is outside the folder of the rows" in told[3]
    assert stub.shown["r5"] == [b"picture r5"]
