"""Comparison of models, runs, data sets or groups by their scores, without labels.

`compare_results` compares two runs, `compare_pairs` compares pairs of answers, and `compare_groups` compares groups of
rows. The bootstrap draws questions instead of rows, because answers to the same question depend on each other.
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
