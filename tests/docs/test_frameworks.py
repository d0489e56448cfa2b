"""The table "Every framework" of docs/guides/training-loops.md names versions, glue and tests of today."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guides/training-loops.md"
SECTION = PAGE.read_text("utf-8").partition("\n## Every framework\n")[2].partition("\n## ")[0]
_CODE = re.compile(r"`([^`]+)`")
_LOCKED = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)
# Not installed by us, or for one environment alone that is not made here by a lock.
WITHOUT_A_LOCK = {
    "areal", "grpc-go", "grpc-java", "ms-vlmeval", "nemo-gym", "openrlhf", "slime,", "torch",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table, as it is written."""

    framework: str
    version: str
    hook: str
    glue: str
    test: str


def rows() -> list[Row]:
    """All but the headings."""
    cells = [line.strip("| ").split(" | ") for line in SECTION.splitlines() if line.startswith("| ")]
    return [Row(*row) for row in cells if len(row) == 5 and row[0] != "framework"]


def locked() -> dict[str, set[str]]:
    """Versions of each package in any of the lock files."""
    found: dict[str, set[str]] = {}
    for lock in (ROOT / "requirements").glob("*.lock"):
        for name, version in _LOCKED.findall(lock.read_text("utf-8")):
            found.setdefault(name, set()).add(version)
    packages = json.loads((ROOT / "client/typescript/package-lock.json").read_text("utf-8"))["packages"]
    for path, package in packages.items():
        found.setdefault(path.removeprefix("node_modules/"), set()).add(package["version"])
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.framework)
def test_a_row_tells_what_is_there(row: Row) -> None:
    name, _, version = row.version.partition(" ")
    if name in locked():
        assert version in locked()[name]
    else:
        assert name in WITHOUT_A_LOCK
    glue = _CODE.findall(row.glue)
    assert (row.glue == "none of ours") == (not glue)
    assert all((ROOT / path).exists() for path in glue)
    tests = _CODE.findall(row.test.partition(";")[0].partition(", on")[0])
    assert all((ROOT / path).is_file() for path in tests)
    assert bool(tests) != row.test.startswith("none: ")


def test_all_rows_are_read() -> None:
    written = [line for line in SECTION.splitlines() if line.startswith("| ") and "**" not in line]
    assert len(rows()) == len(written) - 1 > 30
