"""One HTML page that loads nothing: how well scores agree with people, and where they do not.

Rendering needs jinja2 (``pip install 'gradewire[agree]'``), which is imported when a page is written.
"""

from gradewire.report.input import ReportInput, ReportRow
from gradewire.report.page import MissingJinjaError, ReportTooLargeError, write_report

__all__ = ["MissingJinjaError", "ReportInput", "ReportRow", "ReportTooLargeError", "write_report"]
