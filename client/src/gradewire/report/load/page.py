"""Renders and writes the page of a load run."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from gradewire.report.load.charts import plots
from gradewire.report.load.input import LoadInput
from gradewire.report.rendering import page_assets, template_of
from gradewire.report.texts import visible

_NOTE_CHARACTERS: Final = 1000


def write_load_page(path: Path, load: LoadInput) -> int:
    """Writes the page: what was found, plots with a table beside each, all figures. It loads nothing.

    Args:
        path: File to write; one that is there is replaced.
        load: What to show.

    Returns:
        Its size, bytes.

    Raises:
        MissingJinjaError: jinja2 is not installed.
        OSError: The file cannot be written.
    """
    page = render(load)
    path.write_bytes(page)
    return len(page)


def render(load: LoadInput) -> bytes:
    """The page in UTF-8; raises as `write_load_page`."""
    content = page_assets(("common.js",), ("report.css", "load.css")) | {
        "load": replace(
            load,
            source=visible(load.source[:_NOTE_CHARACTERS]),
            notes=[visible(note[:_NOTE_CHARACTERS]) for note in load.notes],
        ),
        "plots": plots(load),
    }
    return template_of("load.html").render(content).encode(errors="replace")
