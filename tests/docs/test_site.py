"""The documentation site: it builds without a warning, every link holds, and each page works in a real browser."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page

import gradewire
import gradewire.integrations.evaluation
import gradewire.rewards

ROOT = Path(__file__).parents[2]
WIDTHS = (390, 1280)  # in CSS pixels: a phone, a laptop
TIMEOUT_S = 600
pytestmark = pytest.mark.timeout(TIMEOUT_S + 60)  # the first test waits for the build
SWITCHED = re.compile(r"Changed to (auto|dark|light) mode\.")  # the theme's own line, after a click on its button
# How far the page can be scrolled sideways, and the least contrast of its texts, in each theme at this width.
LOOKS = """() => {
  const luminance = colour => {
    const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3).map(value => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const painted = element => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return luminance(colour);
    }
    return 1;
  };
  const contrast = element => {
    const pair = [luminance(getComputedStyle(element).color), painted(element)].sort((first, second) => first - second);
    return (pair[1] + 0.05) / (pair[0] + 0.05);
  };
  const texts = [...document.querySelectorAll("article :is(h1, h2, p, li, td, th, a, code, pre span)")];
  return ["light", "dark"].map(theme => {
    document.body.dataset.theme = theme;
    return {theme, background: painted(document.body), contrast: Math.min(21, ...texts.map(contrast)),
            sideways: document.documentElement.scrollWidth - innerWidth};
  });
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", "docs", "."]
    built = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(folder / "html")],
        check=False,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ""},
        text=True,
        timeout=TIMEOUT_S,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


class Tags(HTMLParser):
    """Each start tag with its attributes, in order. Trees of all pages would take a minute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def ids(self) -> set[str]:
        return {attributes["id"] for _, attributes in self.found if "id" in attributes}


def pages_of(site: Path) -> dict[str, Tags]:
    """Tags of pages by their path from the site's folder."""
    return {str(path.relative_to(site)): Tags(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Tags]:
    return pages_of(site)


def dead_links(site: Path, pages: dict[str, Tags]) -> list[str]:
    """Links to a file or an anchor that is missing; links to other hosts are not followed."""
    anchors = {name: page.ids() for name, page in pages.items()}
    files: dict[str, bool] = {}
    dead = []
    for name, page in pages.items():
        urls = {attributes[key] for _, attributes in page.found for key in ("href", "src") if key in attributes}
        for url in sorted(urls):
            path, anchor = urlsplit(urljoin(name, url)).path, urlsplit(url).fragment
            if urlsplit(url).scheme or not (path or anchor):
                continue
            missing_anchor = anchor and unquote(path) in anchors and unquote(anchor) not in anchors[unquote(path)]
            if path not in files:
                files[path] = (site / unquote(path)).is_file()
            if not files[path] or missing_anchor:
                dead.append(f"{name}: {url}")
    return dead


def test_every_link_leads_to_a_file_and_an_anchor(site: Path, pages: dict[str, Tags]) -> None:
    assert len(pages) > 60
    assert dead_links(site, pages) == []


def test_no_page_loads_anything_from_another_host(pages: dict[str, Tags]) -> None:
    for name, page in pages.items():
        loaded = [attributes["src"] for _, attributes in page.found if "src" in attributes]
        links = [attributes for tag, attributes in page.found if tag == "link" and "href" in attributes]
        loaded += [link["href"] for link in links if "canonical" not in link.get("rel", "").split()]
        assert [url for url in loaded if urlsplit(url).scheme not in {"", "data"} or urlsplit(url).netloc] == [], name


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<h1 id="top">There</h1>')
    (tmp_path / "page.html").write_text(
        '<a href="there.html#top"></a><a href="there.html#gone"></a><a href="gone.html"></a><a href="#no"></a>'
        '<a href="https://example.org/gone"></a><img src="gone.png">'
    )
    dead = dead_links(tmp_path, pages_of(tmp_path))
    assert dead == [f"page.html: {url}" for url in ("#no", "gone.html", "gone.png", "there.html#gone")]


def test_every_page_of_the_docs_is_in_the_navigation(site: Path) -> None:
    front = BeautifulSoup((site / "index.html").read_text("utf-8"), "html.parser")
    links = {urljoin("index.html", str(link["href"])) for link in front.select(".sidebar-tree a[href]")}
    documents = {path for path in (ROOT / "docs").rglob("*") if path.suffix in {".md", ".rst"}}
    in_navigation = {str(path.relative_to(ROOT).with_suffix(".html")) for path in documents}
    assert in_navigation - links == set()


def test_the_reference_of_the_client_has_every_public_name(pages: dict[str, Tags]) -> None:
    described = {each for name, page in pages.items() if name.startswith("docs/api/") for each in page.ids()}
    modules = (gradewire, gradewire.integrations, gradewire.integrations.evaluation, gradewire.rewards)
    for module in modules:
        names = {f"{module.__name__}.{name}" for name in module.__all__ if not name.startswith("__")}
        assert names - described == set()
    members = {"gradewire.Client.score", "gradewire.Status.UNAVAILABLE", "gradewire.ScoreWarning.UNCERTAIN"}
    adapters = {"gradewire.rewards.trl.TrlReward", "gradewire.testing.StubTransport"}
    assert members | adapters <= described


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """A page that fails the test at its end if it wrote to the console or requested anything outside the site."""
    page = browser.new_page(color_scheme="light", reduced_motion="reduce")
    said: list[str] = []
    page.on("console", lambda message: SWITCHED.fullmatch(message.text) or said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    requested: set[str] = set()
    page.on("request", lambda request: requested.add(request.url))
    yield page
    page.close()
    assert said == []
    assert {url for url in requested if not url.startswith((site.as_uri(), "data:"))} == set()


# Of each kind of page one, among them the widest tables and the longest names.
SOME = (
    "index.html",
    "benchmarks/results/README.html",
    "docs/adr/0016-layout.html",
    "docs/api/clients.html",
    "docs/guides/judge.html",
    "docs/reference/metrics.html",
    "docs/reference/settings.html",
    "docs/research/papers.html",
    "search.html",
)


@pytest.mark.parametrize("names", [SOME, pytest.param((), id="all", marks=pytest.mark.hostile)])
def test_pages_fit_a_phone_and_a_laptop_in_both_themes(page: Page, site: Path, names: tuple[str, ...]) -> None:
    for name in names or sorted(str(path.relative_to(site)) for path in site.rglob("*.html")):
        page.goto((site / name).as_uri())
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            light, dark = page.evaluate(LOOKS)
            for look in (light, dark):
                assert look["sideways"] <= 0, f"{name} at {width} px: {look}"
                assert look["contrast"] >= 4.5, f"{name} at {width} px: {look}"
            assert light["background"] > 0.5 > dark["background"], name


def test_the_search_finds_a_page_without_a_server(page: Page, site: Path) -> None:
    page.goto(f"{(site / 'search.html').as_uri()}?q=overload")
    results = page.locator("ul.search li a")
    results.first.wait_for()
    assert "sizing.html" in " ".join(link.get_attribute("href") or "" for link in results.all())


def test_the_button_switches_the_theme(page: Page, site: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    button = page.locator(".theme-toggle:visible").first
    themes = []
    for _ in range(3):
        button.click()
        themes.append(page.evaluate("document.body.dataset.theme"))
    assert set(themes) == {"auto", "light", "dark"}
