"""Verdicts and the share right of a summary."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, answer, write_rows

from gradewire.testing import StubTransport
from gradewire_cli.results.resumable_output import verdict
from gradewire_cli.results.summary import Summary, result_notes
from gradewire_cli.results.tallies import MetricTally
from gradewire_proto.v1 import scoring_pb2, types_pb2


@pytest.mark.parametrize(
    ("label", "result", "expected"),
    [
        ("bertscore", {"score": 0.9, "correct": True}, True),
        ("bertscore", {"score": 0.9, "correct": False}, False),
        ("bertscore", {"score": 1.0}, None),
        ("exact_match", {"score": 0.0, "correct": True}, True),
        ("exact_match", {"score": 0.0}, False),
        ("mine", {"score": 1.0, "line": "easy_match/1"}, True),
        ("exact_match", {"score": None, "status": "TIMEOUT"}, None),
    ],
)
def test_a_verdict_is_what_the_result_says(label: str, result: dict[str, object], expected: bool | None) -> None:  # noqa: FBT001 - a table of cases
    assert verdict(label, result) is expected


def test_the_share_right_leaves_out_failures_and_results_without_a_verdict() -> None:
    tally = MetricTally()
    for index in range(100):
        failed = {"score": None, "status": "TIMEOUT"}
        scored = {"score": 0.5, "status": "OK"} | ({"correct": index % 4 == 0} if index % 2 == 0 else {})
        tally.add("bertscore", failed if index % 10 < 3 else scored, identifier=str(index))
    kept = [index for index in range(100) if index % 10 >= 3]
    judged = [index % 4 == 0 for index in kept if index % 2 == 0]
    assert (tally.share_right, tally.mean) == (sum(judged) / len(judged), 0.5)
    assert tally.failures == {"TIMEOUT": 30}


SMILE = "smile:v1/1?model=tiny@53aa51172d14&sentence_weight=0.3"
FITTED = f"{SMILE}&synthetic=none&threshold=0.61"


def summary_of(label: str, results: list[dict[str, Any]], *, line: str = SMILE) -> Summary:
    summary = Summary()
    for index, result in enumerate(results):
        scored = {"status": "OK", "line": line, **result}
        summary.add({"id": str(index), "scores": {label: scored}})
    return summary


def test_a_mean_far_from_the_share_called_right_says_what_to_read() -> None:
    # As SMILE's: a mean of .70, and 39 of 100 rows called right.
    results = [{"score": 0.9, "correct": True}] * 39 + [{"score": 0.572, "correct": False}] * 61
    (note,) = result_notes(summary_of("smile", results, line=FITTED))
    assert note.startswith(
        "a mean is not a share of right answers: smile calls 39.0% of the rows right, but its mean is"
    )
    assert "its mean is 0.700. Read the share right instead, or score correctness" in note
    assert "\n" not in note


def test_who_scores_correctness_too_is_told_nothing_of_other_means_and_thresholds() -> None:
    summary = Summary()
    fitted = {"status": "OK", "score": 0.5, "correct": True, "line": "correctness/2?model=tiny@53aa51172d14"}
    for index in range(3):
        smile = {"status": "OK", "score": 0.9, "correct": False, "line": SMILE, "warnings": ["UNCALIBRATED"]}
        summary.add({"id": str(index), "scores": {"smile": smile, "correctness": fitted}})
    assert list(result_notes(summary)) == []
    alone = summary_of("smile", [{"score": 0.9, "correct": False, "warnings": ["UNCALIBRATED"]}] * 3, line=SMILE)
    mean, threshold = result_notes(alone)
    assert mean.endswith("Read the share right instead, or score correctness, whose mean is a probability")
    assert threshold.startswith(
        "smile is UNCALIBRATED, because its threshold was not fitted to this encoder and sentence weight"
    )


@pytest.mark.parametrize(
    ("line", "correct", "said"), [(SMILE, True, True), (FITTED, True, False), (SMILE, None, False)]
)
def test_the_papers_threshold_is_said_once(line: str, correct: bool | None, said: bool) -> None:  # noqa: FBT001 - a table of cases
    verdicts = {} if correct is None else {"correct": correct}
    notes = list(result_notes(summary_of("mine", [{"score": 1.0, **verdicts}] * 3, line=line)))
    hint = f"To fit a threshold, run: gradewire calibrate LABELLED_FILE --metric '{SMILE}'"
    why = "mine calls scores of 2/3 or more right, as its paper does, because no threshold was fitted to this encoder"
    assert notes == ([f"{why}. {hint}"] if said else [])


@pytest.mark.parametrize(
    ("results", "line"),
    [
        # The mean is the share.
        ([{"score": 1.0, "correct": True}, {"score": 0.0, "correct": False}], "exact_match/1"),
        # A probability's mean is the expected share, whatever is called right.
        ([{"score": 0.45, "correct": False}] * 2, "correctness/2?model=tiny@53aa51172d14"),
        # No verdict: there is no share beside it.
        ([{"score": 0.9}, {"score": 0.8}], "rouge_l/1"),
        ([{"score": None, "status": "TIMEOUT"}], ""),
        ([{"score": 0.7, "correct": True}, {"score": 0.25, "correct": False}], FITTED),
    ],
)
def test_other_means_need_no_remark(results: list[dict[str, Any]], line: str) -> None:
    assert not list(result_notes(summary_of("mine", results, line=line)))


def test_uncalibrated_verdicts_name_the_command_that_fits_a_threshold(command: Command, tmp_path: Path) -> None:
    def uncalibrated(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        reply.provenance[0].line = SMILE
        for item in reply.items:
            for result in item.results:
                result.correct = False
                result.warnings.append(types_pb2.WARNING_UNCALIBRATED)
        return reply

    rows = [{"references": "a", "prediction": "x" * 60, "label": index % 2, "question": str(index)} for index in (0, 1)]
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "smile", "--out", out, stub=StubTransport(uncalibrated))
    assert done.exit_code == 0, done.output
    assert (
        "a mean is not a share of right answers: smile calls 0.0% of the rows right, but its mean is 0.600"
        in done.stderr
    )
    said = next(line for line in done.stderr.splitlines() if line.startswith("smile is UNCALIBRATED"))
    name, *arguments = shlex.split(said.partition("run: ")[2])
    assert (name, arguments) == ("gradewire", ["calibrate", "LABELLED_FILE", "--metric", SMILE])
    # The command is one that there is, and finds the scores under this line.
    options = [str(file) if each == "LABELLED_FILE" else each for each in arguments]
    fitted = command(*options, "--scores", out, "--dry-run")
    assert fitted.exit_code == 0, fitted.output
    assert f"before: {SMILE}" in fitted.stdout
    quiet = command("score", file, "--metrics", "smile", "--quiet", stub=StubTransport(uncalibrated))
    assert quiet.stderr == ""


def test_one_warning_names_the_columns_where_all_rows_fail_alike(command: Command, tmp_path: Path) -> None:
    rows = [{"question": "?", "answer": None, "other": "a", "prediction": "a"}] * 40
    done = command("score", write_rows(tmp_path / "a.jsonl", rows), "--metrics", "smile,rouge_l")
    assert done.exit_code == 1
    (warning,) = [line for line in done.stderr.splitlines() if ": warning: " in line]
    assert warning.startswith(
        "smile, rouge_l: warning: all 40 rows fail for the same reason: INVALID_INPUT: line 1 has no references: "
        "column answer is empty. The columns are question, answer, other, prediction. Read are prediction from "
    )
    assert "references from references or reference or answers or golden_answer" in warning
    assert warning.endswith("--map FIELD=COLUMN reads another column")
    rows = [*rows[:3], {**rows[0], "answer": "a"}]
    mixed = command("score", write_rows(tmp_path / "b.jsonl", rows), "--metrics", "smile")
    assert ": warning: " not in mixed.stderr
    assert "smile: INVALID_INPUT, for example id 0: line 1 has no references" in mixed.stderr


def test_files_whose_rows_fail_alike_name_the_columns_of_all(command: Command, tmp_path: Path) -> None:
    files = [
        write_rows(tmp_path / f"{name}.jsonl", [{"answer": None, "prediction": "a", name: 1}] * 2) for name in "xy"
    ]
    done = command("score", *files, "--metrics", "smile")
    assert "The columns are answer, prediction, x, y. " in done.stderr
