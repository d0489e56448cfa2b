"""Pages in Markdown: links lead somewhere, lines are short, and nothing speaks of where the project was made."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("examples/*.md"), *DOCS.rglob("*.md")])
SOURCES = (
    "benchmarks",
    "client",
    "deploy",
    "examples",
    "model_repo/src",
    "model_repo/vllm",
    "proto",
    "server",
    "tests",
)
LIMIT = 120
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED_PAGE = re.compile(r"(?<![\w./-])(docs/[\w/-]+\.md)(?:#([\w-]+))?")
_FOREIGN = re.compile(r"\bissues?\s+#?\d|\.\./shared|(?<![\w.])/(?:work|root|home|tmp/[\w-]+)/")


def lines_of(page: Path) -> Iterator[tuple[int, str]]:
    """Number and text of the lines outside code fences and outside blocks that a program writes."""
    fenced = generated = False
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif line.startswith(("<!-- begin ", "<!-- end ")):
            generated = line.startswith("<!-- begin ")
        elif not fenced and not generated:
            yield number, line


def anchors_of(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    titles = [line.lstrip("#").strip() for _, line in lines_of(page) if re.match(r"#+ ", line)]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for number, line in lines_of(page):
        for url in _LINK.findall(line):
            if re.match(r"[a-z]+:", url):
                continue
            path, _, anchor = url.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{name(page)}:{number}: {url}"
            if anchor:
                assert anchor in anchors_of(target), f"{name(page)}:{number}: {url}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_are_short(page: Path) -> None:
    """A row of a table cannot be split, and the target of a link does not count."""
    for number, line in lines_of(page):
        shown = _LINK.sub("]", line)
        assert len(shown) <= LIMIT or line.lstrip().startswith("|"), f"{name(page)}:{number}: {len(shown)} characters"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_speaks_of_issues_or_of_somebodys_machine(page: Path) -> None:
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        assert not _FOREIGN.search(line), f"{name(page)}:{number}: {line}"


def test_the_index_names_every_page() -> None:
    index = DOCS / "README.md"
    linked = {(DOCS / url.partition("#")[0]).resolve() for _, line in lines_of(index) for url in _LINK.findall(line)}
    pages = {page for page in DOCS.rglob("*.md") if page.parent.name != "adr"} - {index}
    assert pages - linked == set()


def test_pages_that_programs_name_are_there() -> None:
    files = [path for part in SOURCES for path in (ROOT / part).rglob("*") if path.is_file()]
    for path in [*files, ROOT / "Makefile"]:
        if path.suffix in {".pyc", ".onnx", ".safetensors"} or "__pycache__" in path.parts:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for page, anchor in _NAMED_PAGE.findall(text):
            assert (ROOT / page).is_file(), f"{name(path)} names {page}"
            assert not anchor or anchor in anchors_of(ROOT / page), f"{name(path)} names {page}#{anchor}"
