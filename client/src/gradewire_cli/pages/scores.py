"""The HTML page of a run of `gradewire score`."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gradewire.results import ScoreWarning, Status
from gradewire_cli.options.common import written
from gradewire_cli.pages import page
from gradewire_cli.pages.agreement_input import Failures
from gradewire_cli.pages.charts import Axis, interval_chart, padded, share_chart
from gradewire_cli.pages.page import (
    Card,
    CardText,
    Charts,
    Code,
    FailureList,
    Heading,
    Page,
    Paragraph,
    Section,
    ShownTable,
    Terms,
    Words,
    today,
)
from gradewire_cli.pages.texts import MAX_NAME_CHARACTERS, ShownText, cut, name_of, normal_form, shown, signed, visible
from gradewire_cli.results.resumable_output import verdict
from gradewire_cli.results.summary import result_notes, summary_table, uncertain_text
from gradewire_cli.results.tables import number
from gradewire_stats.bootstrap import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire_cli.pages.charts import Chart
    from gradewire_cli.pages.page import Block
    from gradewire_cli.results.groups import Breakdown, GroupMetric
    from gradewire_cli.results.summary import RunFacts, Summary
    from gradewire_cli.rows.row import Row

# Maximum numbers of answers in each list, of characters in each text, and of a table's lines. The page uses the first
# row of limits that makes it small enough.
_AMOUNTS: Final = ((25, 1200, 400), (10, 600, 200), (5, 300, 60), (0, 0, 20))
_MOST_ANSWERS: Final = _AMOUNTS[0][0]
_MOST_CHARTS: Final = 12
_MOST_BARS: Final = 20
_REFERENCES: Final = 5
_EXAMPLES: Final = 3
_EXAMPLE_CHARACTERS: Final = 160
_LINE_CHARACTERS: Final = 2000
_VERDICTS: Final = {True: "right", False: "wrong", None: ""}


@dataclass(frozen=True, slots=True, order=True)
class _Answer:
    """A row with its output. Answers to show first have the lowest `rank`."""

    rank: float
    index: int
    row: Row = field(compare=False)
    output: Mapping[str, Any] = field(compare=False)


@dataclass(slots=True)
class ReportAnswers:
    """The answers that the page shows: those with the lowest scores by the first metric, and those with doubts.

    Memory does not depend on the number of rows. `examples` has the first rows of each metric and failure status.
    """

    lowest: list[_Answer] = field(default_factory=list)
    uncertain: list[_Answer] = field(default_factory=list)
    examples: dict[tuple[str, str], list[tuple[str, str, ShownText]]] = field(default_factory=dict)

    def add(self, row: Row, output: Mapping[str, Any]) -> None:
        """Count a row and its output row."""
        results = output["scores"]
        first = next(iter(results.values()))
        if first["score"] is not None:
            _keep(self.lowest, _Answer(first["score"], row.index, row, output))
        doubted = [result for result in results.values() if ScoreWarning.UNCERTAIN in result.get("warnings", ())]
        if doubted:
            _keep(self.uncertain, _Answer(abs(doubted[0]["score"] - 0.5), row.index, row, output))
        for label, result in results.items():
            if result["status"] != Status.OK:
                kept = self.examples.setdefault((label, result["status"]), [])
                if len(kept) < _EXAMPLES:
                    kept.append(_example(row, result))

    def write(self, path: Path, summary: Summary, run: RunFacts, source: str) -> None:
        """Write the page as one file that loads nothing; raise InputError if the file cannot be written."""
        page.write_page(path, self._pages(summary, run, source))

    def _pages(self, summary: Summary, run: RunFacts, source: str) -> Iterator[Page]:
        failed = self._failures(summary)
        for answers, characters, lines in _AMOUNTS:
            groups = [_group(breakdown, place, lines) for place, breakdown in enumerate(run.by, 1) if breakdown.lines]
            yield Page(
                title=f"Scores: {cut(source, _LINE_CHARACTERS)}",
                heading=("Scores",),
                lead=(ShownText(cut(source, _LINE_CHARACTERS)), f", {today()}: {_size(summary)}"),
                sections=[
                    _overview(summary, run),
                    *groups,
                    *self._shown(answers, characters),
                    Section("failed", ("Rows without a score",), [failed], link=("Without a score",)),
                    _reproduce(summary, run),
                ],
            )

    def _shown(self, most: int, characters: int) -> Iterator[Section]:
        if not most:
            return
        if self.uncertain:
            yield Section(
                "uncertain",
                ("Answers to review",),
                [
                    Paragraph(("Verdicts marked UNCERTAIN. The scores closest to 0.5 come first.",), "note"),
                    *(_card(each, characters) for each in sorted(self.uncertain)[:most]),
                ],
                link=("To review",),
            )
        if self.lowest:
            first = next(iter(self.lowest[0].output["scores"]))
            yield Section(
                "lowest",
                ("Answers with the lowest scores by ", name_of(first)),
                [_card(each, characters) for each in sorted(self.lowest)[:most]],
                link=("Lowest scores",),
            )

    def _failures(self, summary: Summary) -> Block:
        failures = [
            Failures(cut(label, MAX_NAME_CHARACTERS), status, count, self.examples.get((label, status), ()))
            for label, tally in summary.metrics.items()
            for status, count in tally.failures.items()
        ]
        return FailureList(failures) if failures else Paragraph(("Every row has a score by every metric.",))


def _keep(answers: list[_Answer], answer: _Answer) -> None:
    """Add an answer, and drop the answers that the page would not show."""
    answers.append(answer)
    if len(answers) > 2 * _MOST_ANSWERS:
        answers[:] = heapq.nsmallest(_MOST_ANSWERS, answers)


def _example(row: Row, result: Mapping[str, Any]) -> tuple[str, str, ShownText]:
    text = normal_form(str((row.item or {}).get("prediction", ""))[: 4 * _EXAMPLE_CHARACTERS])
    message = visible(str(result.get("message", ""))[: 2 * _EXAMPLE_CHARACTERS])
    return visible(row.id[:_EXAMPLE_CHARACTERS]), message, shown(text, max_characters=_EXAMPLE_CHARACTERS)


def _size(summary: Summary) -> str:
    metrics = len(summary.metrics)
    return f"{summary.rows:,} rows, {metrics} metric{'s' if metrics != 1 else ''}"


def _overview(summary: Summary, run: RunFacts) -> Section:
    facts = {"Rows": summary.rows, "Rows without a score": summary.unscored_rows}
    shares = [
        (cut(label, MAX_NAME_CHARACTERS), f"{tally.share_right:.1%} right", _verdict_counts(tally.verdicts))
        for label, tally in summary.metrics.items()
        if tally.verdicts
    ]
    caption = "Verdicts: right (blue), wrong (orange)"
    doubts = (f"{label}: {uncertain_text(tally)}" for label, tally in summary.metrics.items() if tally.uncertain)
    blocks: list[Block] = [
        Terms("facts", [(name, f"{count:,}") for name, count in facts.items()]),
        *page.notes([*run.notes, *result_notes(summary), *doubts]),
        *([Charts([share_chart("Verdicts of each metric", caption, shares[:_MOST_BARS])], "wide")] if shares else []),
        ShownTable("t-overview", summary_table(summary)),
    ]
    return Section("overview", ("Overview",), blocks)


def _verdict_counts(verdicts: Mapping[bool, int]) -> list[tuple[str, int]]:
    return [("right", verdicts[True]), ("wrong", verdicts[False])]


def _group(breakdown: Breakdown, place: int, most: int) -> Section:
    by = written(breakdown.columns)
    charts = [
        chart for label, lines in breakdown.lines.items() if (chart := _means_chart(label, lines, by)) is not None
    ]
    tables = []
    for number_, table in enumerate(breakdown.tables(), 1):
        left_out = f"The first {most:,} of {len(table.rows):,} rows are shown."
        cut_table = replace(table, rows=table.rows[:most], note=left_out) if len(table.rows) > most else table
        tables.append(ShownTable(f"t-{place}-{number_}", cut_table))
    blocks: list[Block] = [*([Charts(charts[:_MOST_CHARTS])] if charts else []), *tables]
    return Section(f"by-{place}", ("By ", name_of(by)), [*blocks, *page.notes(breakdown.notes())])


def _means_chart(label: str, lines: Sequence[GroupMetric], by: str) -> Chart | None:
    """Return a chart of the groups' means with their intervals, or None if the chart would be empty or too long."""
    means = {cut(" ".join(line.group), MAX_NAME_CHARACTERS): line.mean for line in lines}
    drawn = {name: mean for name, mean in means.items() if not math.isnan(mean.value)}
    if not drawn or len(drawn) > _MOST_BARS:
        return None
    ends = [end for mean in drawn.values() for end in (mean.value, mean.low, mean.high) if not math.isnan(end)]
    axis = Axis(*padded(min(ends), max(ends)))
    estimates = {
        name: (Estimate(mean.value, mean.low, mean.high, 0), signed(mean.text)) for name, mean in drawn.items()
    }
    name = cut(label, MAX_NAME_CHARACTERS)
    title = f"Mean {name} by {cut(by, MAX_NAME_CHARACTERS)}, with its 95 % interval"
    return interval_chart(estimates, axis, name, over="mean", title=title)


def _card(answer: _Answer, characters: int) -> Card:
    def text(name: str, words: str, **more: str) -> CardText:
        return CardText(name, shown(normal_form(words), max_characters=characters), **more)

    item: Mapping[str, Any] = answer.row.item or {}
    model: Words = (" · ", name_of(answer.row.model)) if answer.row.model else ()
    return Card(
        (name_of(answer.row.id), *model),
        [
            *([text("Question", item["question"])] if item.get("question") else []),
            *(text("Reference", reference) for reference in list(item.get("references", ()))[:_REFERENCES]),
            text("Prediction", str(item.get("prediction", "")), style="answer"),
            *(
                text(
                    cut(label, MAX_NAME_CHARACTERS),
                    ", ".join(result.get("warnings", ())),
                    number=result["status"] if result["score"] is None else signed(number(result["score"])),
                    verdict=_VERDICTS[verdict(label, result)],
                )
                for label, result in answer.output["scores"].items()
            ),
        ],
    )


def _reproduce(summary: Summary, run: RunFacts) -> Section:
    blocks: list[Block] = [page.lines((label, tally.line) for label, tally in summary.metrics.items())]
    if run.command:
        blocks += [Heading(("Command",)), Paragraph((Code(cut(run.command, _LINE_CHARACTERS)),))]
    by = f" (gradewire {run.server_version})" if run.server_version else ""
    place = f"Scored by {cut(run.location, MAX_NAME_CHARACTERS)}{by}. Metric identifiers:"
    return Section("reproduce", ("Reproduce",), [Paragraph((place,)), *blocks])
