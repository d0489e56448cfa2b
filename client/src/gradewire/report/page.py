"""The one model of a page: sections of texts, tables, charts and answers, rendered as a file that loads nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gradewire.report.rendering import page_assets, template_of
from gradewire.report.texts import MAX_NAME_CHARACTERS, ShownText, cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from gradewire.report.cases import Cases
    from gradewire.report.charts import Chart
    from gradewire.report.failures import Failures
    from gradewire.report.worst import Basis, Direction
    from gradewire.tables import Table

MAX_BYTES: Final = 1_900_000


class ReportTooLargeError(ValueError):
    """Even the smallest page of these rows is too large."""


@dataclass(frozen=True, slots=True)
class Code:
    """A text among others that is written as code."""

    code: str


Words = tuple[str | ShownText | Code, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `style` is its class ("note", say)."""

    kind: ClassVar = "paragraph"
    words: Words
    style: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    kind: ClassVar = "heading"
    words: Words


@dataclass(frozen=True, slots=True)
class Terms:
    """Names, each with a text; `style` is "facts", "explained" or "lines" (of code)."""

    kind: ClassVar = "terms"
    style: str
    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that are folded away."""

    kind: ClassVar = "details"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Selection:
    """A box that chooses rows of a table by a value: the name of the filter, its label, and what it offers."""

    name: str
    label: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table with its id on the page; `is_shaded` colours numbers from 0 to 1."""

    kind: ClassVar = "table"
    id: str
    table: Table
    selections: Sequence[Selection] = ()
    is_shaded: bool = False


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts side by side, and texts in the place of some; `style` is "wide" for a single one."""

    kind: ClassVar = "charts"
    charts: Sequence[Chart | Paragraph]
    style: str = ""


@dataclass(frozen=True, slots=True)
class CardText:
    """A named text of a card, with a number and a verdict ("right", "wrong", "")."""

    name: str | ShownText
    text: ShownText
    number: str = ""
    verdict: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A question with its answers; `why` says why it is shown."""

    kind: ClassVar = "card"
    why: Words
    texts: Sequence[CardText]


@dataclass(frozen=True, slots=True)
class CaseList:
    """Answers on which metrics and people disagree, with boxes that choose among them.

    Attributes:
        shown: The answers.
        metrics: Labels of the metrics.
        disagreements: Names of the kinds of disagreement, by direction and basis.
        selections: Boxes for what the rows have.
    """

    kind: ClassVar = "cases"
    shown: Cases
    metrics: Sequence[str]
    disagreements: Mapping[tuple[Direction, Basis], str]
    selections: Sequence[Selection]


@dataclass(frozen=True, slots=True)
class FailureList:
    """Failed rows by metric and status."""

    kind: ClassVar = "failures"
    failures: Sequence[Failures]


Block = Paragraph | Heading | Terms | Details | ShownTable | Charts | Card | CaseList | FailureList


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page; `link` names it in the list of sections, else its title does."""

    id: str
    title: Words
    blocks: Sequence[Block]
    link: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page.

    Attributes:
        title: For the browser's window.
        heading: The headline.
        lead: A line below it.
        first: Blocks in front of the first section.
        sections: The parts.
        embedded_characters: Those of pictures, which do not count to the size.
    """

    title: str
    heading: Words
    lead: Words
    sections: Sequence[Section]
    first: Sequence[Block] = ()
    embedded_characters: int = field(default=0)


def notes(texts: Iterable[str], *, most: int = 2000) -> list[Block]:
    """Return a note for each sentence, fit to be shown."""
    return [Paragraph((ShownText(cut(text, most)),), "note") for text in texts]


def lines(entries: Iterable[tuple[str, str]], *, most: int = 2000) -> Terms:
    """Return the lines that reproduce each metric."""
    return Terms("lines", [(cut(name, MAX_NAME_CHARACTERS), cut(line, most)) for name, line in entries])


def write_page(path: Path, pages: Iterable[Page], *, without: str = "answer") -> int:
    """Write the first of these pages that is small enough: one file that loads nothing.

    Args:
        path: File to write; one that is there is replaced.
        pages: The same page with less and less on it.
        without: What the last of them does not show, for the error.

    Returns:
        Its size, bytes.

    Raises:
        MissingJinjaError: jinja2 is not installed.
        ReportTooLargeError: Each page is larger than 1.9 MB.
        OSError: The file cannot be written.
    """
    page = render(pages, without=without)
    path.write_bytes(page)
    return len(page)


def render(pages: Iterable[Page], *, without: str = "answer") -> bytes:
    """Return the first of these pages that is small enough, in UTF-8; raises as `write_page`."""
    template = template_of("page.html")
    assets: dict[str, Any] = page_assets(("common.js", "report.js"), ("report.css",))
    size = 0
    for page in pages:
        rendered = template.render(assets, page=page).encode(errors="replace")
        size = len(rendered)
        if size - page.embedded_characters <= MAX_BYTES:
            return rendered
    raise ReportTooLargeError(f"the page would have {size:,} bytes without a single {without}")
