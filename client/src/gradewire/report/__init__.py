"""One HTML page that loads nothing: how well scores agree with people, and where they do not.

Rendering needs jinja2 (``pip install 'gradewire[agree]'``), which is imported when a page is written.
"""

from gradewire.errors import MissingExtra

try:
    from gradewire.report.agreement_page import write_report
    from gradewire.report.input import ReportInput, ReportRow
    from gradewire.report.page import ReportTooLargeError
    from gradewire.report.rendering import MissingJinjaError
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise MissingExtra("the report needs numpy: pip install 'gradewire[agree]'") from error

__all__ = ["MissingJinjaError", "ReportInput", "ReportRow", "ReportTooLargeError", "write_report"]
