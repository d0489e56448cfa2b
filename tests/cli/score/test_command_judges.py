"""`gradewire score` with metrics of a judge: what is asked, what users are told, what is sent again."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, read_rows, write_rows
from tests.cli.judged import rows_of
from tests.cli.score.judging_server import PROMPT, ROWS, JudgingStub, prompt_file


def test_what_a_judge_said_reaches_rows_and_summary(command: Command, tmp_path: Path) -> None:
    rows = [*ROWS[:3], {"references": ["yes"], "prediction": "rule"}, {"references": ["a"], "prediction": " "}]
    file, out = write_rows(tmp_path / "a.jsonl", rows), tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "smile,lave", "--out", out, stub=JudgingStub())
    assert done.exit_code == 0, done.output
    written = read_rows(out.read_text())
    assert written[0]["scores"]["lave"] == {
        "score": 0.01,
        "status": "OK",
        "value": 3.0,
        "labels": ["1", "2", "3"],
        "probabilities": [0.125, 0.125, 0.75],
        "label_mass": 0.9,
        "reason": "Both say the same.",
        "decided_by": "judge",
        "demonstrations": "short",
        "prompt_tokens": 800,
        "generated_tokens": 20,
        "correct": True,
        "line": "lave/1",
    }
    assert "label_mass" not in written[3]["scores"]["lave"]
    assert (
        "lave: 3 judged, 1 by rule; 800 tokens read and 20 written for each; mean label mass 0.900 (least 0.900); "
        "0.50 s in the judge and 0.25 s in its queue" in done.stderr
    )
    assert "1 EMPTY_PREDICTION" in done.stderr


@pytest.mark.parametrize("verb", [("score",), ("agree", "--resamples", "100")])
def test_remarks_and_advice_are_told_once_before_anything_is_paid_for(
    command: Command, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    file = write_rows(tmp_path / "a.jsonl", rows_of(8))

    def told(*arguments: str) -> list[str]:
        done = command(*verb, file, *arguments, "--quiet", stub=JudgingStub())
        assert done.exit_code == 0, done.output
        return [line for line in done.stderr.splitlines() if line.startswith(("lave", "judge"))]

    advice = "lave: smile agrees more with people"
    assert told("--metrics", "lave,judge_grade") == [advice, "judge good: reads English best"]
    toy = ["judge toy: for tests only", "judge toy: judges by chance"]
    assert told("--metrics", "judge_grade,judge_verdict", "--judge", "toy") == toy
    assert told("--metrics", "lave?model=toy@0123456789ab") == [advice, *toy]
    assert told("--metrics", "smile,sbert") == []


def test_all_asks_no_judge_unless_it_is_named(command: Command, tmp_path: Path) -> None:
    row = {"prediction": "x", "choices": ["a 1", "p", "q"]}
    rows = [{**row, "references": ["a 1", name], "question": name} for name in "pq"]
    file = write_rows(tmp_path / "a.jsonl", rows)

    def labels(metrics: str) -> set[str]:
        done = command("score", file, "--metrics", metrics, "--quiet", stub=JudgingStub())
        assert done.exit_code == 0, done.output
        assert "left out" not in done.stderr
        return set(read_rows(done.stdout)[0]["scores"])

    every = labels("all")
    assert not every & {"lave", "judge_grade", "judge_similarity", "judge_verdict"}
    assert labels("all,lave") == labels("lave,all") == every | {"lave"}


def test_a_judge_is_for_judges_and_a_model_for_encoders(command: Command, tmp_path: Path) -> None:
    file, stub = write_rows(tmp_path / "a.jsonl", ROWS[:1]), JudgingStub()
    metrics = "smile,lave,judge_verdict?model=toy"
    assert command("score", file, "--metrics", metrics, "--model", "tiny", "--judge", "good", stub=stub).exit_code == 0
    smile, lave, verdict = stub.requests[-1].metrics
    assert (smile.smile.model, lave.lave.model, verdict.judge_verdict.model) == ("tiny", "good", "toy")
    refused = command("score", file, "--metrics", "smile", "--judge", "good", stub=stub)
    assert (refused.exit_code, refused.stderr) == (
        2,
        "Error: judge: none of the metrics has a judge: leave judge out\n",
    )
    refused = command("score", file, "--metrics", "lave", "--model", "tiny", stub=stub)
    assert "for a judge use judge," in refused.stderr


def test_a_prompt_file_goes_to_the_metric_that_it_names(command: Command, tmp_path: Path) -> None:
    file, stub, mine = write_rows(tmp_path / "a.jsonl", ROWS[:1]), JudgingStub(), prompt_file(tmp_path)
    done = command("score", file, "--metrics", "smile,lave,judge_grade", "--prompt", mine, stub=stub)
    assert done.exit_code == 0, done.output
    _, lave, grade = stub.requests[-1].metrics
    assert (lave.lave.prompt, grade.judge_grade.prompt) == (PROMPT, "")
    line = read_rows(done.stdout)[0]["scores"]["lave"]["line"]
    assert line.startswith("lave/1?prompt=mine/3@")
    again = done.stderr.splitlines()[-1]
    assert f"--prompt {mine}" in again
    assert line in again
    # The printed line names the file by name and digest, and the file fills it in.
    repeated = command("score", file, "--metrics", f"smile,{line},judge_grade", "--prompt", mine, stub=stub)
    assert stub.requests[-1].metrics[1].lave.prompt == PROMPT
    assert read_rows(repeated.stdout) == read_rows(done.stdout)


def test_prompts_of_one_metric_are_told_apart_by_name(command: Command, tmp_path: Path) -> None:
    file, stub = write_rows(tmp_path / "a.jsonl", ROWS[:1]), JudgingStub()
    one = prompt_file(tmp_path)
    two = prompt_file(tmp_path, PROMPT.replace("version = 3", "version = 4"), name="two.toml")
    both = ("--prompt", one, "--prompt", two)
    done = command("score", file, "--metrics", "lave?prompt=mine/3,lave?prompt=mine/4", *both, stub=stub)
    assert done.exit_code == 0, done.output
    assert [spec.lave.prompt for spec in stub.requests[-1].metrics] == [one.read_text(), two.read_text()]
    labels = list(read_rows(done.stdout)[0]["scores"])
    assert [label.partition("@")[0] for label in labels] == ["lave?prompt=mine/3", "lave?prompt=mine/4"]
    refused = command("score", file, "--metrics", "lave", *both, stub=stub)
    assert (refused.exit_code, "are both for lave. Choose one" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "metrics", "said"),
    [
        (PROMPT, "smile,judge_grade", "prompt mine/3 is for lave. Add this metric to --metrics"),
        (PROMPT, "lave?prompt=lave/1", "if --metrics gives it a different prompt"),
        (PROMPT, "lave?prompt=mine/3@00000000", "if --metrics gives it a different prompt"),
        ("metric = ", "lave", "is not TOML"),
        ('metric = "lave"', "lave", "lacks its name: add the line name ="),
        ('metric = "lave"\nname = "x"\nversion = "1"', "lave", "lacks its version"),
        ("#" * 65_537, "lave", "has 65537 bytes: shorten the file to at most 65536"),
    ],
)
def test_a_prompt_that_is_of_no_use_is_refused(
    command: Command, tmp_path: Path, text: str, metrics: str, said: str
) -> None:
    file, stub = write_rows(tmp_path / "a.jsonl", ROWS[:1]), JudgingStub()
    done = command("score", file, "--metrics", metrics, "--prompt", prompt_file(tmp_path, text), stub=stub)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert stub.sizes == []


def test_resume_refuses_another_prompt(command: Command, tmp_path: Path) -> None:
    file, out, mine = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl", prompt_file(tmp_path)
    run = ("score", file, "--metrics", "lave", "--prompt", mine, "--out", out, "--quiet")
    assert command(*run, stub=JudgingStub()).exit_code == 0
    whole = out.read_text()
    out.write_text("".join(whole.splitlines(keepends=True)[:7]))
    mine.write_text(PROMPT + "# better\n")
    refused = command(*run, "--resume", stub=JudgingStub())
    assert (refused.exit_code, "lave differs in prompt" in refused.stderr) == (2, True)
    mine.write_text(PROMPT)
    assert command(*run, "--resume", stub=JudgingStub()).exit_code == 0
    assert out.read_text() == whole


def test_agree_reads_what_a_judge_said(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", rows_of(40)), tmp_path / "out.jsonl"
    assert command("score", file, "--metrics", "smile,lave", "--out", out, stub=JudgingStub()).exit_code == 0
    found, page = tmp_path / "found.json", tmp_path / "page.html"
    outputs = ("--json", found, "--html", page)
    done = command("agree", file, "--scores", out, "--resamples", "100", *outputs, "--quiet")
    assert done.exit_code == 0, done.output
    assert set(json.loads(found.read_text())["metrics"]) == {"smile", "lave"}
    shown = page.read_text()
    assert "reason “Both say the same.”" in shown
    assert "probabilities 1 0.125 / 2 0.125 / 3 0.750" in shown
    assert "prompt_tokens" not in shown
