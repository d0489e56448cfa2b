"""Tables of figures as GitHub's Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradewire.tables import Table, Value


def to_markdown(tables: Iterable[Table], notes: Sequence[str] = ()) -> str:
    """The tables as GitHub's Markdown, titles as bold lines, and the notes as a list of literal lines."""
    blocks = []
    for table in tables:
        # Never cut: pages scroll a wide table, and one table is easier to read than its pieces.
        rule = f"|{'---|' * table.heads}{'---:|' * (len(table.columns) - table.heads)}"
        lines = [f"**{table.title}**", "", _row(table.columns), rule]
        blocks.append("\n".join([*lines, *map(_row, table.rows)]))
    if notes:
        # A fence longer than any run of backticks in a note, which may quote the file.
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(notes)) or [""]))
        blocks.append("\n".join([fence, *notes, fence]))
    return "\n\n".join(blocks) + "\n"


def _row(cells: Sequence[Value | str]) -> str:
    # A label is a metric line at worst, and a data set is called as the file says: neither may end a cell or a row.
    escaped = (" ".join(str(cell).replace("\\", "\\\\").replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(escaped)} |"
