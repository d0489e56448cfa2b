"""Templates of pages that load nothing, with the policy that holds browsers to it."""

import base64
import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from gradewire.report.texts import MAX_NAME_CHARACTERS, cut, signed
from gradewire.tables import UNDEFINED, Cell, Table

if TYPE_CHECKING:
    import jinja2


_CELL_CHARACTERS: Final = 200
_DASH: Final = "\u2013"


class MissingJinjaError(ImportError):
    """jinja2 is not installed; the message says how to get it."""


def template_of(name: str) -> "jinja2.Template":
    """Return a template by its name, which escapes whatever is put into it.

    Raises:
        MissingJinjaError: jinja2 is not installed.
    """
    try:
        import jinja2  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingJinjaError("a report needs jinja2: pip install 'gradewire[agree]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"shown_table": _shown_table, "next_id": itertools.count(1).__next__}
    return environment.get_template(name)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    title: str
    numeric: bool


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell with its sort key ("" sorts last), the texts below it, and a shade of 0 to 10 for a share."""

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
    """Return a table with texts fit to be shown; columns without a word sort by number."""
    columns = []
    for place, name in enumerate(table.columns):
        is_numeric = not any(isinstance(row[place], str) for row in table.rows)
        # A button that sorts has a name, for a screen reader.
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
        [*([interval] if interval else []), *cell.remarks],
        round(10 * value) if 0 <= value <= 1 else None,
    )


def page_assets(scripts: Iterable[str], styles: Iterable[str]) -> dict[str, str]:
    """What every template takes: script and style, each of these files, and the policy that allows no others."""
    script, style = ("".join(map(_asset, names)) for names in (scripts, styles))
    return {"script": script, "style": style, "policy": policy(script, style)}


def policy(script: str, style: str) -> str:
    """Lets only this script and this style run, by their digests, whatever the texts of the rows hold."""
    allowed = {"script-src": script, "style-src": style}
    digests = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for kind, text in allowed.items()
    }
    rules = [f"{kind} 'sha256-{digest}'" for kind, digest in digests.items()]
    return "; ".join(["default-src 'none'", *rules, "img-src data:", "base-uri 'none'", "form-action 'none'"])


def _asset(name: str) -> str:
    return (resources.files("gradewire.report") / "templates" / name).read_text(encoding="utf-8")
