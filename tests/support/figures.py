"""Figures of tests: shown at the end of a run, with -s or without, and written where `--figures FILE` says.

A conftest imports the hooks and the fixture.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest
from benchmarks.common.measurements import Measurement, append

HOSTILE: Final = "tests/hostile/"
"""Where the files are named by promise."""
_PROPERTY: Final = "figure"
TakeFigure = Callable[..., Measurement]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--figures", type=Path, metavar="FILE", help="append the figures that tests take to FILE, as JSON lines"
    )


@pytest.fixture
def figure(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> TakeFigure:
    """Takes note of a figure: `figure("refused without a hint", 0, bound="== 0")`.

    Its promise is the second word of the test's file: test_overload.py holds overload. What it returns is to be
    asserted (`.holds`) where no clock has a part in it.
    """
    promise = _promise(request.path)

    def take(name: str, value: float, unit: str = "", *, bound: str = "") -> Measurement:
        # The file and the function: that is what the page names, and which parameters it had stands in `name`.
        source = request.node.nodeid.partition("[")[0]
        taken = Measurement(promise, name, value, unit, bound, source)
        record_property(_PROPERTY, dataclasses.asdict(taken))  # a process of xdist sends it along with its report
        return taken

    return take


def _promise(path: Path) -> str:
    return path.stem.split("_")[1]


def _held(reports: Iterable[pytest.TestReport]) -> list[Measurement]:
    """For each file the tests that passed, of all that ran."""
    by_file: defaultdict[str, list[bool]] = defaultdict(list)
    for report in reports:
        by_file[report.nodeid.partition("::")[0]].append(report.passed)
    return [
        Measurement(
            _promise(Path(file)),
            f"{Path(file).name}, tests that held",
            sum(passed),
            f"of {len(passed)}",
            f"== {len(passed)}",
            file,
        )
        for file, passed in by_file.items()
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [
        each for stats in terminalreporter.stats.values() for each in stats if getattr(each, "when", "") == "call"
    ]
    figures = [
        Measurement(**value) for report in reports for name, value in report.user_properties if name == _PROPERTY
    ]
    figures += _held(report for report in reports if report.nodeid.startswith(HOSTILE))
    if not figures:
        return
    terminalreporter.section("figures")
    for each in figures:
        terminalreporter.write_line(each.line())
    path: Path | None = config.getoption("--figures")
    if path is not None:
        append(path, figures)
