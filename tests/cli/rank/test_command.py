"""`gradewire rank`: questions with lists of answers are ranked, written, resumed and reckoned."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire.pairs import Winner
from gradewire.testing import StubTransport, echo_comparisons
from gradewire_cli.rank.run import finished_line
from gradewire_proto.v1 import judging_pb2, types_pb2

ROWS: list[dict[str, Any]] = [
    {"id": "one", "prompt": "Which?", "answers": ["aa", "a", "aaaa"], "group": "easy"},
    {"id": "two", "prompt": "Which now?", "answers": ["b", "bb"]},
]


def longer(pair: judging_pb2.Pair) -> Winner | None:
    if "odd" in (pair.answer_a, pair.answer_b):
        return None
    if len(pair.answer_a) == len(pair.answer_b):
        return "tie"
    return "a" if len(pair.answer_a) > len(pair.answer_b) else "b"


class Judge(StubTransport):
    """Prefers the longer answer, is away for pairs with some text, and keeps the pairs with an id."""

    def __init__(self, away: str = "nothing like this", winner: Callable[..., Winner | None] = longer) -> None:
        super().__init__(compare=self._reply)
        self.asked: list[judging_pb2.Pair] = []
        self._away, self._winner = away, winner

    def _reply(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        reply = echo_comparisons(request, winner=self._winner)
        for pair, result in zip(request.pairs, reply.pairs, strict=True):
            result.prompt_tokens, result.generated_tokens = 100, 2
            if pair.id:
                self.asked.append(pair)
            if self._away in (pair.answer_a, pair.answer_b):
                result.status, result.message = types_pb2.STATUS_UNAVAILABLE, "away"
        return reply


def test_each_question_has_a_line_with_score_and_rank_of_each_answer(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "ranked.jsonl"
    judge = Judge()
    file = write_rows(tmp_path / "rows.jsonl", ROWS)
    done = command("rank", file, "--out", out, "--judge-prices", "10,1000", stub=judge)
    assert done.exit_code == 0, done.output
    first, second = read_rows(out.read_text())
    assert [(each["answer"], each["score"], each["rank"]) for each in first["answers"]] == [
        ("aa", 0.5, 2),
        ("a", 0.0, 3),
        ("aaaa", 1.0, 1),
    ]
    assert first["answers"][0] == {
        "answer": "aa",
        "status": "OK",
        "score": 0.5,
        "rank": 2,
        "wins": 1,
        "losses": 1,
        "ties": 0,
        "undecided": 0,
    }
    assert (first["id"], first["index"], first["group"], first["order"], first["by"]) == (
        *("one", 0, "easy", [2, 0, 1], "compare/1"),
    )
    assert (first["pairs"], first["verdicts"], first["prompt_tokens"], first["generated_tokens"]) == (3, 6, 300, 6)
    assert (second["id"], second["order"], "group" in second) == ("two", [1, 0], False)
    assert len(judge.asked) == 4
    assert "ranked 2 of 2 questions" in done.stderr
    assert "5 answers have a score" in done.stderr
    assert "compared 4 pairs with 8 verdicts, 400 tokens read and 8 written" in done.stderr
    assert "price 0.012" in done.stderr
    assert command("rank", file, stub=Judge()).stdout == out.read_text()


def test_rows_that_cannot_be_ranked_are_told_and_neighbours_are_ranked(command: Command, tmp_path: Path) -> None:
    rows = [
        ROWS[0],
        {"id": "lone", "prompt": "q", "answers": ["a"]},
        {"id": "text", "prompt": "q", "answers": "a"},
        {"id": "mixed", "prompt": "q", "answers": ["a", None, "odd", " ", "aa"]},
        {"id": "ties", "prompt": "q", "answers": ["x", "y"]},
        {"id": "number", "prompt": "q", "answers": ["a", {"x": 1}]},
    ]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    with file.open("a") as stream:
        stream.write("{broken\n")
    done = command("rank", file, "--out", tmp_path / "out.jsonl", stub=Judge())
    assert done.exit_code == 0, done.output
    lines = read_rows((tmp_path / "out.jsonl").read_text())
    assert [line["status"] for line in lines] == [
        *("OK", "INVALID_INPUT", "INVALID_INPUT", "OK", "OK", "INVALID_INPUT", "INVALID_INPUT"),
    ]
    assert lines[1]["message"] == "give 2 to 64 answers, not 1"
    assert lines[2]["message"] == "line 3.answers is not a list of answers: give a list of 2 to 64 strings"
    assert [each["status"] for each in lines[3]["answers"]] == [
        *("OK", "EMPTY_PREDICTION", "INCONSISTENT", "EMPTY_PREDICTION", "OK"),
    ]
    assert {each["status"] for each in lines[4]["answers"]} == {"TIED"}
    assert lines[5]["message"] == "only 1 of 2 answers can be compared, so there is no other answer"
    assert lines[5]["answers"][1]["message"] == "the answer is a dict: give a string"
    assert "line 7" in lines[6]["message"]
    assert "ranked 3 of 7 questions" in done.stderr
    assert "without a score: 2 EMPTY_PREDICTION, 1 INCONSISTENT, 5 INVALID_INPUT, 2 TIED" in done.stderr


def test_rows_of_single_answers_are_collected_by_their_question(command: Command, tmp_path: Path) -> None:
    rows = [
        {"id": "r0", "question_id": "q1", "question": "Which?", "prediction": "a"},
        {"id": "r1", "question_id": "q2", "question": "What?", "prediction": "bb"},
        {"id": "r2", "question_id": "q1", "question": "Which?", "prediction": "aa"},
        {"id": "r3", "question_id": "q2", "question": "What?", "prediction": None},
        {"id": "r4", "question_id": "q2", "question": "What?", "prediction": "b"},
        {"id": "r5", "question_id": "", "question": "What?", "prediction": "b"},
    ]
    done = command("rank", write_rows(tmp_path / "rows.jsonl", rows), stub=Judge())
    assert done.exit_code == 0, done.output
    lines = read_rows(done.stdout)
    assert [(line["id"], [each["id"] for each in line["answers"]]) for line in lines[:2]] == [
        ("q1", ["r0", "r2"]),
        ("q2", ["r1", "r3", "r4"]),
    ]
    assert [each["rank"] for line in lines for each in line["answers"]] == [2, 1, 1, None, 2, None]
    assert lines[2]["status"] == "INVALID_INPUT"


def test_conversations_columns_and_csv_are_read(command: Command, tmp_path: Path) -> None:
    judge = Judge()
    row = {
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Which?"}],
        "samples": [[{"role": "assistant", "content": "a"}], [{"role": "assistant", "content": "aa"}]],
        "target": ["right", "also right"],
    }
    file = write_rows(tmp_path / "rows.jsonl", [row])
    options = ("--map", "question=messages", "--map", "answers=samples", "--by", "compare?references=true")
    assert command("rank", file, *options, stub=judge).exit_code == 0
    assert [(pair.question, pair.answer_a, list(pair.references)) for pair in judge.asked] == [
        ("Which?", "a", ["right", "also right"])
    ]
    (tmp_path / "rows.csv").write_text('question,answers\nWhich?,"[""a"", ""aa""]"\n')
    done = command("rank", tmp_path / "rows.csv", stub=Judge())
    assert [each["rank"] for each in read_rows(done.stdout)[0]["answers"]] == [2, 1]


def test_a_run_goes_on_where_it_stopped_and_retries_what_was_away(command: Command, tmp_path: Path) -> None:
    rows = [{"id": str(number), "prompt": f"q{number}", "answers": ["a", "b" * (number + 2)]} for number in range(6)]
    file, out, whole = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    assert command("rank", file, "--out", whole, stub=Judge()).exit_code == 0
    assert command("rank", file, "--out", out, stub=Judge(away="bbb")).exit_code == 0
    assert [line["answers"][0]["status"] for line in read_rows(out.read_text())].count("UNAVAILABLE") == 1
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:4]) + lines[4][:20])  # the run was killed while it wrote
    assert "exists. Use --resume" in command("rank", file, "--out", out, stub=Judge()).output
    judge = Judge()
    done = command("rank", file, "--out", out, "--resume", stub=judge)
    assert done.exit_code == 0, done.output
    assert [pair.id for pair in judge.asked] == ["1", "4", "5"]
    assert read_rows(out.read_text())[1]["pair_statuses"] == {"OK": 1}
    assert out.read_bytes() == whole.read_bytes()
    assert "ranked 6 of 6 questions, 3 of them from earlier runs" in done.stderr
    rows[2]["answers"][1] = "c"
    judge = Judge()
    done = command("rank", write_rows(file, rows), "--out", out, "--resume", stub=judge)
    assert [pair.id for pair in judge.asked] == ["2"]
    assert [line["answers"][1]["answer"] for line in read_rows(out.read_text())][2] == "c"
    again = command("rank", file, "--out", out, "--resume", "--by", "compare?references=true", stub=Judge())
    assert (again.exit_code, "was made with other settings: by was compare/1" in again.output) == (2, True)
    out.write_text('{"id": 1}\n')
    other = command("rank", file, "--out", out, "--resume", stub=Judge())
    assert "line 1 is not from gradewire rank" in other.output


def test_a_question_with_one_pair_that_was_away_is_judged_again(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "rows.jsonl", ROWS[:1]), tmp_path / "out.jsonl"
    command("rank", file, "--out", out, stub=Judge())
    whole = out.read_bytes()

    class Away(Judge):
        def _reply(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
            reply = super()._reply(request)
            if request.pairs[0].id:
                reply.pairs[0].status = types_pb2.STATUS_TIMEOUT
            return reply

    assert command("rank", file, "--out", out, "--overwrite", stub=Away()).exit_code == 0
    (line,) = read_rows(out.read_text())
    assert line["pair_statuses"] == {"OK": 2, "TIMEOUT": 1}
    assert {each["status"] for each in line["answers"]} == {"OK"}
    assert command("rank", file, "--out", out, "--resume", stub=Judge()).exit_code == 0
    assert out.read_bytes() == whole


def test_a_dry_run_says_what_the_run_then_does(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(tmp_path))
    rows = [*ROWS, {"prompt": "q", "answers": ["x", "x ", "y"]}, {"prompt": "q", "answers": []}]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    judge = Judge()
    done = command("rank", file, "--dry-run", "--judge-prices", "1,1", stub=judge)
    assert done.exit_code == 0, done.output
    assert "3 of 4 questions can be ranked\n" in done.stdout
    found = re.search(r"compare: (\d+) calls \((\d+) pairs\), estimated (\d+) tokens read and", done.stdout)
    assert found is not None, done.stdout
    calls, pairs, read = map(int, found.groups())
    assert (calls, pairs, judge.asked) == (10, 5, [])
    assert read > 10 * 100
    assert "price about" in done.stdout
    ranked = command("rank", file, stub=judge)
    assert "compared 5 pairs with 10 verdicts" in ranked.stderr
    limited = command("rank", file, "--dry-run", "--max-pairs", "2", stub=judge)
    assert "compare: 8 calls (4 pairs)" in limited.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "smile"), "only a judge's comparison can rank answers"),
        (("--dry-run", "--resume", "--out", "x.jsonl"), "cannot be combined with --resume"),
        (("--dry-run", "--by", "compare?image=true"), "--dry-run cannot estimate image=true"),
        (("--map", "answer_a=x"), "FIELD is one of question, answers"),
        (("--map", "answers=gone"), "no column with a list of answers"),
        (("--resume",), "--resume and --overwrite need --out"),
    ],
)
def test_what_makes_no_sense_is_refused(
    command: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = command("rank", write_rows(tmp_path / "rows.jsonl", ROWS), *options, stub=Judge())
    assert (done.exit_code, message in done.output) == (2, True), done.output


def test_a_file_of_plain_answers_or_without_rows_is_refused(command: Command, tmp_path: Path) -> None:
    plain = write_rows(tmp_path / "plain.jsonl", [{"question": "q", "prediction": "a"}])
    done = command("rank", plain, stub=Judge())
    assert done.exit_code == 2
    assert "no column with a list of answers (looked for answers, candidates" in done.output
    empty = command("rank", write_rows(tmp_path / "empty.jsonl", []), stub=Judge())
    assert (empty.exit_code, "has no rows" in empty.output) == (2, True), empty.output


@pytest.mark.parametrize(("winner", "code"), [(lambda _: None, 0), (longer, 3)])
def test_the_exit_code_says_if_nothing_could_be_ranked(
    command: Command, tmp_path: Path, winner: Any, code: int
) -> None:
    rows = [{"prompt": "q", "answers": ["gone", "other"]}]
    judge = Judge(away="gone" if code else "nothing like this", winner=winner)
    done = command("rank", write_rows(tmp_path / "rows.jsonl", rows), stub=judge)
    assert done.exit_code == code, done.output
    assert [each["score"] for each in json.loads(done.stdout)["answers"]] == [None, None]


def test_pictures_in_lists_are_shown_and_a_missing_one_fails_its_question(command: Command, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(name.encode())
    rows = [ROWS[1] | {"images": each} for each in (["a.png", "b.png"], ["a.png", "gone.png"], "b.png")]
    judge = Judge()
    out = tmp_path / "out.jsonl"
    options = ("--by", "compare?image=true", "--out", out)
    done = command("rank", write_rows(tmp_path / "rows.jsonl", rows), *options, stub=judge)
    assert done.exit_code == 0, done.output
    assert [[image.data for image in pair.images] for pair in judge.asked] == [[b"a.png", b"b.png"], [b"b.png"]]
    lines = read_rows(out.read_text())
    assert [line["status"] for line in lines] == ["OK", "INVALID_INPUT", "OK"]
    assert lines[1]["message"] == "picture 2 of 2 gone.png: the file is not in the folder of the rows"
    (tmp_path / "b.png").write_bytes(b"another picture")
    judge = Judge()
    assert command("rank", tmp_path / "rows.jsonl", *options, "--resume", stub=judge).exit_code == 0
    assert len(judge.asked) == 2


def test_a_list_that_may_be_the_right_answers_is_never_ranked_unasked(command: Command, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"r{number}",
            "question_id": 0,
            "question": "Who?",
            "answers": ["gold", "Au"],
            "prediction": "p" * number,
        }
        for number in (1, 2)
    ]
    file, judge = write_rows(tmp_path / "rows.jsonl", rows), Judge()
    asked = command("rank", file, stub=judge)
    assert (asked.exit_code, judge.asked) == (2, []), asked.output
    assert "Use --map answers=answers, or --map answer=prediction" in asked.output
    by = ("--by", "compare?references=true")
    for option in ("answer=prediction", "references=answers"):
        judge = Judge()
        done = command("rank", file, "--map", option, *by, stub=judge)
        assert done.exit_code == 0, done.output
        (line,) = read_rows(done.stdout)
        assert (line["id"], [(each["id"], each["rank"]) for each in line["answers"]]) == ("0", [("r1", 2), ("r2", 1)])
        assert [list(pair.references) for pair in judge.asked] == [["gold", "Au"]]
    lists = command("rank", file, "--map", "answers=answers", stub=Judge())
    assert [line["order"] for line in read_rows(lists.stdout)] == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("row", "options", "ways"),
    [
        ({"answers": ["a", "b"], "responses": ["c", "d"]}, (), "--map answers=answers, or --map answers=responses"),
        ({"answers": ["a", "b"], "answer": "c"}, (), "--map answers=answers, or --map answer=answer"),
        ({"outputs": ["a", "b"], "model output": "c"}, (), "--map answers=outputs, or --map 'answer=model output'"),
        ({"question_id": 1, "response": "a", "output": "b"}, (), "--map answer=response, or --map answer=output"),
        ({"question_id": 1, "answers": ["a"]}, ("--map", "answer=gone"), "no column 'gone'. Columns: question, "),
        (
            {"response": "a"},
            ("--map", "answer=response"),
            "no column question_id, which the rows of one question share",
        ),
        ({"answers": ["a"]}, ("--map", "answer=a", "--map", "answers=b"), "Use one"),
    ],
)
def test_unclear_columns_stop_the_run_with_the_options_to_choose_from(
    command: Command, tmp_path: Path, row: dict[str, Any], options: tuple[str, ...], ways: str
) -> None:
    judge = Judge()
    done = command("rank", write_rows(tmp_path / "rows.jsonl", [{"question": "q"} | row]), *options, stub=judge)
    assert (done.exit_code, ways in done.output, judge.asked) == (2, True, []), done.output


@pytest.mark.parametrize(
    "row", [{"completions": ["a", "aa"], "answer": "gold"}, {"answers": None, "responses": ["a", "aa"], "pred": None}]
)
def test_columns_that_are_clear_need_no_option(command: Command, tmp_path: Path, row: dict[str, Any]) -> None:
    done = command("rank", write_rows(tmp_path / "rows.jsonl", [{"question": "q"} | row]), stub=Judge())
    assert (done.exit_code, read_rows(done.stdout)[0]["order"]) == (0, [1, 0]), done.output


def test_a_later_row_with_unclear_columns_fails_alone(command: Command, tmp_path: Path) -> None:
    rows = [{"prompt": "q", "answers": ["a", "aa"]}] * 64
    rows += [{"prompt": "q", "answers": ["gold", "Au"], "prediction": "p"}, {"prompt": "q"}]
    done = command("rank", write_rows(tmp_path / "rows.jsonl", rows), stub=Judge())
    assert done.exit_code == 0, done.output
    lines = read_rows(done.stdout)
    assert [line["status"] for line in lines] == [*["OK"] * 64, "INVALID_INPUT", "INVALID_INPUT"]
    assert lines[64]["message"] == (
        "line 65 has several columns that could have the answers to rank: use --map answers=answers, or "
        "--map answer=prediction"
    )
    assert lines[65]["message"] == "line 66 has no list of answers (its columns: prompt)"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("question", ("Which?", "What?")),
        ("references", (["a"], ["b"])),
        ("captions", ("seen", None)),
        ("image", ("a.png", "b.png")),
    ],
)
def test_rows_of_one_id_with_different_questions_are_refused_with_their_places(
    command: Command, tmp_path: Path, name: str, values: tuple[Any, Any]
) -> None:
    shared = {"question_id": "7", "question": "Which?"}
    rows = [shared | {name: value, "prediction": "a" * length} for length, value in enumerate((values[0], *values), 1)]
    rows += [shared | {"question_id": "8", "prediction": "a" * length} for length in (1, 2)]
    done = command("rank", write_rows(tmp_path / "rows.jsonl", rows), stub=Judge())
    assert done.exit_code == 0, done.output
    wrong, right = read_rows(done.stdout)
    field = {"image": "images"}.get(name, name)
    assert wrong["message"] == (
        f"line 1 and line 3 have the question_id 7, but different values of {field}: give each question its own "
        "question_id"
    )
    assert {each["status"] for each in wrong["answers"]} == {"INVALID_INPUT"}
    assert right["order"] == [1, 0]


def test_data_sets_may_use_the_same_ids(command: Command, tmp_path: Path) -> None:
    rows = [
        {"dataset": dataset, "question_id": 1, "question": f"of {dataset}", "prediction": "a" * length}
        for length in (1, 2)
        for dataset in ("x", "y")
    ]
    done = command("rank", write_rows(tmp_path / "rows.jsonl", rows), stub=Judge())
    assert [(line["question"], line["order"]) for line in read_rows(done.stdout)] == [
        ("of x", [1, 0]),
        ("of y", [1, 0]),
    ]


def test_pictures_of_all_columns_are_shown_once(command: Command, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(name.encode())
    row, judge = ROWS[1] | {"image": "b.png", "images": ["a.png", "b.png"]}, Judge()
    file = write_rows(tmp_path / "rows.jsonl", [row, row | {"images": "a.png"}])
    done = command("rank", file, "--by", "compare?image=true", stub=judge)
    assert done.exit_code == 0, done.output
    assert [[image.data for image in pair.images] for pair in judge.asked] == [[b"a.png", b"b.png"]] * 2


@pytest.mark.parametrize("name", ["out.csv", "out.out", "out.parquet"])
def test_an_output_of_another_format_is_refused(command: Command, tmp_path: Path, name: str) -> None:
    judge = Judge()
    done = command("rank", write_rows(tmp_path / "rows.jsonl", ROWS), "--out", tmp_path / name, stub=judge)
    assert (done.exit_code, judge.asked, (tmp_path / name).exists()) == (2, [], False)
    assert f"{Path(name).suffix} means another format. Use a name that ends in .jsonl or .ndjson" in done.output


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=4,
)


@given(st.data())
def test_a_damaged_line_is_refused_or_read_but_never_ends_in_a_traceback(data: st.DataObject) -> None:
    whole = {
        "index": 0,
        "digest": "d",
        "answers": [{"status": "OK"}, {"status": "OK"}],
        "by": "compare/1",
        "status": "OK",
        "pair_statuses": {"OK": 1},
    }
    assert finished_line(json.dumps(whole).encode()) == whole
    name = data.draw(st.sampled_from([*whole]))
    value = data.draw(VALUES | st.fixed_dictionaries({"status": VALUES}).map(lambda each: [each]))
    line = finished_line(json.dumps(whole | {name: value}).encode())
    if line is not None:
        assert isinstance(hash((line["index"], line["digest"])), int)
        assert all(isinstance(each["status"], str) for each in [line, *line["answers"]])
        assert isinstance(line["pair_statuses"], dict)
        assert sorted([(0, "d"), (line["index"], line["digest"])])


@pytest.mark.parametrize(
    "damage",
    [{"index": [0]}, {"index": True}, {"pair_statuses": 3}, {"answers": [{}]}, {"status": ["OK"]}, {"digest": {}}],
)
def test_a_damaged_output_is_refused_with_its_line(command: Command, tmp_path: Path, damage: dict[str, Any]) -> None:
    file, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    assert command("rank", file, "--out", out, stub=Judge()).exit_code == 0
    first, second = read_rows(out.read_text())
    before = write_rows(out, [first, second | damage]).read_bytes()
    done = command("rank", file, "--out", out, "--resume", stub=Judge())
    assert (done.exit_code, out.read_bytes()) == (2, before)
    assert f"{out}: line 2 is not from gradewire rank. Use another --out" in done.output


def test_a_run_from_the_cache_costs_nothing_and_writes_the_same_lines(command: Command, tmp_path: Path) -> None:
    class Cached(Judge):
        def _reply(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
            reply = super()._reply(request)
            for place, result in enumerate(reply.pairs):
                result.cache_hits.disk = 2 if place else 1
                result.cache_hits.computed = 0 if place else 1
            return reply

    file, prices = write_rows(tmp_path / "rows.jsonl", ROWS[:1]), ("--judge-prices", "10,1000")
    computed, cached = command("rank", file, *prices, stub=Judge()), command("rank", file, *prices, stub=Cached())
    assert cached.stdout == computed.stdout
    assert "compared 3 pairs with 6 verdicts, 300 tokens read and 6 written\nprice 0.009\n" in computed.stderr
    told = "compared 3 pairs with 6 verdicts, 5 of them from a cache, 50 tokens read and 1 written\nprice 0.0015\n"
    assert told in cached.stderr


@pytest.mark.parametrize(("status", "code"), [("UNAVAILABLE", 3), ("JUDGE_CANNOT_SEE", 1), ("INVALID_INPUT", 1)])
def test_questions_without_any_verdict_are_not_ranked(command: Command, tmp_path: Path, status: str, code: int) -> None:
    class Refusing(Judge):
        def _reply(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
            reply = super()._reply(request)
            for pair, result in zip(request.pairs, reply.pairs, strict=True):
                if pair.id:
                    result.status, result.message = types_pb2.Status.Value(f"STATUS_{status}"), "pair: no"
            return reply

    done = command("rank", write_rows(tmp_path / "rows.jsonl", ROWS), stub=Refusing())
    lines = read_rows(done.stdout)
    assert [(line["status"], line["message"]) for line in lines] == [(status, "no pair could be compared: no")] * 2
    assert "ranked 0 of 2 questions" in done.stderr
    assert (done.exit_code, f"no answer could be ranked: {status} 5" in done.output) == (code, True), done.output


def test_ties_alone_are_no_failure_and_numbers_are_in_good_english(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"prompt": "q", "answers": ["x", "y"]}])
    done = command("rank", file, stub=Judge())
    assert done.exit_code == 0, done.output
    assert "compared 1 pair with 2 verdicts" in done.stderr
    assert {each["message"] for each in read_rows(done.stdout)[0]["answers"]} == {
        "the only pair of the answer is a tie"
    }
