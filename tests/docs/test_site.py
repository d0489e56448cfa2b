"""The documentation site: it builds without a warning, every link holds, and each page works in a real browser."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
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
TIMEOUT_S = 300
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


def pages_of(site: Path) -> dict[str, BeautifulSoup]:
    """Parsed pages by their path from the site's folder."""
    paths = sorted(site.rglob("*.html"))
    return {str(path.relative_to(site)): BeautifulSoup(path.read_text("utf-8"), "html.parser") for path in paths}


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, BeautifulSoup]:
    return pages_of(site)


def dead_links(site: Path, pages: dict[str, BeautifulSoup]) -> list[str]:
    """Links to a file or an anchor that is missing; links to other hosts are not followed."""
    anchors = {name: {tag["id"] for tag in page.find_all(id=True)} for name, page in pages.items()}
    dead = []
    for name, page in pages.items():
        urls = {tag[key] for key in ("href", "src") for tag in page.find_all(**{key: True})}
        for url in sorted(urls):
            path, anchor = urlsplit(urljoin(name, url)).path, urlsplit(url).fragment
            if urlsplit(url).scheme or not (path or anchor):
                continue
            missing_anchor = anchor and unquote(path) in anchors and unquote(anchor) not in anchors[unquote(path)]
            if not (site / unquote(path)).is_file() or missing_anchor:
                dead.append(f"{name}: {url}")
    return dead


def test_every_link_leads_to_a_file_and_an_anchor(site: Path, pages: dict[str, BeautifulSoup]) -> None:
    assert len(pages) > 60
    assert dead_links(site, pages) == []


def test_no_page_loads_anything_from_another_host(pages: dict[str, BeautifulSoup]) -> None:
    for name, page in pages.items():
        loaded = [tag["src"] for tag in page.find_all(src=True)]
        loaded += [tag["href"] for tag in page.find_all("link", href=True) if "canonical" not in tag.get("rel", [])]
        assert [url for url in loaded if urlsplit(url).scheme not in {"", "data"} or urlsplit(url).netloc] == [], name


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<h1 id="top">There</h1>')
    (tmp_path / "page.html").write_text(
        '<a href="there.html#top"></a><a href="there.html#gone"></a><a href="gone.html"></a><a href="#no"></a>'
        '<a href="https://example.org/gone"></a><img src="gone.png">'
    )
    dead = dead_links(tmp_path, pages_of(tmp_path))
    assert dead == [f"page.html: {url}" for url in ("#no", "gone.html", "gone.png", "there.html#gone")]


def test_every_page_of_the_docs_is_in_the_navigation(pages: dict[str, BeautifulSoup]) -> None:
    links = {urljoin("index.html", link["href"]) for link in pages["index.html"].select(".sidebar-tree a[href]")}
    documents = {path for path in (ROOT / "docs").rglob("*") if path.suffix in {".md", ".rst"}}
    in_navigation = {str(path.relative_to(ROOT).with_suffix(".html")) for path in documents}
    assert in_navigation - links == set()


def test_the_reference_of_the_client_has_every_public_name(pages: dict[str, BeautifulSoup]) -> None:
    described = {
        tag["id"] for name, page in pages.items() if name.startswith("docs/api/") for tag in page.select("[id]")
    }
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


def test_pages_fit_a_phone_and_a_laptop_in_both_themes(page: Page, site: Path, pages: dict[str, BeautifulSoup]) -> None:
    for name in pages:
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
