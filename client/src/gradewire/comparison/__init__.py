"""Scores of several models, runs, data sets or groups beside each other, without labels; no files, no terminal.

A question, not a row, is what the bootstrap draws: answers to one question are not independent.
"""

from gradewire.errors import MissingExtra

try:
    from gradewire.comparison.groups import GroupFigures, PairedDifference, compare_groups
    from gradewire.comparison.pair_figures import (
        EmptyAsWrong,
        MetricDifference,
        Outcomes,
        PairComparison,
        VerdictDifference,
        compare_pairs,
    )
    from gradewire.comparison.paired_rows import PairedRows
    from gradewire.comparison.preferences import TIE_MARGIN, preferences
    from gradewire.comparison.rows import GroupedRows
    from gradewire.comparison.runs import RunComparison, compare_results
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise MissingExtra("comparing groups needs numpy: pip install 'gradewire[agree]'") from error

__all__ = [
    "TIE_MARGIN",
    "EmptyAsWrong",
    "GroupFigures",
    "GroupedRows",
    "MetricDifference",
    "Outcomes",
    "PairComparison",
    "PairedDifference",
    "PairedRows",
    "RunComparison",
    "VerdictDifference",
    "compare_groups",
    "compare_pairs",
    "compare_results",
    "preferences",
]
