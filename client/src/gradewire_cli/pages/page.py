"""The elements of an HTML page, and their rendering as one self-contained file."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import itertools
import math
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire_cli.pages.texts import MAX_NAME_CHARACTERS, ShownText, cut, signed
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.tables import UNDEFINED, Cell, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import jinja2

    from gradewire_cli.pages.agreement_input import Failures
    from gradewire_cli.pages.cases import Basis, Cases, Direction
    from gradewire_cli.pages.charts import Chart


_CELL_CHARACTERS: Final = 200
_DASH: Final = "\u2013"

MAX_BYTES: Final = 1_900_000


def template_of(name: str) -> jinja2.Template:
    """Return a template that escapes all inserted values."""
    try:
        import jinja2  # noqa: PLC0415 - optional
    except ImportError as error:
        raise InputError("a report needs jinja2. Run: pip install 'gradewire[agree]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "kind_of": lambda block: type(block).__name__,
        "shown_table": _shown_table,
        "next_id": itertools.count(1).__next__,
    }
    return environment.get_template(name)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    title: str
    numeric: bool


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell. `order` is its sort key ("" sorts last). A cell with a share has a `shade` from 0 to 10."""

    text: str
    order: str
    small: Sequence[str] = ()
    shade: int | None = None


@dataclass(frozen=True, slots=True)
class _Table:
    title: str
    columns: Sequence[_Column]
    rows: Sequence[tuple[Sequence[_Cell], Mapping[str, str]]]
    heads: int
    note: str


def _shown_table(table: Table) -> _Table:
    columns = []
    for place, name in enumerate(table.columns):
        is_numeric = not any(isinstance(row[place], str) for row in table.rows)
        shown = cut(name.replace("\n", " "), MAX_NAME_CHARACTERS) or ("No." if is_numeric else "Name")
        columns.append(_Column(shown, table.explained.get(name, ""), is_numeric))
    filters = table.filters or [{}] * len(table.rows)
    rows = [([_shown_cell(cell) for cell in row], each) for row, each in zip(table.rows, filters, strict=True)]
    return _Table(cut(table.title, _CELL_CHARACTERS), columns, rows, table.heads, table.note)


def _shown_cell(cell: Cell) -> _Cell:
    if isinstance(cell, str):
        text = cut(cell, _CELL_CHARACTERS)
        return _Cell(text, text.casefold())
    value = cell.p_value if math.isnan(cell.value) else cell.value
    is_count = isinstance(value, int) and cell.text == str(value)
    text = _DASH if cell.text == UNDEFINED else f"{value:,}" if is_count else signed(cell.text)
    interval = " to ".join(map(signed, cell.bounds))
    return _Cell(
        cut(text, _CELL_CHARACTERS),
        "" if math.isnan(value) else f"{value:.6g}",
        [*([interval] if interval else []), *cell.notes],
        round(10 * value) if 0 <= value <= 1 else None,
    )


def page_assets(scripts: Iterable[str], styles: Iterable[str]) -> dict[str, str]:
    """Return the scripts, the styles, and a policy that forbids any others."""
    script, style = ("".join(map(_asset, names)) for names in (scripts, styles))
    return {"script": script, "style": style, "policy": policy(script, style)}


def policy(script: str, style: str) -> str:
    """Return a content security policy that allows only this script and style."""
    allowed = {"script-src": script, "style-src": style}
    digests = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for kind, text in allowed.items()
    }
    rules = [f"{kind} 'sha256-{digest}'" for kind, digest in digests.items()]
    return "; ".join(["default-src 'none'", *rules, "img-src data:", "base-uri 'none'", "form-action 'none'"])


def _asset(name: str) -> str:
    return (resources.files("gradewire_cli.pages") / "templates" / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Code:
    """A text that is shown as code."""

    code: str


Words = tuple[str | ShownText | Code, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph. `style` is its CSS class, e.g. "note"."""

    words: Words
    style: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    words: Words


@dataclass(frozen=True, slots=True)
class Terms:
    """Names with their texts. `style` is the CSS class: "facts", "explained" or "lines" (code)."""

    style: str
    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that are hidden until the reader opens their summary."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Selection:
    """A box that selects a table's rows by one of the listed values."""

    name: str
    label: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table with its HTML ID. `is_shaded` colours numbers from 0 to 1."""

    id: str
    table: Table
    selections: Sequence[Selection] = ()
    is_shaded: bool = False


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts side by side, with paragraphs in place of missing charts. `style` is "wide" for a single chart."""

    charts: Sequence[Chart | Paragraph]
    style: str = ""


@dataclass(frozen=True, slots=True)
class CardText:
    """A named text on a card, with a number and a verdict ("right", "wrong" or "")."""

    name: str | ShownText
    text: ShownText
    number: str = ""
    verdict: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A question with its answers. `why` is the reason to show the question."""

    why: Words
    texts: Sequence[CardText]


@dataclass(frozen=True, slots=True)
class CaseList:
    """Answers on which metrics and annotators disagree, with boxes to filter the answers."""

    shown: Cases
    metrics: Sequence[str]
    disagreements: Mapping[tuple[Direction, Basis], str]
    selections: Sequence[Selection]


@dataclass(frozen=True, slots=True)
class FailureList:
    """Failed rows by metric and status."""

    failures: Sequence[Failures]


Block = Paragraph | Heading | Terms | Details | ShownTable | Charts | Card | CaseList | FailureList


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page. `link` is the section's text in the list of sections; the default is the title."""

    id: str
    title: Words
    blocks: Sequence[Block]
    link: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page. The size limit does not count `embedded_characters`, the characters in embedded pictures."""

    title: str
    heading: Words
    lead: Words
    sections: Sequence[Section]
    first: Sequence[Block] = ()
    embedded_characters: int = field(default=0)


def notes(texts: Iterable[str], *, most: int = 2000) -> list[Block]:
    """Return a printable note for each sentence. A note is cut after `most` characters."""
    return [Paragraph((ShownText(cut(text, most)),), "note") for text in texts]


def lines(entries: Iterable[tuple[str, str]], *, most: int = 2000) -> Terms:
    """Return printable metric identifiers by label, each cut after `most` characters."""
    return Terms("lines", [(cut(name, MAX_NAME_CHARACTERS), cut(line, most)) for name, line in entries])


def write_page(path: Path, pages: Iterable[Page], *, without: str = "answer", quiet: bool = True) -> int:
    """Write the first page that is small enough, and return its size in bytes.

    Raises:
        InputError: jinja2 is not installed, every page is larger than 1.9 MB, or the file cannot be written.
    """
    page = render(pages, without=without, name=str(path))
    with named_errors(path):
        path.write_bytes(page)
    if not quiet:
        click.echo(f"{path}: {len(page) / 1e6:.1f} MB", err=True)
    return len(page)


def render(pages: Iterable[Page], *, without: str = "answer", name: str = "page.html") -> bytes:
    """Return the first page that is small enough, in UTF-8; raise InputError if all pages are too large.

    `name` and `without`, the omitted content, complete the message.
    """
    template = template_of("page.html")
    assets: dict[str, Any] = page_assets(("common.js", "report.js"), ("report.css",))
    size = 0
    for page in pages:
        rendered = template.render(assets, page=page).encode(errors="replace")
        size = len(rendered)
        if size - page.embedded_characters <= MAX_BYTES:
            return rendered
    raise InputError(f"{name}: the page would be too large ({size:,} bytes), even without any {without}")


def today() -> str:
    """Return today's date (UTC) for a headline."""
    return dt.datetime.now(tz=dt.UTC).date().isoformat()
