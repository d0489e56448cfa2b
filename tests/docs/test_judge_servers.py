"""The page about judges' servers: its providers are those of the tests, and each row names tests that exist."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.support.judges.provider_answers import BEARER, PROVIDERS, Provider

ROOT = Path(__file__).parents[2]
TESTS = "tests/server/judges/remote"
PAGE = (ROOT / "docs/operate/judge-servers.md").read_text("utf-8")


def rows(first_column: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this title."""
    (table,) = [part for part in PAGE.split("\n\n") if part.startswith(f"| {first_column} |")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


SHOWN = {row[0]: row for row in rows("provider")}
SELECTIONS = sorted({row[-1].strip("`") for row in [*SHOWN.values(), *rows("shape of a refusal or an error")]})


@cache
def names_of_tests() -> tuple[str, ...]:
    """Return the names of the judges' tests as `pytest -k` sees them: file, function and case."""
    arguments = ["-q", "-p", "no:cacheprovider", "--collect-only", "-m", "not hostile", TESTS]
    run = [sys.executable, "-m", "pytest", *arguments]
    collected = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(line.removeprefix(f"{TESTS}/").casefold() for line in collected.stdout.splitlines() if "::" in line)


def test_the_table_has_each_provider_of_the_tests_once() -> None:
    assert list(SHOWN) == [provider.name for provider in PROVIDERS]
    assert len(rows("provider")) == len(PROVIDERS)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_row_shows_the_tested_address_and_the_header_of_the_key(provider: Provider) -> None:
    _, address, key, *_ = SHOWN[provider.name]
    url = address.partition("`; ")[0].strip("`")
    assert re.fullmatch(re.sub(r"[A-Z]{3,}", r"[\\w-]+", re.escape(url)), provider.url, re.IGNORECASE), url
    if key == "as above":
        key = SHOWN["Azure, a deployment"][2]
    word = {"": "none", BEARER: "Bearer"}.get(provider.header, f"`{provider.header}`")
    assert word in key


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_row_names_tests_that_exist(selection: str) -> None:
    for word in selection.split(" or "):
        assert re.fullmatch(r"\w+", word)
        assert any(word in name for name in names_of_tests()), word
