"""Values of speed that stand on several pages are the same everywhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESEARCH = ROOT / "docs" / "research"
RESULTS = ROOT / "benchmarks" / "results"
NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d*\.\d+|\d+)(?!\w)")
LINK = re.compile(r"\]\(((?:speed|encoders|ratings|agreement|visual-questions)\.md)")


def read(name: str) -> str:
    return (RESEARCH / name).read_text("utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def numbers(text: str) -> list[float]:
    return [float(found.replace(" ", "").replace(",", "")) for found in NUMBER.findall(text)]


ROWS = {cells(line)[0]: line for line in read("README.md").splitlines() if line.startswith("|") and LINK.search(line)}


@pytest.mark.parametrize("name", ROWS)
def test_what_the_list_says_stands_on_the_page_it_names(name: str) -> None:
    on_pages = [number for page in LINK.findall(ROWS[name]) for number in numbers(read(page))]
    for found in NUMBER.findall(cells(ROWS[name])[-1]):
        (number,) = numbers(found)
        half_a_digit = 0.5 * 10.0 ** -len(found.partition(".")[2]) + 1e-9
        assert any(abs(number - each) <= half_a_digit for each in on_pages), f"{found} stands on none"


def test_the_list_has_such_rows() -> None:
    assert len(ROWS) > 10


def test_two_processes_have_the_ratios_of_their_table() -> None:
    (row,) = (line for name, line in ROWS.items() if name.startswith("two server processes"))
    lines = (RESULTS / "processes.md").read_text("utf-8").splitlines()
    table = [cells(line) for line in lines if re.match(r"\| (1|64) \|", line)]
    asked = [line for line in table if line[1].startswith(("measured", "derived")) and "paced" not in line[1]]
    ratios = [line[-1].split(",")[0].strip("*") for line in asked]
    assert len(ratios) == 6
    for ratio in ratios:
        assert f"{ratio} ×" in row  # noqa: RUF001 - as pages write it


def warm_ratios(server: str) -> list[float]:
    """CPU of a single call over that of an empty one, of metrics with an encoder."""
    page = (RESULTS / "speed.md").read_text("utf-8")
    lines = [cells(line) for line in page.splitlines() if f"| {server} |" in line]
    assert len(lines) == 5
    return [float(alone) / float(line[-1]) for line in lines for alone in line[4:6]]


def test_an_item_alone_costs_what_the_table_of_warm_items_has() -> None:
    remembered, computed = warm_ratios("remembered"), warm_ratios("computed")
    known = f"{min(remembered):.2f} to {max(remembered):.2f} times"
    again = f"{min(computed):.1f} to {max(computed):.1f} times"
    (row,) = (line for name, line in ROWS.items() if name.startswith("server CPU of one item"))
    for text in (row, read("speed.md")):
        assert known in text
        assert again in text


def test_http_alone_makes_fewer_calls_than_a_loop_that_is_behind_has() -> None:
    page = (ROOT / "docs/operate/sizing.md").read_text("utf-8")
    settings = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    backlog = (ROOT / "server/src/gradewire_server/requests/load.py").read_text("utf-8")
    (few,) = re.findall(r"^_FEW_UNDER_WAY: Final = (\d+)$", backlog, re.MULTILINE)
    (most,) = re.findall(r"^\| `http_api_max_requests` \| integer \| `(\d+)`", settings, re.MULTILINE)
    assert int(most) < int(few)
    assert f"at most {most} requests in flight in all" in page
    assert f"{few} are under way" in page


def test_the_readme_shows_the_table_of_the_same_rows() -> None:
    results = (ROOT / "benchmarks/results/same-rows.md").read_text("utf-8")
    measured = {}
    for line in results.splitlines():
        if line.startswith("| ") and line.count("[") == 4:
            name, _, first, _, second, _, rate, cost = cells(line)
            areas = [each.split()[0].removeprefix("0") for each in (first, second)]
            measured[name] = [*areas, f"{round(float(rate.replace(',', ''))):,}", cost]
    shown = {}
    for line in (ROOT / "README.md").read_text("utf-8").splitlines():
        if line.startswith("| ") and re.search(r"\| \**\.\d{3}", line):
            name, *values = (cell.strip("*") for cell in cells(line))
            shown[name] = values
    assert len(shown) == 6
    assert sorted(shown.values()) == sorted(measured.values())
