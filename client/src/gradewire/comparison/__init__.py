"""Scores of several models, data sets or groups beside each other, without labels; no files, no terminal.

A question, not a row, is what the bootstrap draws: answers to one question are not independent.
"""

from gradewire.errors import MissingExtra

try:
    from gradewire.comparison.groups import GroupFigures, PairedDifference, compare_groups
    from gradewire.comparison.rows import GroupedRows
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise MissingExtra("comparing groups needs numpy: pip install 'gradewire[agree]'") from error

__all__ = ["GroupFigures", "GroupedRows", "PairedDifference", "compare_groups"]
