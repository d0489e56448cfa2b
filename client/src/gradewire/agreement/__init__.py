"""How well scores agree with people: arrays in, numbers out; no files, no terminal.

Point values come from scipy (``pip install 'gradewire[agree]'``), bootstrap intervals from vectorised numpy that the
tests hold against scipy. A question, not a row, is what the bootstrap draws: answers to one question are not
independent.
"""

from gradewire.errors import MissingExtra

try:
    from gradewire.agreement.cells import agreement
    from gradewire.agreement.estimates import CellsMean, Difference, Estimate
    from gradewire.agreement.optional_imports import MissingScipyError
    from gradewire.agreement.point_estimates import ALL_STATISTICS, Statistic, point_values
    from gradewire.agreement.result_tables import AgreementReport, CellAgreement, Comparison, MetricAgreement
    from gradewire.agreement.rows import JudgedRows
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise MissingExtra("agreement needs numpy: pip install 'gradewire[agree]'") from error

__all__ = [
    "ALL_STATISTICS",
    "AgreementReport",
    "CellAgreement",
    "CellsMean",
    "Comparison",
    "Difference",
    "Estimate",
    "JudgedRows",
    "MetricAgreement",
    "MissingScipyError",
    "Statistic",
    "agreement",
    "point_values",
]
