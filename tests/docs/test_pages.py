"""Pages in Markdown: what they link to and name is there, lines are short, no word of where the project was made."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("benchmarks/**/*.md"),
        *ROOT.glob("examples/*.md"),
        *ROOT.glob("model_repo/train/*.md"),
        ROOT / "client/typescript/README.md",
        *DOCS.rglob("*.md"),
    ]
)
SOURCES = (
    "benchmarks",
    "client",
    "deploy",
    "examples",
    "model_repo/src",
    "model_repo/train",
    "model_repo/vllm",
    "proto",
    "requirements",
    "server",
    "tests",
    "tests_export",
    "tests_frameworks",
)
LIMIT = 120
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED_PAGE = re.compile(r"(?<![\w./-])((?:benchmarks/results|docs)/[\w/-]+\.md)(?:#([\w-]+))?")
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)+[\w.-]+\.(?:py|toml|proto|lock|tsv))(?![\w*])")
_MODULE = re.compile(r"\bpython3? -m (benchmarks(?:\.[a-z_]+)+)(?![\w.])")
_TARGET = re.compile(r"\bmake ([a-z][\w-]*)")
_MADE = {"__pycache__", "node_modules"}
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
        if path.suffix in {".pyc", ".onnx", ".safetensors"} or _MADE & {*path.parts}:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for page, anchor in _NAMED_PAGE.findall(text):
            assert (ROOT / page).is_file(), f"{name(path)} names {page}"
            assert not anchor or anchor in anchors_of(ROOT / page), f"{name(path)} names {page}#{anchor}"


def files_of_the_project() -> set[str]:
    found = [*(ROOT / "model_repo").glob("*"), *(path for part in SOURCES for path in (ROOT / part).rglob("*"))]
    return {f"/{path.relative_to(ROOT).as_posix()}" for path in found if path.is_file()}


def code_of(page: Path) -> Iterator[tuple[int, str]]:
    """Number and text of what a page shows as code: blocks, and spans of other lines."""
    fenced = False
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield number, line
        else:
            yield from ((number, span) for span in _CODE.findall(line))


def test_files_modules_and_targets_that_pages_name_are_there() -> None:
    files = files_of_the_project()
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in PAGES:
        for number, code in code_of(page):
            where = f"{name(page)}:{number}"
            for path in _FILE.findall(code):
                assert any(file.endswith(f"/{path}") for file in files), f"{where}: {path}"
            for module in _MODULE.findall(code):
                stem = f"/{module.replace('.', '/')}"
                assert {f"{stem}.py", f"{stem}/__main__.py"} & files, f"{where}: {module}"
            for target in _TARGET.findall(code):
                assert target in targets, f"{where}: make {target}"


def test_the_walks_of_today_name_files_of_their_rooms() -> None:
    server = ROOT / "server/src/gradewire_server"
    page = (DOCS / "walks.md").read_text("utf-8")
    rows = re.findall(r"^\| \d+ \| `([\w/]+)` \| (.+) \|$", page, re.MULTILINE)
    assert rows
    for room, cells in rows:
        for file in _CODE.findall(cells):
            assert (server / room / file).is_file() or (server / file).is_file(), f"{room}{file}"
