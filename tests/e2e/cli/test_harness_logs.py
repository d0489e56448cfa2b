"""Logs of evaluation harnesses, scored by command: yesterday's run is graded without a new one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gradewire_cli.group import gradewire

LOGS = Path(__file__).parents[2] / "support/harness_logs"
# By --from: the folder, rows, rows with a score, rows that exact_match finds right, and a column of the harness.
RUNS = {
    "lm-eval": ("lm_eval", 19, 16, 7, "lm_eval_acc"),
    "lmms-eval": ("lmms_eval", 7, 7, 5, "lmms_eval_exact_match"),
    "vlmevalkit": ("vlmevalkit/*.xlsx", 6, 5, 3, "vlmevalkit_answer"),
    "inspect": ("inspect/eval", 16, 13, 6, "inspect_includes"),
}


def files_of(name: str) -> list[Path]:
    folder = LOGS / RUNS[name][0]
    return sorted(LOGS.glob(RUNS[name][0]) if "*" in folder.name else folder.iterdir())


def run(*words: object) -> Result:
    return CliRunner().invoke(gradewire, ["score", *map(str, words), "--embedded"])


@pytest.fixture
def score(tmp_path: Path) -> Callable[..., tuple[Result, list[dict[str, Any]], Any]]:
    """Runs the command; gives its result, the output's rows and the summary."""

    def scored(*words: object) -> tuple[Result, list[dict[str, Any]], Any]:
        out, summary = tmp_path / "out.jsonl", tmp_path / "summary.json"
        result = run(*words, "--metrics", "exact_match", "--out", out, "--summary-json", summary)
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        return result, rows, json.loads(summary.read_text()) if summary.exists() else None

    return scored


@pytest.mark.parametrize("name", RUNS)
def test_the_folder_of_a_run_is_scored_with_ids_and_means(score: Any, name: str) -> None:
    folder, rows, scored, right, column = RUNS[name]
    done, written, summary = score(LOGS / folder, "--from", name, "--keep-columns", column)
    assert done.exit_code == (0 if rows == scored else 1), done.output
    results = [row["scores"]["exact_match"] for row in written]
    assert len(written) == rows
    assert [row["index"] for row in written] == list(range(rows))
    assert sum(result["status"] == "OK" for result in results) == scored
    assert sum(result["score"] == 1.0 for result in results) == right
    assert all("/" in row["id"] for row in written), "what has no score is named too"
    assert all(
        row["scores"]["exact_match"]["message"] for row in written if row["scores"]["exact_match"]["status"] != "OK"
    )
    assert any(row.get("input", {}).get(column) is not None for row in written)
    assert all(summary["by"].values()), "types that no row has are not told"
    by_task = summary["by"]["task"]
    assert sum(means["exact_match"]["scored"] for means in by_task.values()) == scored
    assert "exact_match by task" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_taken_up(score: Any, tmp_path: Path, name: str) -> None:
    folder = RUNS[name][0]
    _, written, summary = score(LOGS / folder, "--from", name)
    out = tmp_path / "out.jsonl"
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:3]))
    done, again, after = score(LOGS / folder, "--from", name, "--resume")
    assert again == written
    assert after["by"] == summary["by"]
    assert after["run"]["scored_rows"] == len(written) - 3
    assert done.exit_code == (0 if RUNS[name][1] == RUNS[name][2] else 1)


@pytest.mark.parametrize("name", RUNS)
def test_a_dry_run_reckons(name: str) -> None:
    done = run(LOGS / RUNS[name][0], "--from", name, "--metrics", "exact_match", "--dry-run")
    assert (done.exit_code, done.stdout) == (0, "no metric uses a judge, so there are no calls and no cost\n")


@pytest.mark.parametrize("name", RUNS)
def test_the_summary_names_the_command_that_does_the_same(score: Any, name: str) -> None:
    done, _, _ = score(LOGS / RUNS[name][0], "--from", name)
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("reproduce: "))
    assert f"--from {name} --metrics 'exact_match/1?abstention=recognised&answer=whole'" in line


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("other", RUNS)
def test_a_log_of_another_harness_is_refused(name: str, other: str, tmp_path: Path) -> None:
    if name == other:
        return
    for path in files_of(other):
        done = run(path, "--from", name, "--metrics", "exact_match")
        assert done.exit_code == 2, (path, done.output)
        assert path.name in done.stderr
        assert "Traceback" not in done.stderr
        shutil.copy(path, tmp_path)
    assert run(tmp_path, "--from", name, "--metrics", "exact_match").exit_code == 2


def test_tables_of_vlmevalkit_say_the_same_in_every_format(score: Any) -> None:
    scores = []
    for kind in ("xlsx", "tsv", "json"):
        _, rows, summary = score(LOGS / f"vlmevalkit/*.{kind}", "--from", "vlmevalkit", "--overwrite")
        scores.append([(row["id"], row["scores"]["exact_match"]["score"]) for row in rows])
        assert summary["by"]["category"].keys() == {"matter", "food", "animals", "text", "numbers"}
    assert scores[0] == scores[1] == scores[2]


def test_a_filter_of_lm_eval_is_chosen(score: Any) -> None:
    (log,) = LOGS.glob("lm_eval/samples_gw_sums_*")
    done, rows, summary = score(log, "--from", "lm-eval", "--filter", "flexible")
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows] == ["gw_sums/0/flexible", "gw_sums/1/flexible"]
    assert summary["by"]["filter"].keys() == {"flexible"}
    assert "--filter flexible" in done.stderr


def test_a_filter_of_lmms_eval_is_chosen_and_means_are_told_by_category(score: Any) -> None:
    (log,) = LOGS.glob("lmms_eval/*gw_letters*")
    done, rows, _ = score(log, "--from", "lmms-eval", "--filter", "2")
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows] == ["gw_letters/0/filter 2", "gw_letters/1/filter 2"]
    (log,) = LOGS.glob("lmms_eval/*gw_pictures*")
    done, _, summary = score(log, "--from", "lmms-eval", "--overwrite")
    assert summary["by"]["category"].keys() == {"what", "yes/no", "count"}


def test_columns_are_mapped(score: Any) -> None:
    """The raw answer in the place of what the filter made of it, the doc's field in the place of the target."""
    (log,) = LOGS.glob("lm_eval/samples_gw_sums_*")
    mapped = ("--map", "prediction=raw_response", "--map", "references=doc.solution")
    done, rows, _ = score(log, "--from", "lm-eval", "--filter", "strict", *mapped, "--keep-columns", "doc.solution")
    assert done.exit_code == 0, done.output
    assert [row["scores"]["exact_match"]["score"] for row in rows] == [0.0, 0.0]
    assert rows[0]["input"]["doc.solution"] == "3 + 4 = 7 #### 7"


def test_a_task_without_references_leaves_those_of_the_same_run_scored(score: Any, tmp_path: Path) -> None:
    """It stopped the whole run, and named --map, which no column of it would have helped."""
    folder = tmp_path / "run"
    folder.mkdir()
    (facts,) = LOGS.glob("lm_eval/samples_gw_facts_*")
    shutil.copy(facts, folder)
    sample = json.loads(facts.read_text().splitlines()[0])
    doc = {"prompt": "Write in capitals.", "instruction_id_list": ["case:capital"]}
    rules = folder / "samples_rules_2026-11-24T08-00-00.000000.jsonl"
    rules.write_text(json.dumps({**sample, "doc": doc, "target": "0"}))
    done, rows, _ = score(folder, "--from", "lm-eval")
    assert done.exit_code == 1, done.output
    statuses = {row["id"]: row["scores"]["exact_match"]["status"] for row in rows}
    assert statuses.pop("rules/0") == "INVALID_INPUT"
    assert "rules" in done.output
    assert set(statuses.values()) == {"OK"}
    alone = run(rules, "--from", "lm-eval", "--metrics", "exact_match")
    assert alone.exit_code == 2
    assert "no column for references" in alone.stderr


def test_columns_that_no_file_has_are_refused() -> None:
    done = run(LOGS / "lm_eval", "--from", "lm-eval", "--metrics", "exact_match", "--keep-columns", "lm_eval_rouge")
    assert done.exit_code == 2
    assert "no file has a column 'lm_eval_rouge'. Columns: id, task" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "inspect", "--filter", "strict"), "--filter works only with --from lm-eval"),
        (("--filter", "strict"), "--filter works only with --from lm-eval"),
        (("--from", "lm-eval", "--questions", "q.json"), "--questions needs --from vqa or --from squad"),
        (("--from", "lm-eval"), "no file named samples_*.jsonl"),
        (("--from", "vlmevalkit"), "is a folder. With --from vlmevalkit, name the folder's files"),
        (("--from", "none"), "'none' is not one of"),
    ],
)
def test_options_that_do_not_go_together_are_named(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = run(tmp_path, *words, "--metrics", "exact_match")
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_log_that_is_given_without_from_says_what_it_needs() -> None:
    done = run(LOGS / "inspect/eval/sums.eval", "--metrics", "exact_match")
    assert done.exit_code == 2
    assert "looks like a log from inspect. Use --from inspect" in done.stderr
    done = run(LOGS / "vlmevalkit/table_GwChoices.xlsx", "--metrics", "exact_match")
    assert done.exit_code == 2
    assert "--from vlmevalkit" in done.stderr
