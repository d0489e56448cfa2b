"""Metrics of a judge over a real socket, with SmolLM2, which cannot judge: served, embedded, streamed, by command."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.engines.varied_rows import BAD
from tests.support.engines.varied_rows import ROWS as ALL_ROWS
from tests.support.judges.prompts import GRADE, LAVE, VERDICT
from tests.support.judges.smollm2 import smollm2_repository
from tests.support.servers.server_process import ServerProcess

from gradewire import (
    AsyncClient,
    Client,
    JudgeGrade,
    JudgeParts,
    JudgeVerdict,
    Lave,
    MetricScore,
    NotReady,
    ScoreReport,
    ScoreWarning,
    Status,
    parse_metric_line,
)
from gradewire_cli.group import gradewire as gradewire_command
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS

JUDGE = "smollm2-135m-instruct"
METRICS = {
    "smile": "smile",
    "lave": "lave?binary=judge&value=expected",
    "judge_grade": "judge_grade",
    "judge_similarity": "judge_similarity",
    "judge_verdict": "judge_verdict",
}
CHOSEN = (
    *("plain", "annotators", "Chinese", "marks", "template", "long", "one word"),
    *("blank prediction", "blank reference", "no question"),
)
ROWS = {name: ALL_ROWS[name] for name in CHOSEN}
ITEMS = [{"id": name, **row} for name, row in ROWS.items()]
JUDGED = ("lave", "judge_grade", "judge_similarity", "judge_verdict")
_RATING = PACKAGE_PROMPTS.find("lave", "").variants["rating"].last
VALUES = dict(zip(_RATING.labels, _RATING.values, strict=True))
# So long that the cut of long rows is seen, so short that it takes no minute.
SETTINGS = {"judge_model": JUDGE, "judge_max_item_tokens": 112}


@pytest.fixture(scope="module")
def settings(minilm: Path) -> dict[str, Any]:
    return {"model_repository": minilm, "judge_repository": smollm2_repository(), **SETTINGS}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("judging"), **settings) as process:
        yield process


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address) as client:
        yield client


@pytest.fixture(scope="module")
def together(client: Client) -> ScoreReport:
    return client.score(ITEMS, METRICS)


def results(report: ScoreReport) -> Iterator[tuple[str, str, MetricScore]]:
    """Row, metric and result of all that a judge was asked for."""
    for item in report:
        yield from ((item.id, label, item.scores[label]) for label in JUDGED)


def as_dicts(report: ScoreReport) -> list[dict[str, Any]]:
    return [item.to_dict() for item in report]


def test_rows_end_in_a_score_or_in_a_status_that_says_why(together: ScoreReport) -> None:
    for name, label, result in results(together):
        assert (result.score is not None) == (result.status is Status.OK), (name, label)
        assert bool(result.message) or result.status is Status.OK, (name, label)
        if name in BAD:
            assert result.status is BAD[name], (name, label)
        elif name == "no question":
            assert result.status is Status.INVALID_INPUT, label
        elif name == "marks":
            # "?!" is an answer to other metrics and nothing to a judge.
            assert result.status is Status.EMPTY_PREDICTION, label
        else:
            # SmolLM2 need not care for the labels.
            assert result.status in {Status.OK, Status.UNPARSABLE}, (name, label, result.message)
    scored = [result for _, _, result in results(together) if result.status is Status.OK]
    assert {result.provenance.name for result in scored if result.provenance} >= {"lave", "judge_similarity"}
    assert [item.scores["smile"].status for item in together] == [BAD.get(name, Status.OK) for name in ROWS]


def test_a_score_is_worked_out_from_what_the_judge_said(together: ScoreReport) -> None:
    for name, label, result in results(together):
        parts = result.parts
        if not isinstance(parts, JudgeParts):
            assert result.status is not Status.OK
            continue
        where = (name, label)
        assert result.provenance is not None
        assert result.correct is not None, where
        if parts.decided_by == "rule":
            assert (parts.labels, parts.label_mass, parts.prompt_tokens) == ((), None, 0), where
            continue
        assert sum(parts.probabilities) == pytest.approx(1), where
        assert len(parts.labels) == len(parts.probabilities) > 1, where
        assert parts.label_mass is not None, where
        assert 0.01 <= parts.label_mass <= 1 + 1e-6, where
        assert parts.prompt_tokens > 20, where
        assert result.provenance.model == JUDGE, where
        assert result.provenance.line.count(f"@{result.provenance.prompt_digest[:12]}") == 1, where
        match label:
            case "lave":
                expected = sum(VALUES[name] * p for name, p in zip(parts.labels, parts.probabilities, strict=True))
                assert parts.value == pytest.approx(expected), where
                assert result.score == pytest.approx((expected - 1) / 2), where
            case "judge_grade":
                assert parts.value is not None, where
                assert result.score == pytest.approx(parts.value / 5), where
                assert parts.yes_probability is not None, where
            case "judge_similarity":
                assert result.score == parts.value, where
            case _:
                assert result.score == pytest.approx(parts.yes_probability), where


def test_what_is_too_long_is_cut_and_says_so(together: ScoreReport) -> None:
    for name in ("long", "one word"):
        for label in ("lave", "judge_similarity"):
            result = together[list(ROWS).index(name)].scores[label]
            if result.status is Status.OK:
                assert ScoreWarning.TRUNCATED in result.warnings, (name, label)


def test_a_stream_gives_what_a_request_gives(client: Client, together: ScoreReport) -> None:
    streamed = sorted(client.score_stream(ITEMS, METRICS), key=lambda item: item.index)
    assert [item.to_dict() for item in streamed] == as_dicts(together)


def test_the_line_of_a_result_reproduces_it(client: Client, together: ScoreReport) -> None:
    lines = [together.provenance[label].line for label in JUDGED]
    again = client.score(ITEMS[:4], dict(zip(JUDGED, lines, strict=True)))
    for item in again:
        assert [item.scores[label].to_dict() for label in JUDGED] == [
            together[item.index].scores[label].to_dict() for label in JUDGED
        ]
    for label, line in zip(JUDGED, lines, strict=True):
        assert parse_metric_line(line) == replace(again.provenance[label].metric)  # type: ignore[type-var]


def test_reasons_are_written_before_the_verdict_and_come_back(client: Client) -> None:
    asked = [
        Lave(mode="rationale", prompt=LAVE),
        JudgeGrade(style="extract", prompt=GRADE),
        JudgeVerdict(style="reasons", prompt=VERDICT),
    ]
    (item,) = client.score([ROWS["annotators"]], asked)
    for label, result in item.scores.items():
        if result.status is Status.OK:
            assert isinstance(result.parts, JudgeParts)
            assert result.parts.reason, label
            assert 0 < result.parts.generated_tokens <= 10, label
        else:
            assert result.status is Status.UNPARSABLE, label


def test_a_judge_that_is_not_here_fails_its_metric_alone_and_says_how_to_get_it(client: Client) -> None:
    (item,) = client.score([ROWS["plain"]], {"exact_match": "exact_match", "lave": "lave?model=nobody"})
    assert item.scores["exact_match"].status is Status.OK
    assert item.scores["lave"].status is Status.MODEL_UNAVAILABLE
    with pytest.raises(NotReady, match="nobody"):
        client.score([ROWS["plain"]], "lave", judge="nobody")
    with pytest.raises(NotReady, match="gradewire models build qwen"):
        client.score([ROWS["plain"]], "lave", judge="qwen2.5-coder-1.5b-instruct")


def test_the_list_says_what_a_judge_is_good_for(client: Client) -> None:
    listed = client.models()
    judges = {model.name: model for model in listed.models if model.kind == "judge"}
    assert judges[JUDGE].is_default
    assert judges[JUDGE].remarks
    assert {metric.name for metric in listed.metrics if metric.needs_judge} == set(JUDGED)


def run_command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(gradewire_command, list(map(str, arguments)))


def test_the_command_scores_hostile_rows_and_warns_of_a_judge_for_tests(
    server: ServerProcess, together: ScoreReport, tmp_path: Path
) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps(item) + "\n" for item in ITEMS) + "no row\n")
    done = run_command("score", file, "--metrics", ",".join(METRICS.values()), "--server", server.address, "--out", out)
    assert done.exit_code == 1, "some rows are bad"
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[-1]["scores"][METRICS["lave"]]["status"] == "INVALID_INPUT"
    for row, item in zip(rows, together, strict=False):
        for label, result in item.scores.items():
            written = row["scores"][METRICS[label]]
            assert (written["score"], written["status"]) == (result.score, str(result.status)), (item.id, label)
    told = [line for line in done.stderr.splitlines() if line.startswith(f"judge {JUDGE}: ")]
    assert len(told) == 1
    assert "verdicts from a cache" in done.stderr


def test_a_prompt_of_ones_own_travels_with_the_call(client: Client, server: ServerProcess, tmp_path: Path) -> None:
    own, file = tmp_path / "own.toml", tmp_path / "rows.jsonl"
    own.write_text(run_command("prompt", "export", "judge_verdict").stdout.replace('"judge_verdict"', '"own"', 1))
    file.write_text(json.dumps(ITEMS[0]) + "\n")
    done = run_command("score", file, "--metrics", "judge_verdict", "--prompt", own, "--server", server.address)
    line = json.loads(done.stdout)["scores"]["judge_verdict"]["line"]
    assert "prompt=own/2@" in line
    report = client.score(ITEMS[:1], {"judge_verdict": JudgeVerdict(prompt=own.read_text())})
    provenance = report.provenance["judge_verdict"]
    assert (provenance.line, provenance.prompt) == (line, "own/2")
    # The server forgets it: its name alone says nothing there.
    unknown = client.score(ITEMS[:1], ["exact_match", line])[0].scores["judge_verdict"]
    assert (unknown.status, "own/2" in unknown.message) == (Status.INVALID_PARAMETER, True)


def test_submissions_of_a_training_loop_and_async_calls(client: Client, server: ServerProcess) -> None:
    rows = [ROWS["plain"], ROWS["annotators"]]
    future = client.submit(rows, "judge_similarity")
    assert client.flush(timeout_s=60)
    here = future.result()

    async def there() -> ScoreReport:
        async with AsyncClient(server.address) as other:
            return await other.score(rows, "judge_similarity", judge=JUDGE)

    assert as_dicts(asyncio.run(there())) == as_dicts(here)


def test_the_example_runs(server: ServerProcess) -> None:
    program = Path(__file__).parents[3] / "examples" / "judge.py"
    command = [sys.executable, str(program), "--server", server.address, "--rows", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "2 of 2 rows judged" in done.stdout


def test_another_process_gives_the_same_verdicts_in_another_order_and_so_does_its_forked_child(
    settings: dict[str, Any], together: ScoreReport, tmp_path: Path
) -> None:
    """Its cache is empty. Each process has a judge of its own, which ends with the scorer."""
    chosen = [index for index, name in enumerate(ROWS) if name not in {"long", "one word"}][::-1]
    own = {name: value if isinstance(value, int) else str(value) for name, value in settings.items()}
    given = [json.dumps(each) for each in ({**own, "disk_directory": str(tmp_path)}, [ITEMS[i] for i in chosen])]
    program = Path(__file__).with_name("forked_judge.py")
    command = [sys.executable, str(program), *given]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert ended.returncode == 0, ended.stderr
    expected = [together[index].scores["judge_similarity"].to_dict() for index in chosen]
    told = {"results": json.loads(json.dumps(expected)), "exit_code": 0, "judges": [1, 0]}
    assert json.loads(ended.stdout) == told, ended.stderr
