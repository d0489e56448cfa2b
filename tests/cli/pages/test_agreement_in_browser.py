"""The page in a real browser: it draws, sorts, filters, can be read in both colour schemes, and asks no network."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.cli.pages.pixels import data_uri, png
from tests.cli.pages.samples import MODELS, random_rows, report_of

from gradewire_cli.pages.agreement import write_report

ROWS = 7370  # of EVOUNA dev
METRICS = 12
# One of each kind of text on the page.
TEXTS = """h1 | .lead | nav a | h2 | .facts dt | caption | thead th button | tbody th | tbody td small | figcaption |
svg .tick | svg .direct | svg .name | .case h3 | .label.right | .label.wrong | .case .why | .case mark |
.case .prediction | .case .note | .references .matched | .references small | .results td | select | output |
#theme | #failed td | .lines code""".replace("\n", " ").split(" | ")
# Colour of each text and of what is painted behind it; a text that is not on the page throws.
COLOURS = """selectors => selectors.map(selector => {
  const text = document.querySelector(selector), clear = /, 0\\)$|transparent/;
  let behind = text;
  while (behind.parentElement && clear.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  const front = getComputedStyle(text)[text instanceof SVGElement ? "fill" : "color"];
  return [front, getComputedStyle(behind).backgroundColor];
})"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    size = write_report(path, report_of(random_rows(ROWS, metrics=METRICS), resamples=4))
    assert size < 2_000_000
    return path


@pytest.fixture(scope="module")
def open_page(browser: Browser, report: Path) -> Iterator[Page]:
    """The page, opened once; whatever it says on the console or asks of a network fails the test at the end."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: said.append(request.url))
    page.goto(report.as_uri())
    yield page
    assert set(said) == {report.as_uri()}
    assert page.evaluate("window.hacked") is None


@pytest.fixture
def page(open_page: Page) -> Page:
    open_page.reload()
    return open_page


def numbers(page: Page, selector: str) -> list[float]:
    """What sorting goes by in the cells, without those that are undefined."""
    orders = page.locator(selector).evaluate_all("cells => cells.map(cell => cell.dataset.o)")
    return [float(order) for order in orders if order != ""]


def test_tables_and_curves_are_drawn(page: Page) -> None:
    assert page.locator("#t-overview tbody tr").count() == METRICS
    assert page.locator("#t-cells tbody tr").count() == METRICS * (10 + 2 + 5 + 1)
    assert page.locator("#curves figure svg").count() == METRICS * 3
    assert page.locator("#overview figure svg").count() == 3
    boxes = page.locator("svg .curve, svg .area").evaluate_all(
        "paths => paths.map(path => { const box = path.getBBox(); return [box.width, box.height]; })"
    )
    assert len(boxes) == METRICS * 3
    assert all(width > 50 and height > 20 for width, height in boxes)
    bars = page.locator("svg .bars").evaluate_all("paths => paths.map(path => path.getBBox().height)")
    assert len(bars) == METRICS * 2
    assert min(bars) > 10


def test_charts_of_the_overview_have_name_and_axis_above_and_below_their_metrics(page: Page) -> None:
    charts = page.locator("#overview figure svg").all()
    for chart, name in zip(charts, ["Pearson", "Kendall τ-b", "ROC-AUC"], strict=True):
        dots = chart.locator("circle").evaluate_all("dots => dots.map(dot => dot.getBoundingClientRect().y)")
        texts = chart.locator(".name, .tick[text-anchor]").evaluate_all(
            "texts => texts.map(text => [text.textContent, text.getBoundingClientRect().y])"
        )
        above, below = ([text for text, y in texts if side(y)] for side in (min(dots).__gt__, max(dots).__lt__))
        title, *axis = above
        assert (title, below) == (name, [*axis, f"{name}, mean of the cells"])
        assert len(axis) >= 2
    boxes = [chart.bounding_box() for chart in charts]
    assert len({box["y"] for box in boxes if box}) == 1


@pytest.mark.parametrize(
    ("table", "name"), [("t-overview", "Pearson"), ("t-cells", "Scored"), ("t-differences", "Mean of cells")]
)
def test_sorting_by_a_column_goes_both_ways_and_says_so(page: Page, table: str, name: str) -> None:
    column = page.locator(f"#{table} thead th").all_inner_texts().index(name)
    head = page.locator(f"#{table} thead th").nth(column)
    cells = f"#{table} tbody td:nth-child({column + 1})"
    before = numbers(page, cells)
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert numbers(page, cells) == sorted(before, reverse=True) != before
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert numbers(page, cells) == sorted(before)


def test_the_cells_table_shows_what_is_chosen(page: Page) -> None:
    form = page.locator("form[data-for='t-cells']")
    form.locator("select[name=metric]").select_option("smile")
    form.locator("select[name=model]").select_option("gpt4")
    shown = page.locator("#t-cells tbody tr:visible")
    assert [row.split("\t")[:3] for row in shown.all_inner_texts()] == [
        ["smile", "nq", "gpt4"],
        ["smile", "tq", "gpt4"],
        ["smile", "all", "gpt4"],
    ]


def test_disagreements_are_filtered_by_metric_direction_model_and_text(page: Page) -> None:
    form, cases = page.locator("form[data-for='case-list']"), page.locator(".case:visible")
    total = page.locator(".case").count()
    assert cases.count() == 25
    form.locator("select[name=metric]").select_option(label="metric3")
    form.locator("select[name=direction]").select_option("high")
    assert cases.count() == 25
    assert set(cases.locator(".label").all_text_contents()) == {"human label 0"}
    scores = [
        float(
            table.locator("tr", has=page.locator("th", has_text=re.compile("^metric3$")))
            .locator("td")
            .first.text_content()
        )
        for table in cases.locator(".results").all()
    ]
    assert scores == sorted(scores, reverse=True)
    form.locator("select[name=model]").select_option(MODELS[2])
    some = cases.count()
    assert 0 < some < 25
    assert page.locator("#case-count").inner_text() == f"{some} of {total} answers"
    assert all(model == MODELS[2] for model in cases.evaluate_all("all => all.map(one => one.dataset.model)"))
    name = cases.locator("h3 bdi").first.text_content() or ""
    form.locator("input[name=text]").fill(f" {name.upper()} ")
    assert cases.locator("h3 bdi").all_text_contents() == [name]
    form.locator("button[type=reset]").click()
    expect(page.locator(".case:visible")).to_have_count(25)
    page.locator("#more").click()
    assert cases.count() == 50
    assert page.evaluate("document.activeElement.className") == "case"


def test_the_window_is_marked(page: Page) -> None:
    marks = page.locator(".case:visible mark")
    assert marks.count() > 5
    card = page.locator(".case", has=page.locator("mark")).first
    window = re.search("best_window “(.*?)”", card.text_content() or "")
    assert window
    bare = re.sub(r"[^\w\s]", "", (card.locator("mark").text_content() or "").lower())
    assert bare.split() == window[1].split()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    weak: list[str] = []
    for expected in (scheme, "light" if scheme == "dark" else "dark"):
        colours = dict(zip(TEXTS, page.evaluate(COLOURS, TEXTS), strict=True))
        assert (_luminance(colours["h1"][1]) > 0.5) == (expected == "light")
        weak += [f"{text} in {expected}" for text, (front, behind) in colours.items() if _contrast(front, behind) < 4.5]
        page.locator("#theme").click()
    assert not weak


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 900})


def test_on_paper_all_answers_are_there_and_no_controls(page: Page) -> None:
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".case[hidden]").count() == 0
    assert page.locator(".case").last.is_visible()
    assert not page.locator("form:visible, nav:visible, #theme:visible, #more:visible").count()
    page.emulate_media(media="screen")


def test_without_javascript_everything_can_be_read(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".case").count() > 100
    assert page.locator(".case[hidden], #t-cells tr[hidden]").count() == 0
    assert page.locator(".case").last.is_visible()
    assert not page.locator("form:visible").count()
    context.close()


def test_a_screen_reader_finds_names_of_tables_charts_and_controls(page: Page) -> None:
    assert page.get_by_role("img", name="ROC curve of smile").count() == 1
    assert page.get_by_role("img", name=re.compile("Calibration of metric1$")).count() == 1
    assert page.get_by_role("navigation", name="Sections").count() == 1
    assert page.get_by_role("searchbox", name="Text").count() == 1
    assert page.get_by_role("columnheader", name="Pearson").count() == 2
    assert page.get_by_role("table", name=re.compile("^Agreement of each metric")).count() == 1
    unnamed = page.locator("button, select, input").evaluate_all(
        "all => all.filter(one => !one.textContent.trim() && !one.labels?.length).length"
    )
    assert unnamed == 0


def test_pictures_are_drawn_or_linked_and_nothing_is_fetched_for_them(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(png())
    named = ["1.png", data_uri(png()), "https://192.0.2.1/2.png", '"><img src=https://192.0.2.1/3.png>.png']
    rows = [replace(row, picture=named[place % 4]) for place, row in enumerate(random_rows(60, metrics=1))]
    path = tmp_path / "report.html"
    write_report(path, report_of(rows, resamples=4, folder=tmp_path))
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: asked.append(message.text))
    page.goto(path.as_uri())
    drawn = page.locator(".case img")
    assert drawn.count() > 2
    assert drawn.first.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    links = page.locator(".picture a").evaluate_all("links => links.map(link => link.href)")
    assert set(links) == {(tmp_path / "1.png").as_uri(), "https://192.0.2.1/2.png"}
    page.close()
    assert {url for url in asked if not url.startswith("data:")} == {path.as_uri()}


def _contrast(front: str, behind: str) -> float:
    """WCAG 2.2's contrast ratio, 1 to 21."""
    dark, light = sorted((_luminance(front), _luminance(behind)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    """WCAG 2.2's relative luminance, 0 to 1, of an "rgb(…)"."""
    parts = [float(part) / 255 for part in re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", colour).groups()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_contrast_is_computed_as_wcag_does() -> None:
    assert _contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert _contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)") == pytest.approx(4.48, abs=0.005)  # #777 just fails
