"""Pages of a few rows, and what stands in them."""

from html.parser import HTMLParser

from tests.cli.pages.samples import failed, report_of, smile

from gradewire_cli.pages.agreement import render
from gradewire_cli.pages.agreement_input import ReportRow


class Elements(HTMLParser):
    """Names of all elements, attributes with what they hold, and the text outside script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.text += " "  # cells and terms stand apart without white space between them
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if self.names and self.names[-1] not in {"script", "style"}:
            self.text += data


def page_of(rows: list[ReportRow], **changes: object) -> str:
    return render(report_of(rows, **changes)).decode()


def simple_rows() -> list[ReportRow]:
    def row(place: int, label: float, result: dict[str, object], **changes: object) -> ReportRow:
        given = {"question": f"who was it, {place}?", "references": ["Curie", "Leonardo da Vinci"]}
        given |= {"prediction": "It was Leonardo da Vinci, they say.", "model": "gpt4", "dataset": "nq"}
        return ReportRow(id=f"id-{place}", label=label, results={"smile": result}, **(given | changes))

    return [
        row(0, 1.0, smile(0.1, "leonardo da vinci", warnings=["TRUNCATED"]), labels=(1.0, None, 0.5)),
        row(1, 0.0, smile(0.9, "nowhere to be seen")),
        row(2, 1.0, smile(0.95, "they say")),
        row(3, 0.0, failed()),
    ]
