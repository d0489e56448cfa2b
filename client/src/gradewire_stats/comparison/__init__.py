"""Scores of several models, runs, data sets or groups beside each other, without labels; no files, no terminal.

`compare_results` takes the results of two runs, `compare_pairs` columns of pairs of answers, and `compare_groups`
columns of any groups of rows. The bootstrap draws questions, not rows: answers to one question are not independent.
"""

from gradewire_stats.comparison.groups import GroupedRows, GroupStatistics, PairedDifference, compare_groups
from gradewire_stats.comparison.paired_rows import PairedRows, preferences
from gradewire_stats.comparison.pairs import (
    EmptyAsWrong,
    MetricDifference,
    Outcomes,
    PairComparison,
    VerdictDifference,
    compare_pairs,
)
from gradewire_stats.comparison.runs import RowColumns, compare_results

__all__ = [
    "EmptyAsWrong",
    "GroupStatistics",
    "GroupedRows",
    "MetricDifference",
    "Outcomes",
    "PairComparison",
    "PairedDifference",
    "PairedRows",
    "RowColumns",
    "VerdictDifference",
    "compare_groups",
    "compare_pairs",
    "compare_results",
    "preferences",
]
