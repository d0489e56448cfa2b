"""`gradewire prepare --generate`: what is asked, told and written."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest
from tests.cli.conftest import Command, read_rows, write_rows
from tests.client.judged_transport import JudgedTransport
from tests.client.test_references_generated import PROMPT, write

from gradewire.testing import StubTransport
from gradewire.transport import Q, R, RpcMethod
from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2
from gradewire_server.domain.judge import Generated

ROWS = [
    {"question": "q1", "answers": ["red", "odd"], "prediction": "x", "model": "m1", "label": 1},
    {"question": "q1", "answers": ["red", "odd"], "prediction": "y", "model": "m2", "extra": {"a": [1]}},
    {"question": "q2", "answers": "blue", "prediction": "caf\u00e9"},
    {"question": "q3", "answers": ["green"], "syn_ans": ["Green it is."]},
]


@pytest.fixture
def judge() -> JudgedTransport:
    return JudgedTransport(write)


def test_sentences_are_written_told_and_used(command: Command, tmp_path: Path, judge: JudgedTransport) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    done = command("prepare", file, "--generate", "--out", out, stub=judge)
    assert done.exit_code == 0, done.stderr
    name = done.stdout.strip()
    assert len(name) == 32
    assert "4 synthetic answers stored" in done.stderr
    assert "2 of these answers written now, by synthetic/1?model=scripted@" in done.stderr
    assert "uses the reference itself: line 1: UNPARSABLE references[1]" in done.stderr
    assert "judge scripted: says what a test wrote" in done.stderr
    assert f"{out}: 4 rows, 4 of them with synthetic answers" in done.stderr
    assert read_rows(out.read_text(encoding="utf-8")) == [
        {**ROWS[0], "synthetic_answers": ["It is surely red.", "odd"]},
        {**ROWS[1], "synthetic_answers": ["It is surely red.", "odd"]},
        {**ROWS[2], "synthetic_answers": ["It is surely blue."]},
        {**ROWS[3], "synthetic_answers": ["Green it is."]},
    ]
    assert not list(tmp_path.glob("*.part"))
    scored = command("score", file, "--reference-set", name, "--synthetic", "prepared", "--quiet", stub=judge)
    rows = read_rows(scored.stdout)
    assert [row["scores"]["smile"]["status"] for row in rows[:3]] == ["OK"] * 3
    inline = command("score", out, "--synthetic", "inline", "--quiet", stub=judge)
    assert [row["scores"]["smile"].get("score") for row in read_rows(inline.stdout)] == [
        row["scores"]["smile"].get("score") for row in rows
    ]


def test_a_judge_that_writes_no_usable_sentence_exits_with_1(command: Command, tmp_path: Path) -> None:
    """Then the references stand for themselves, now and when the command runs again."""
    useless = JudgedTransport(lambda _: Generated("Who knows?", complete=True, prompt_tokens=9, generated_tokens=4))
    file = write_rows(tmp_path / "a.jsonl", ROWS[:3])
    for _ in range(2):
        done = command("prepare", file, "--generate", stub=useless)
        assert done.exit_code == 1, done.output
        assert "uses the reference itself: line 3: UNPARSABLE" in done.stderr


def test_the_same_again_writes_the_same(command: Command, tmp_path: Path, judge: JudgedTransport) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    first = command("prepare", file, "--generate", "--out", out, stub=judge)
    before, asked = out.read_bytes(), len(judge.engine.script.asked)
    refused = command("prepare", file, "--generate", "--out", out, stub=judge)
    assert refused.exit_code == 2
    assert "exists. Use --overwrite" in refused.stderr
    again = command("prepare", file, "--generate", "--out", out, "--overwrite", stub=judge)
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert out.read_bytes() == before
    assert len(judge.engine.script.asked) == asked
    assert "0 of these answers written now" in again.stderr


def test_rows_without_a_whole_list_are_written_as_they_were(
    command: Command, tmp_path: Path, judge: JudgedTransport
) -> None:
    """Answers of a wrong number, null, a line that is cut, one that is no UTF-8 and one that is not an object."""
    file, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    lines = [
        b'{"question": " ", "references": ["a"], "syn": null}',
        b"{broken",
        b'{"question": "q", "references": ["b"], "syn": []}',
        b'{"question": "q", "references": ["c", "d"], "syn": ["Mine alone, and of c."]}',
        b'{"question": "caf\xe9"}',
        b'["no", "object"]',
    ]
    file.write_bytes(b"\n\n".join(lines) + b"\r\n")
    done = command("prepare", file, "--generate", "--out", out, "--map", "synthetic_answers=syn", stub=judge)
    assert done.exit_code == 1
    for line, problem in (
        (1, ": INVALID_INPUT question"),
        (3, " is not JSON"),
        (7, ": INVALID_INPUT synthetic_answers"),
        (9, " is not UTF-8 (byte 18)"),
        (11, " must be an object, not list"),
    ):
        assert f"not prepared: line {line}{problem}" in done.stderr
    assert f"{out}: 6 rows, 1 of them with synthetic answers; 3 unreadable rows copied unchanged" in done.stderr
    lines[2] = b'{"question": "q", "references": ["b"], "syn": ["It is surely b."]}'
    assert out.read_bytes() == b"\n".join(lines) + b"\n"


def test_rows_of_a_table_that_cannot_be_read_are_told_and_counted(
    command: Command, tmp_path: Path, judge: JudgedTransport
) -> None:
    file, out = tmp_path / "a.csv", tmp_path / "out.jsonl"
    file.write_text("question,references,more\nq,a,1\nq,b\n")
    done = command("prepare", file, "--generate", "--out", out, stub=judge)
    assert done.exit_code == 1
    assert "not prepared: line 3 has 2 cells, but the header has 3" in done.stderr
    assert f"{out}: 1 rows, 1 of them with synthetic answers; skipped 1 unreadable rows of the input" in done.stderr
    assert len(read_rows(out.read_text())) == 1


def test_a_table_becomes_lines(command: Command, tmp_path: Path, judge: JudgedTransport) -> None:
    file, out = tmp_path / "a.csv", tmp_path / "out.jsonl"
    file.write_text('question,references,prediction\nq,"[""a"", ""b""]",x\n')
    assert command("prepare", file, "--generate", "--out", out, stub=judge).exit_code == 0
    (row,) = read_rows(out.read_text())
    assert row["references"] == '["a", "b"]'
    assert row["synthetic_answers"] == ["It is surely a.", "It is surely b."]


def test_quiet_says_the_name_and_nothing_else(command: Command, tmp_path: Path, judge: JudgedTransport) -> None:
    done = command("prepare", write_rows(tmp_path / "a.jsonl", ROWS), "--generate", "--quiet", stub=judge)
    assert (done.exit_code, done.stderr, len(done.stdout)) == (0, "", 33)


def test_judge_and_prompt_are_the_ones_named(command: Command, tmp_path: Path, judge: JudgedTransport) -> None:
    file, prompt = write_rows(tmp_path / "a.jsonl", ROWS[2:3]), tmp_path / "mine.toml"
    prompt.write_text(PROMPT.text.replace('name = "synthetic"', 'name = "mine"', 1))
    done = command("prepare", file, "--generate", "--judge", "scripted", "--prompt", prompt, stub=judge)
    assert done.exit_code == 0, done.stderr
    assert "&prompt=mine/1@" in done.stderr
    done = command("prepare", file, "--generate", "--judge", "absent", stub=judge)
    assert done.exit_code != 0
    assert "there is no judge 'absent' here" in str(done.exception) + done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--judge", "x"], "--judge needs --generate"),
        (["--out", "x.jsonl"], "--out needs --generate"),
        (["--generate", "--overwrite"], "--overwrite needs --out FILE"),
        (["--generate", "--prompt", "lave.toml"], "this prompt is for lave, not for synthetic"),
        (["--generate", "--prompt", "none.toml"], "is not TOML"),
        (["--generate", "--out", "a.jsonl"], "is also the input"),
        (["--generate", "--out", "no/folder/x.jsonl"], "folder no/folder does not exist"),
    ],
)
def test_wrong_usage(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    (tmp_path / "lave.toml").write_text('metric = "lave"\nname = "mine"\nversion = 1\n')
    (tmp_path / "none.toml").write_text("{")
    done = command("prepare", file, *arguments, stub=JudgedTransport(write))
    assert done.exit_code == 2
    assert said in done.stderr


def test_standard_input_cannot_be_written_out(command: Command, tmp_path: Path) -> None:
    done = command("prepare", "-", "--generate", "--out", tmp_path / "x.jsonl", stub=JudgedTransport(write))
    assert done.exit_code == 2
    assert "which standard input does not allow" in done.stderr


def test_a_server_that_cannot_write_is_named(command: Command, tmp_path: Path) -> None:
    class Old(StubTransport):
        async def stream(
            self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
        ) -> AsyncGenerator[R]:
            assert isinstance(sent, references_pb2.PrepareRequest)
            sent.ClearField("generate")
            async for step in super().stream(method, sent, timeout_s=timeout_s):
                yield step

    def never(_: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        raise AssertionError("nothing is to be scored")

    old = Old(never, models=models_pb2.ListModelsResponse(server_version="0.1"))
    done = command("prepare", write_rows(tmp_path / "a.jsonl", ROWS), "--generate", stub=old)
    assert done.exit_code == 2
    assert "this server does not write synthetic answers" in done.stderr


def test_the_help_names_the_options(command: Command) -> None:
    helped = command("prepare", "--help-all").stdout
    for option in ("--generate", "--judge", "--prompt", "--out", "--overwrite"):
        assert option in helped
