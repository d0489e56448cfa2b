"""The installed command, in processes of its own, with the real encoder: order, breaks, and how a run goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.server_process import ServerProcess, lasting_port

GRADEWIRE = Path(sys.executable).with_name("gradewire")
EXAMPLES = Path(__file__).parents[3] / "examples" / "answers.jsonl"
WAIT_S = 90.0
# More than the batches in flight at a time, so that a run can be broken in its middle.
ROWS = 700


@pytest.fixture
def environment(minilm: Path, tmp_path: Path) -> Mapping[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GRADEWIRE_")}
    given = {
        "GRADEWIRE_MODEL_REPOSITORY": str(minilm),
        "GRADEWIRE_DISK_DIRECTORY": str(tmp_path / "store"),
        # Each new store would get a new 8-bit graph, which takes seconds to write.
        "GRADEWIRE_WINDOW_CHOICE": "fp32",
    }
    return clean | given


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Distinct answers, a bad line and an empty one among them: about two seconds of work."""
    path = tmp_path / "rows.jsonl"
    lines = [
        json.dumps(
            {"id": f"r{number % 500}", "references": ["twelve"], "prediction": f"answer {number} of {number * 7}"}
        )
        for number in range(ROWS)
    ]
    lines[40] = "{torn"
    lines[50] = json.dumps({"references": ["twelve"], "prediction": " "})
    path.write_text("\n".join(lines))
    return path


def command(*arguments: str | Path, environment: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [GRADEWIRE, *map(str, arguments)],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=WAIT_S)
    return process.returncode, out, err


def wait_for_rows(out: Path, process: subprocess.Popen[str]) -> None:
    """Until the first rows are written and before the last."""
    give_up = time.monotonic() + WAIT_S
    while not (out.exists() and out.stat().st_size):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.005)


def results(path: Path) -> list[dict[str, Any]]:
    """Rows of an output file; every line but a torn last one must be readable."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def assert_same(resumed: Path, straight: Path) -> None:
    first, second = results(resumed), results(straight)
    assert [(row["id"], row["index"]) for row in first] == [(row["id"], row["index"]) for row in second]
    for one, other in zip(first, second, strict=True):
        for label, score in one["scores"].items():
            assert score["status"] == other["scores"][label]["status"]
            assert score["score"] == pytest.approx(other["scores"][label]["score"], abs=2e-4)


@pytest.mark.hostile
def test_kill_9_and_resume_end_as_a_straight_run(rows: Path, tmp_path: Path, environment: Mapping[str, str]) -> None:
    out, straight = tmp_path / "out.jsonl", tmp_path / "straight.jsonl"
    options = ("--metrics", "sbert,easy_match", "--quiet")
    killed = command("score", rows, "--out", out, *options, environment=environment)
    wait_for_rows(out, killed)
    killed.kill()
    killed.communicate()
    done = len(results(out))
    assert 0 < done < ROWS
    with out.open("ab") as stream:
        stream.write(b'{"id": "torn by the ki')
    resumed = finish(command("score", rows, "--out", out, "--resume", *options, environment=environment))
    fresh = environment | {"GRADEWIRE_DISK_DIRECTORY": str(tmp_path / "other")}
    once = finish(command("score", rows, "--out", straight, *options, environment=fresh))
    assert resumed[0] == once[0] == 1, (resumed, once)
    assert_same(out, straight)
    statuses = [row["scores"]["sbert"]["status"] for row in results(out)]
    assert (statuses[40], statuses[50]) == ("INVALID_INPUT", "EMPTY_PREDICTION")
    assert statuses.count("OK") == ROWS - 2


@pytest.fixture
def server(environment: Mapping[str, str]) -> Iterator[str]:
    """Address that `gradewire serve` prints; stopped by SIGTERM, as an operator would."""
    flags = ("--port", "0", "--http-port", "0", "--drain-s", "0.1", "--log-level", "error")
    process = command("serve", *flags, environment=environment)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith("gradewire is ready on 127.0.0.1:"), finish(process)
    yield said.split()[-1]
    process.terminate()
    assert finish(process)[0] == 0


def test_ctrl_c_leaves_readable_rows_and_says_how_to_go_on(
    rows: Path, tmp_path: Path, environment: Mapping[str, str], server: str
) -> None:
    out, straight = tmp_path / "out.jsonl", tmp_path / "straight.jsonl"
    options = ("--metrics", "sbert", "--server", server)
    interrupted = command("score", rows, "--out", out, *options, environment=environment)
    wait_for_rows(out, interrupted)
    interrupted.send_signal(signal.SIGINT)
    code, _, err = finish(interrupted)
    assert code == 130, err
    done = results(out)
    assert [row["index"] for row in done] == list(range(len(done)))
    assert out.read_bytes().endswith(b"\n")
    assert f"interrupted; {len(done)} rows are in {out}. Continue with --resume" in err
    assert "Traceback" not in err
    assert finish(command("score", rows, "--out", out, "--resume", *options, environment=environment))[0] == 1
    finish(command("score", rows, "--out", straight, *options, environment=environment))
    assert_same(out, straight)


def test_prepared_answers_standard_input_and_agree_on_the_examples(
    tmp_path: Path, environment: Mapping[str, str], server: str
) -> None:
    lines = [line for line in EXAMPLES.read_text(encoding="utf-8").splitlines() if "synthetic_answers" in line]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    served = environment | {"GRADEWIRE_SERVER": server}
    code, name, err = finish(command("prepare", file, environment=served))
    assert (code, len(name)) == (0, 33), err
    inline = finish(command("score", file, environment=served))
    with file.open(encoding="utf-8") as stdin:
        from_stdin = ("score", "-", "--reference-set", name.strip())
        prepared = finish(command(*from_stdin, environment=served, stdin=stdin))
    assert inline[0] == prepared[0] == 0, (inline, prepared)
    scores = [
        [json.loads(line)["scores"]["smile"]["score"] for line in out.splitlines()] for _, out, _ in (inline, prepared)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=2e-4)
    assert "synthetic=inline" in inline[1]
    assert "synthetic=prepared" in prepared[1]
    assert f"reference_set={name.strip()}&" in prepared[1]
    line = json.loads(prepared[1].splitlines()[0])["scores"]["smile"]["line"]
    by_line = finish(command("score", file, "--metrics", line, environment=served))
    assert by_line[0] == 0, by_line
    assert [json.loads(row)["scores"]["smile"]["score"] for row in by_line[1].splitlines()] == pytest.approx(
        scores[1], abs=1e-6
    )

    figures = tmp_path / "figures.json"
    agreed = finish(
        command(
            "agree",
            EXAMPLES,
            "--metrics",
            "smile,exact_match",
            "--json",
            figures,
            "--resamples",
            "500",
            environment=served,
        )
    )
    assert agreed[0] == 0, agreed
    smile = json.loads(figures.read_text())["metrics"]["smile"]
    assert smile["statuses"] == {"OK": 72}
    assert len([cell for cell in smile["cells"] if cell["level"] == "cell"]) == 9
    everything = smile["cells"][-1]
    assert everything["rows"] == 72
    # Better than chance on a file made of the hard cases, far from perfect.
    assert 0.6 < everything["auc"]["value"] < 0.95
    assert everything["auc"]["low"] < everything["auc"]["value"] < everything["auc"]["high"]


def test_a_server_that_is_being_started_is_waited_for(
    tmp_path: Path, minilm: Path, environment: Mapping[str, str]
) -> None:
    port = lasting_port()
    out = tmp_path / "out.jsonl"
    arguments = ("score", EXAMPLES, "--out", out, "--server", f"127.0.0.1:{port}", "--wait-s", "60")
    run = command(*arguments, environment=environment)
    assert run.stderr is not None
    assert "retrying until" in run.stderr.readline()
    with ServerProcess(tmp_path, port=port, model_repository=minilm, judge_backend="none"):
        code, _, err = finish(run)
    assert code == 0, err
    assert len(out.read_text().splitlines()) == len(EXAMPLES.read_text().splitlines())


def test_server_that_is_not_there_is_exit_code_3(tmp_path: Path, environment: Mapping[str, str]) -> None:
    out = tmp_path / "out.jsonl"
    # Port 1 needs rights that nobody listens with.
    code, _, err = finish(command("score", EXAMPLES, "--out", out, "--server", "127.0.0.1:1", environment=environment))
    assert code == 3
    assert "127.0.0.1:1" in err
    assert err.count("\n") == 1
    assert not out.exists()
