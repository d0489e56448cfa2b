"""Pages of docs/ in which a program replaces the blocks that it writes."""

import sys
from pathlib import Path


def write_block(document: Path, name: str, block: str) -> None:
    """Replaces a block of a page and says so; a page without the block's marks is a ValueError."""
    document.write_text(with_block(document.read_text("utf-8"), name, block), "utf-8")
    sys.stderr.write(f"{document}: block {name} written\n")


def with_block(document: str, name: str, block: str) -> str:
    """Replaces what stands between the marks of a block.

    Args:
        document: Has the lines `<!-- begin NAME -->` and `<!-- end NAME -->`, once each.
        name: Of the block.
        block: Markdown.

    Raises:
        ValueError: The marks are not there.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(end) < document.index(begin):
        raise ValueError(f"the document needs {begin.strip()} and {end.strip()}, once each and in this order")
    before, _, rest = document.partition(begin)
    return f"{before}{begin}\n{block.strip()}\n\n{end}{rest.partition(end)[2]}"
