"""Figures that tests measure on their way: shown at the end of a run, and kept where a file is named."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

FILE_VARIABLE: Final = "GRADEWIRE_FIGURES"
"""Names the file that they are appended to, one JSON object a line."""
_PROPERTY: Final = "figure"

Figure: TypeAlias = Callable[[str], None]


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Tells a figure of the running test."""
    return lambda said: record_property(_PROPERTY, said)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows them, by the name of their test."""
    found = [
        (report.nodeid, str(said))
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call"
        for name, said in report.user_properties
        if name == _PROPERTY
    ]
    if not found:
        return
    terminalreporter.section("figures")
    for test, said in found:
        terminalreporter.write_line(f"{test}: {said}")
    if path := os.environ.get(FILE_VARIABLE):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        load = round(os.getloadavg()[0], 1)
        with Path(path).open("a", encoding="utf-8") as lines:
            for test, said in found:
                lines.write(json.dumps({"time": now, "load": load, "test": test, "figure": said}) + "\n")
