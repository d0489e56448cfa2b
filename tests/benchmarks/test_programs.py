"""Every benchmark tells its options, and where the labelled rows are missing says in one line how to get them."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from benchmarks.common.rows import GET_COMMAND

ROOT = Path(__file__).parents[2]
# Programs that others start, without options.
WORKERS = {
    "benchmarks/latency/costless_server.py",
    "benchmarks/latency/echo_server.py",
    "benchmarks/latency/otlp_receiver.py",
}
# Programs whose rows stand in examples/, or that draw rows where the labelled ones are missing.
SHIPPED = {"benchmarks/judges/visual.py", "benchmarks/latency/floor.py"}
PROGRAMS = sorted(
    name
    for path in (ROOT / "benchmarks").rglob("*.py")
    if 'if __name__ == "__main__":' in path.read_text("utf-8") and (name := str(path.relative_to(ROOT))) not in WORKERS
)
# What some need beside --data, or instead of it.
NEEDED: dict[str, tuple[str, ...]] = {
    "benchmarks/agreement/travel.py": ("--before", ".", "--drawn-evaluation", "."),
    "benchmarks/judges/attacks/pairs.py": ("--judges", "."),
    "benchmarks/judges/pairs.py": ("--judges", "."),
    "benchmarks/peers/smile_vs_sentence_transformers.py": ("--checkpoint", "."),
    "benchmarks/agreement/bertscore_facts.py": ("nowhere/evouna_dev.jsonl",),
    "benchmarks/agreement/model_order.py": ("--out", "."),
}
READS_ROWS = [
    name
    for name in PROGRAMS
    if re.search(r"\b(read_rows|read_lines|require_files)\(|DATA_DIRECTORY", (ROOT / name).read_text("utf-8"))
    and not name.startswith("benchmarks/data/")
    # Their rows are in the repository.
    and name not in {"benchmarks/agreement/choices.py", "benchmarks/agreement/error_classes.py"}
    and name not in SHIPPED
]


def run(name: str, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of a program that is run in this process, which spares its imports."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / name), run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_names_the_options(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "--help", monkeypatch=monkeypatch) == 0
    assert "usage:" in capsys.readouterr().out.lower()


@pytest.mark.parametrize("name", READS_ROWS)
def test_without_rows_one_line_says_how_to_get_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = () if name.endswith("bertscore_facts.py") else ("--data", "nowhere")
    assert run(name, *NEEDED.get(name, ()), *given, monkeypatch=monkeypatch) == 2
    told = capsys.readouterr()
    assert len(told.err.splitlines()) == 1, told.err
    assert GET_COMMAND in told.err
    assert told.out == ""


def test_there_are_such_programs() -> None:
    assert len(PROGRAMS) > 20
    assert len(READS_ROWS) > 12
