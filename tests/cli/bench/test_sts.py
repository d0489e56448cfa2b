"""The STS average of a stub's scores, which the test computes with scipy."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.cli.conftest import Command
from tests.cli.rows.official.test_sts import SICK_HEADER, semeval, write

from gradewire.testing import StubTransport, echo_scores
from gradewire_cli.rows.official.sts import BENCHMARK, SICK, SUBSETS

PAIRS = 30

Expected = dict[tuple[str, str], tuple[list[float], list[float]]]


def stub() -> StubTransport:
    """Scores a pair by its letters, over 100; the sentences have 1 to 40."""
    return StubTransport(
        lambda request: echo_scores(request, score=lambda item: (len(item.prediction) + len(item.references[0])) / 100)
    )


def files(folder: Path, *, without: tuple[str, ...] = ()) -> Expected:
    """Writes all seven test sets in their public forms; returns scores and grades by test set and subset."""
    random = np.random.default_rng(7)
    found: Expected = {}
    for task, subsets in SUBSETS.items():
        for subset in subsets or ("",):
            if task in without or subset in without:
                continue
            letters = random.integers(1, 21, (PAIRS, 2))
            grades = np.round(np.clip(letters.sum(1) / 10 + random.normal(0, 1, PAIRS), 0, 5), 1)
            found[task, subset] = [sum(pair) / 100 for pair in letters.tolist()], grades.tolist()
            texts = [("a" * first, "b" * second) for first, second in letters.tolist()]
            both = list(zip(texts, grades, strict=True))
            if task == BENCHMARK:
                lines = (f"g\tf\t2012\t{n}\t{grade}\t{a}\t{b}\n" for n, ((a, b), grade) in enumerate(both))
                write(folder / "STSBenchmark/sts-test.csv", "".join(lines))
            elif task == SICK:
                lines = (f"{n}\t{a}\t{b}\t{grade}\tNEUTRAL\n" for n, ((a, b), grade) in enumerate(both))
                write(folder / "SICK/SICK_test_annotated.txt", SICK_HEADER + "".join(lines))
            else:
                sentences = "".join(f"{a}\t{b}\n" for (a, b), _ in both)
                semeval(folder / f"{task}-en-test", subset, sentences, "".join(f"{grade}\n" for _, grade in both))
    return found


def document(command: Command, folder: Path, *options: str) -> dict[str, Any]:
    out = folder.parent / "sts.json"
    done = command(
        "bench", "sts", folder, "--metrics", "sbert", "--resamples", "100", "--json", out, *options, stub=stub()
    )
    assert done.exit_code == 0, done.output
    read: dict[str, Any] = json.loads(out.read_text())
    return read


def spearman(parts: list[tuple[list[float], list[float]]]) -> float:
    scores, grades = (np.concatenate(side) for side in zip(*parts, strict=True))
    return 100 * float(stats.spearmanr(scores, grades).statistic)


def test_the_average_is_over_seven_sets_with_all_pairs_of_a_year_together(command: Command, tmp_path: Path) -> None:
    expected = files(tmp_path / "sets")
    read = document(command, tmp_path / "sets")
    found = read["evaluators"]["sbert"]
    by_task = {task: spearman([own for (name, _), own in expected.items() if name == task]) for task in SUBSETS}
    assert {task: each["value"] for task, each in found["tasks"].items()} == pytest.approx(by_task)
    assert found["average"]["value"] == pytest.approx(np.mean(list(by_task.values())))
    assert found["average"]["low"] < found["average"]["value"] < found["average"]["high"]
    assert {(each["task"], each["subset"]): each["correlation"] for each in found["subsets"]} == pytest.approx(
        {key: spearman([own]) for key, own in expected.items()}
    )
    assert (read["missing"], read["pairs"]["STS12"]) == ([], 5 * PAIRS)


def test_the_document_states_the_draws_that_were_made(command: Command, tmp_path: Path) -> None:
    files(tmp_path / "sets")
    drawn = [
        document(command, tmp_path / "sets", "--resamples", given)["bootstrap"]["resamples"]
        for given in ("101", "1001")
    ]
    assert drawn == [101, 1000]


def test_a_year_can_be_the_mean_of_its_subsets(command: Command, tmp_path: Path) -> None:
    expected = files(tmp_path / "sets")
    found = document(command, tmp_path / "sets", "--aggregate", "mean")["evaluators"]["sbert"]
    subsets = [spearman([own]) for (task, _), own in expected.items() if task == "STS13"]
    assert found["tasks"]["STS13"]["value"] == pytest.approx(np.mean(subsets))


def test_missing_files_are_named_and_there_is_no_average(command: Command, tmp_path: Path) -> None:
    files(tmp_path / "sets", without=("STS-B", "FNWN"))
    page = tmp_path / "sts.md"
    done = command(
        "bench", "sts", tmp_path / "sets", "--metrics", "sbert", "--resamples", "100", "--markdown", page, stub=stub()
    )
    assert done.exit_code == 0, done.output
    told = " ".join(done.stderr.split())
    assert "no average: STS13 is incomplete: STS.input.FNWN.txt and the grades are missing; STS-B is missing" in told
    head, _, row = [line for line in page.read_text().splitlines() if line.startswith("|")][:3]
    assert [name.strip() for name in head.split("|")[1:-1]] == [
        *("metric", "STS12", "STS13", "STS14", "STS15", "STS16", "SICK-R", "average")
    ]
    assert row.split("|")[-2].strip() == "-"


def test_notes_speak_of_pairs_and_advise_no_columns(command: Command, tmp_path: Path) -> None:
    semeval(tmp_path / "sets/STS12-en-test", "MSRpar", "a\tb\naa\tbbb\n", "1\n2\n")
    files(tmp_path / "sets", without=("STS12",))
    done = command("bench", "sts", tmp_path / "sets", "--metrics", "sbert", "--resamples", "100", stub=stub())
    told = " ".join((done.stdout + done.stderr).split())
    assert "intervals: draws of pairs, 100 for Spearman" in told
    assert "fewer than 10 pairs (each additional data set needs one more): STS12" in told
    assert "--map" not in told


def test_two_forms_of_a_year_are_refused(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    files(folder)
    write(folder / "sts12-sts/test.jsonl", '{"sentence1": "a", "sentence2": "b", "score": 1}\n')
    done = command("bench", "sts", folder, "--metrics", "sbert", stub=stub())
    assert done.exit_code == 2
    assert "STS12 was read as one file and as files of its subsets" in " ".join(done.stderr.split())


def test_columns_cannot_be_mapped(command: Command, tmp_path: Path) -> None:
    files(tmp_path / "sets")
    done = command("bench", "sts", tmp_path / "sets", "--map", "label=x", stub=stub())
    assert done.exit_code == 2
    assert "Leave out --map" in done.stderr


def test_pairs_without_a_grade_are_counted(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    files(folder)
    semeval(folder / "STS16-en-test", "headlines", "a\tb\nc\td\naa\tbb\n", "\n1\n2\n")
    assert document(command, folder)["ungraded"] == 1
