"""How well scores agree with people: arrays in, numbers out; no files, no terminal.

Point values come from scipy (``pip install 'gradewire[agree]'``), bootstrap intervals from vectorised numpy that the
tests hold against scipy. A question, not a row, is what the bootstrap draws: answers to one question are not
independent.
"""

from gradewire.agreement.cells import (
    AgreementReport,
    CellAgreement,
    Comparison,
    Estimate,
    JudgedRows,
    MetricAgreement,
    agreement,
)
from gradewire.agreement.point import MissingScipyError, point_values

__all__ = [
    "AgreementReport",
    "CellAgreement",
    "Comparison",
    "Estimate",
    "JudgedRows",
    "MetricAgreement",
    "MissingScipyError",
    "agreement",
    "point_values",
]
