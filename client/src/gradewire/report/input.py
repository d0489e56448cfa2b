"""What a report is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradewire.agreement import AgreementReport, JudgedRows
from gradewire.agreement.annotators.labels import AnnotatorAgreement


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A labelled row with what every metric said of it.

    Attributes:
        id: As the output of the run calls it.
        question: "" where there is none.
        references: All of them, in the order the metrics saw.
        prediction: Raw text.
        label: What the scores are held against.
        picture: What the question is about, as the row names it: a path, an http(s) URL, a data URI, any other name; ""
            without one.
        labels: Label of each annotator where there are several; None for one who gave none.
        dataset: "" where there is none, as model and group.
        model: Model under test.
        group: Any further name by which rows are told apart.
        results: By label of the metric, each as `MetricScore.to_dict` writes it.
    """

    id: str
    question: str
    references: Sequence[str]
    prediction: str
    label: float
    picture: str = ""
    labels: Sequence[float | None] = ()
    dataset: str = ""
    model: str = ""
    group: str = ""
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """A run with its labels.

    Attributes:
        source: What was scored, as the headline says it.
        created: Date for the headline; the report reads no clock.
        rows: One per row of `judged`, in the same order.
        judged: The columns that `agreement` was computed from.
        agreement: Figures and intervals.
        unlabelled: Rows left out because they have no label.
        unreadable: Rows left out because their label cannot be read.
        annotators: Agreement of the annotators with one another; None where there are not several.
        notes: Further sentences for the headline.
        folder: Folder of the file of rows, in which pictures are looked up that rows name by a path; None: nowhere.
    """

    source: str
    created: str
    rows: Sequence[ReportRow]
    judged: JudgedRows
    agreement: AgreementReport
    unlabelled: int = 0
    unreadable: int = 0
    annotators: AnnotatorAgreement | None = None
    notes: Sequence[str] = ()
    folder: Path | None = None

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.judged.labels):
            raise ValueError(f"{len(self.rows)} rows beside {len(self.judged.labels)} labels: they belong together")
