"""The HTML page of a comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gradewire_cli.compare.tables import difference_table, value_notes, value_tables
from gradewire_cli.pages import page
from gradewire_cli.pages.charts import share_chart
from gradewire_cli.pages.page import (
    Card,
    CardText,
    Charts,
    Code,
    Heading,
    Page,
    Paragraph,
    Section,
    ShownTable,
    today,
    write_page_file,
)
from gradewire_cli.pages.texts import ShownText, cut, name_of, normal_form, shown, signed
from gradewire_cli.results.tables import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gradewire_cli.compare.result import ChangedRow, CheckedCondition, CompareResult, SideComparison
    from gradewire_cli.pages.charts import Chart
    from gradewire_cli.pages.page import Block
    from gradewire_cli.results.tables import Table

# Rows that changed most in either direction, characters of their texts, lines of a table: the first of these with which
# the page is small enough.
_AMOUNTS: Final = ((25, 1200, 400), (10, 600, 200), (5, 300, 60), (0, 0, 20))
_REFERENCES: Final = 5
_LINE_CHARACTERS: Final = 2000
_VERDICTS: Final = {True: "right", False: "wrong", None: ""}


def write_page(path: Path, found: CompareResult, source: str, conditions: Sequence[CheckedCondition]) -> None:
    """Write the page; raises InputError where it cannot be written."""
    write_page_file(path, lambda: page.write_page(path, comparison_pages(found, source, conditions)), quiet=True)


def comparison_pages(found: CompareResult, source: str, conditions: Sequence[CheckedCondition]) -> Iterator[Page]:
    """Yield the page with less and less on it: values with their intervals, wins, changed rows, what else differs."""
    base = name_of(found.sides[0].baseline)
    for rows, characters, lines in _AMOUNTS:
        yield Page(
            title=f"Comparison: {cut(source, _LINE_CHARACTERS)}",
            heading=("Comparison with ", base),
            lead=(ShownText(cut(source, _LINE_CHARACTERS)), f", {today()}: ", *_candidates(found)),
            first=[
                Paragraph((ShownText(cut(str(each), _LINE_CHARACTERS)),), "holds" if each.holds or each.problem else "")
                for each in conditions
            ],
            sections=[
                *(
                    Section(
                        id=f"side-{place}",
                        title=(name_of(side.candidate), " against ", base),
                        link=(name_of(side.candidate),),
                        blocks=list(_side(side, found.chooser, place, rows=rows, characters=characters, lines=lines)),
                    )
                    for place, side in enumerate(found.sides, 1)
                ),
                _reproduce(found),
            ],
        )


def _candidates(found: CompareResult) -> Iterator[str | ShownText]:
    for place, side in enumerate(found.sides):
        yield from ((", ",) if place else ())
        yield name_of(side.candidate)
        yield f" on {side.overall.pairs:,} questions"


def _side(  # noqa: PLR0913 - what is shown, and how much of it
    side: SideComparison, chooser: str, place: int, *, rows: int, characters: int, lines: int
) -> Iterator[Block]:
    yield Charts([_outcomes(side)], "wide")
    for number_, table in enumerate(value_tables(side), 1):
        yield ShownTable(f"t-{place}-{number_}", _first(table, lines))
    if (differences := difference_table(side)) is not None:
        yield Heading(("What differs beside the answers",))
        yield ShownTable(f"t-differences-{place}", _first(differences, lines))
    by = chooser if chooser in side.changed else next(iter(side.changed), "")
    if (changed := side.changed.get(by)) is None:
        return
    for title, listed in (("gained", changed.gained[:rows]), ("lost", changed.lost[:rows])):
        if listed:
            yield Heading((f"Rows that {title} most by ", name_of(by)))
            yield from (_card(row, side, characters) for row in listed)


def _first(table: Table, most: int) -> Table:
    if len(table.rows) <= most:
        return table
    note = f"The first {most:,} of {len(table.rows):,} lines are shown."
    return replace(table, rows=table.rows[:most], note=note)


def _outcomes(side: SideComparison) -> Chart:
    bars = []
    for name, of in side.overall.outcomes.items():
        text = f"{of.wins:,} won, {of.ties:,} tied, {of.losses:,} lost"
        text += f", {of.undecided:,} undecided" if of.undecided else ""
        bars.append((cut(name, 80), text, [("right", of.wins), ("between", of.ties), ("wrong", of.losses)]))
    return share_chart(
        f"Answers of {cut(side.candidate, 80)} that won, tied and lost",
        "Whose answer is better: won (blue), tied (grey), lost (orange)",
        bars,
    )


def _card(row: ChangedRow, side: SideComparison, characters: int) -> Card:
    def text(name: str | ShownText, words: str, **more: str) -> CardText:
        return CardText(name, shown(normal_form(words), max_characters=characters), **more)

    sides = (
        (side.baseline, row.baseline_answer, row.baseline_score, row.baseline_correct),
        (side.candidate, row.candidate_answer, row.candidate_score, row.candidate_correct),
    )
    return Card(
        (name_of(row.id), f" · {signed(number(row.candidate_score - row.baseline_score))}"),
        [
            *([text("Question", row.question)] if row.question else []),
            *(text("Reference", reference) for reference in row.references[:_REFERENCES]),
            *(
                text(name_of(name), answer, number=signed(number(score)), verdict=_VERDICTS[correct], style="answer")
                for name, answer, score, correct in sides
            ),
        ],
    )


def _reproduce(found: CompareResult) -> Section:
    baseline = found.sides[0].baseline
    chooser = ", ".join(str(value) if name == "by" else f"{name} {value}" for name, value in found.identity.items())
    how = (
        "Better answers are chosen by ",
        Code(cut(chooser, _LINE_CHARACTERS)),
        ". Values are of a candidate minus ",
        name_of(baseline),
        ", on the questions for which both have a score.",
    )
    lines = page.lines(found.manifests[baseline].lines.items())
    return Section(
        id="reproduce",
        title=("Reproduce",),
        blocks=[Paragraph(how), *page.notes(value_notes(found)), lines],
    )
