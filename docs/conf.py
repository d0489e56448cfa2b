"""Configuration of Sphinx for the documentation site. `make docs` builds it.

The source directory is the root of the checkout, so every link between Markdown files works as it does on a code host.
The navigation has the sections of docs/README.md, with each page under the first section that links to it.
"""

import re
import shutil
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder

ROOT = Path(__file__).parents[1]

project = "gradewire"
author = "the gradewire authors"
copyright = author  # noqa: A001 - Sphinx's name
version = release = version_of("gradewire")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = [
    "*.md",
    "benchmarks/**.md",
    "client/typescript/README.md",
    "docs/**",
    "examples/README.md",
    "model_repo/train/*.md",
]
exclude_patterns = [".venv*", "**/node_modules", "docs/conf.py"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 6
myst_enable_extensions = ["strikethrough"]
suppress_warnings = [
    # Text that is crossed out shows in HTML, and there is no other output.
    "myst.strikethrough",
]

html_theme = "furo"
html_title = "gradewire"
html_static_path: list[str] = []
html_copy_source = False
html_show_sourcelink = False
html_permalinks_icon = "#"
html_use_index = html_domain_indices = False  # the search finds names, too
html_show_search_summary = False  # summaries would need a web server; without them the search works on files
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
# Frameworks that the modules of gradewire.integrations and gradewire.rewards import, and that `make docs` lacks.
autodoc_mock_imports = [
    *("deepeval", "evaluate", "inspect_ai", "langfuse", "lighteval", "lightning", "lm_eval", "mlflow", "phoenix"),
    *("ragas", "torch", "torchmetrics", "transformers", "verifiers", "verl", "weave"),
]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

_LINK = re.compile(r"\]\(([^)\s#]+\.(?:md|rst))(?:#[^)\s]*)?\)")
_INDEXES = {"docs/adr/README", "benchmarks/results/README"}


def tables_of_contents(index: Path) -> str:
    """Return one table of contents, in MyST, for each section of an index page.

    A page is in the table of the first section that links to it.

    Args:
        index: Markdown file whose headings of level 2 are the sections.
    """
    seen = {index}
    tables: list[str] = []
    for section in re.split(r"^## ", index.read_text("utf-8"), flags=re.MULTILINE):
        title, _, text = section.partition("\n")
        pages = dict.fromkeys((index.parent / url).resolve() for url in _LINK.findall(text))
        fresh = [page for page in pages if page not in seen]
        seen.update(fresh)
        if fresh:
            caption = [] if section.startswith("# ") else [f":caption: {title}"]
            paths = [f"/{page.relative_to(ROOT)}" for page in fresh]
            tables.append("\n".join(["```{toctree}", ":hidden:", *caption, "", *paths, "```"]))
    return "\n\n".join(tables)


def add_navigation(_app: Sphinx, document: str, content: list[str]) -> None:
    """Append the navigation to the front page and to other indexes (event `source-read`)."""
    if document == root_doc:
        whole = "```{toctree}\n:hidden:\n\n/docs/README.md\n```"
        content[0] += f"\n\n{whole}\n\n{tables_of_contents(ROOT / 'docs/README.md')}\n"
    elif document in _INDEXES:
        content[0] += f"\n\n{tables_of_contents(ROOT / f'{document}.md')}\n"


def navigate_by_titles(app: Sphinx, _builder: Builder) -> None:
    """Make the navigation from titles only (event `write-started`).

    The theme shows no headings there. But Sphinx would copy the headings of all pages for every page, which takes half
    of the time of a build.
    """
    whole = app.env.tocs
    titles = {name: _title_only(contents) for name, contents in whole.items()}

    def shorten(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _document: object) -> None:
        navigation = context["toctree"]

        def navigation_from_titles(**options: Any) -> str:
            app.env.tocs = titles
            try:
                made: str = navigation(**options)
            finally:
                app.env.tocs = whole
            return made

        context["toctree"] = navigation_from_titles

    app.connect("html-page-context", shorten, priority=400)  # before the theme


def _title_only(contents: nodes.bullet_list) -> nodes.bullet_list:
    if any(True for _ in contents.findall(addnodes.toctree)):
        return contents
    short = contents.copy()
    for entry in contents.children:
        title = entry.copy()
        title += [part.deepcopy() for part in entry.children if not isinstance(part, nodes.bullet_list)]
        short += title
    return short


def convert_docstring(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Turn Markdown of a docstring into reStructuredText (event `autodoc-process-docstring`)."""
    converted: list[str] = []
    fenced = False
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
            language = line.removeprefix("```") or "text"
            converted += [f".. code-block:: {language}", "   :force:", ""] if fenced else [""]
        elif fenced:
            converted.append(f"   {line}" if line else "")
        else:
            # At the end of a word, an underscore would be a reference.
            converted.append(re.sub(r"(?<=\w)_(?![\w`])", r"\\_", line))
    lines[:] = converted


def copy_front_page(app: Sphinx, failure: Exception | None) -> None:
    """Make README.html the start of the site, too (event `build-finished`)."""
    if failure is None and app.builder.name == "html":
        shutil.copyfile(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the hooks above."""
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", convert_docstring)
    app.connect("write-started", navigate_by_titles)
    app.connect("build-finished", copy_front_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
