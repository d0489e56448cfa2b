"""The page of promises names tests that exist, and every file of hostile tests holds a promise that it names."""

import ast
import re
from pathlib import Path

from tests.support.figures import HOSTILE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operate/promises.md").read_text("utf-8")
TABLE = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
ROWS = [[cell.strip("| ") for cell in row] for row in TABLE if row[0] != "| promise"]
FILES = sorted((ROOT / HOSTILE).glob("test_*.py"))
_TEST = re.compile(r"`(tests/hostile/\w+\.py)::(\w+)`")


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


def test_every_promise_has_a_test_that_exists() -> None:
    assert ROWS
    for promise, meaning, held_by, _ in ROWS:
        named = _TEST.findall(held_by)
        assert named, f"{promise}: {meaning}"
        for file, function in named:
            assert Path(file).stem.split("_")[1] == promise, f"{file} is not named by {promise}"
            assert function in functions_of(ROOT / file), f"{file}::{function}"


def test_every_file_of_hostile_tests_holds_a_promise() -> None:
    named = {file for _, _, held_by, _ in ROWS for file, _ in _TEST.findall(held_by)}
    assert named == {str(file.relative_to(ROOT)) for file in FILES}


def test_what_takes_long_runs_in_make_test_hostile_alone() -> None:
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    runs = [line for line in lines if "-m pytest" in line and not re.search("tests_(bulk|export|frameworks)", line)]
    assert len(runs) > 4
    for line in runs:
        if "--figures" in line:
            assert '-m ""' in line
        else:
            assert "not hostile" in line, line
