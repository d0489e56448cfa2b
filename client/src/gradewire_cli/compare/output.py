"""Tables, notes and the HTML page of `gradewire compare`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gradewire_cli.options.common import written
from gradewire_cli.pages import page
from gradewire_cli.pages.charts import Chart, share_chart
from gradewire_cli.pages.page import Card, CardText, Charts, Code, Heading, Page, Paragraph, Section, ShownTable, today
from gradewire_cli.pages.texts import ShownText, cut, name_of, normal_form, shown, signed
from gradewire_cli.results.interval_notes import NamedEstimate, interval_notes
from gradewire_cli.results.tables import Table, Value, count, differing, estimated, measured, number, p_value
from gradewire_cli.rows.formats import shown_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire_cli.compare.conditions import CheckedCondition
    from gradewire_cli.compare.result import ChangedRow, CompareResult, GroupedStatistics, SideComparison
    from gradewire_cli.pages.page import Block
    from gradewire_stats.comparison import EmptyAsWrong, MetricDifference, Outcomes, PairComparison, VerdictDifference


# Maximum number of characters in a cell, so that five columns and both answers fit on a line.
_TEXT_CHARACTERS = 32
_ALL = "all"


def headline_tables(result: CompareResult) -> Iterator[Table]:
    """Yield the tables to show by default. Tables of groups and of changed rows are only for the chooser."""
    for side in result.sides:
        yield from _tables(side, [result.chooser], _TEXT_CHARACTERS)


def all_tables(result: CompareResult, *, characters: int = _TEXT_CHARACTERS) -> Iterator[Table]:
    """Yield all tables, with groups and changed rows for every metric. Cut each cell to `characters` characters."""
    for side in result.sides:
        yield from _tables(side, list(side.overall.outcomes), characters)


def _tables(side: SideComparison, names: Sequence[str], characters: int) -> Iterator[Table]:
    yield from _value_tables(side, names)
    yield from _changed(side, names, characters=characters)
    if (table := difference_table(side)) is not None:
        yield table


def _value_tables(side: SideComparison, names: Sequence[str]) -> Iterator[Table]:
    yield from _overall(side)
    for grouped in side.groups:
        yield from _by_group(side, grouped, names)


_EXAMPLES = 3


def value_notes(result: CompareResult) -> list[str]:
    """Return notes on omitted rows and groups, incomparable metrics, and the draws for intervals."""
    notes = list(result.notes)
    for side in result.sides:
        notes += side.matching.notes()
        notes += [
            f"{label}: {side.baseline} and {side.candidate} were scored by different definitions (below), so their "
            "scores are not comparable"
            for label in side.differing_metrics
        ]
        for name, outcomes in side.overall.outcomes.items():
            if outcomes.undecided:
                notes.append(
                    f"{name}: {outcomes.undecided} pairs of {side.candidate} have no winner: {_why(side, name)}"
                    f"{_examples(side, name, result.chooser)}"
                )
        for grouped in side.groups:
            by = written(grouped.columns)
            if grouped.outside:
                notes.append(f"by {by}: {grouped.outside} pairs are in no group, because they have no value")
            if grouped.left_out:
                notes.append(f"by {by}: no values, because there are too many groups ({grouped.left_out})")
    if result.drawing.draws_over == "texts":
        notes.append("questions with the same text are drawn together")
    return [*notes, *interval_notes(_placed(result))]


def _why(side: SideComparison, name: str) -> str:
    if name in side.overall.metrics:
        metric = side.overall.metrics[name]
        counts = [
            f"{number} of {who} {what}"
            for what, numbers in (("are empty", metric.empty), ("failed", metric.failed))
            for who, number in zip((side.baseline, side.candidate), numbers, strict=True)
            if number
        ]
        return f"an answer has no score ({', '.join(counts)})" if counts else "an answer has no verdict"
    return ", ".join(f"{number} {status}" for status, number in side.statuses.items() if status != "OK")


def _examples(side: SideComparison, name: str, chooser: str) -> str:
    ids = [identifier for each in side.without_winner.values() for identifier in each] if name == chooser else []
    return f" (for example {', '.join(map(shown_id, ids[:_EXAMPLES]))})" if ids else ""


def _placed(result: CompareResult) -> Iterator[NamedEstimate]:
    for side in result.sides:
        places = [(_ALL, side.overall)]
        places += [(" ".join(values), of) for grouped in side.groups for values, of in grouped.groups.items()]
        for place, of in places:
            for label, metric in of.metrics.items():
                yield NamedEstimate(label, "difference", place, metric.difference)
            for name, outcomes in of.outcomes.items():
                yield NamedEstimate(name, "wins", place, outcomes.win_share)


def _overall(side: SideComparison) -> Iterator[Table]:
    of, title = side.overall, f"{side.candidate} minus {side.baseline}"
    sides = [side.baseline, side.candidate, "difference"]
    if of.metrics:
        yield Table(
            f"{title}: {of.pairs} pairs",
            ["metric", "scored", *sides],
            [[label, count(metric.scored), *_both(metric)] for label, metric in of.metrics.items()],
        )
    if any(any(metric.empty) for metric in of.metrics.values()):
        filled = {label: (metric.empty_as_wrong, metric.empty) for label, metric in of.metrics.items()}
        yield Table(
            f"{title}: empty answers as wrong",
            ["metric", "pairs", "empty", *sides],
            [
                [label, count(each.scored), Value(f"{before} and {after}"), *_both(each)]
                for label, (each, (before, after)) in filled.items()
            ],
        )
    yield Table(
        f"Which answer is better: {side.candidate} against {side.baseline}",
        ["chosen by", "pairs", "wins", "ties", "losses", "sign test"],
        [[name, count(outcomes.pairs), *_outcome_cells(outcomes)] for name, outcomes in of.outcomes.items()],
    )
    if (orders := side.orders) is not None:
        judge = next(name for name in of.outcomes if name not in of.metrics)
        agree = estimated(orders.consistency).beside(str(orders.consistent))
        yield Table(
            "The judge's verdicts with either answer first",
            ["chosen by", "pairs", "both orders agree", "share for the first answer minus share for the second"],
            [[judge, count(orders.pairs), agree, estimated(orders.position_bias)]],
        )
    if any(metric.verdicts for metric in of.metrics.values()):
        yield Table(
            f"{title}: answers called right",
            ["metric", "pairs", *sides, *_discordant(side)],
            [
                [label, count(metric.verdicts.pairs), *_both(metric.verdicts), *_discordant_cells(metric.verdicts)]
                for label, metric in of.metrics.items()
                if metric.verdicts is not None
            ],
        )


def _both(of: MetricDifference | EmptyAsWrong | VerdictDifference) -> list[Value]:
    return [estimated(of.baseline), estimated(of.candidate), differing(of.difference)]


def _discordant(side: SideComparison) -> list[str]:
    return [f"only {side.baseline}", f"only {side.candidate}", "McNemar"]


def _discordant_cells(verdicts: VerdictDifference) -> list[Value]:
    return [count(verdicts.only_baseline), count(verdicts.only_candidate), p_value(verdicts.p_value)]


def _outcome_cells(outcomes: Outcomes) -> list[Value]:
    shares = (outcomes.win_share, outcomes.tie_share, outcomes.loss_share)
    counts = (outcomes.wins, outcomes.ties, outcomes.losses)
    cells = [estimated(share).beside(str(number)) for share, number in zip(shares, counts, strict=True)]
    return [*cells, p_value(outcomes.p_value)]


def _by_group(side: SideComparison, grouped: GroupedStatistics, names: Sequence[str]) -> Iterator[Table]:
    if not grouped.groups:
        return
    for name in names:
        yield Table(
            f"{side.candidate} minus {side.baseline} by {' and '.join(grouped.columns)}: {name}",
            [*grouped.columns, "pairs", *_heads(side, name)],
            [
                [*values, count(of.pairs), *_group_cells(of, side.overall, name)]
                for values, of in grouped.groups.items()
            ],
            heads=len(grouped.columns),
        )


def _heads(side: SideComparison, name: str) -> list[str]:
    metric = side.overall.metrics.get(name)
    scores = [side.baseline, side.candidate, "difference"] if metric else []
    verdicts = _discordant(side) if metric and metric.verdicts else []
    return [*scores, "wins", "ties", "losses", "sign test", *verdicts]


def _group_cells(of: PairComparison, overall: PairComparison, name: str) -> Iterator[Value]:
    metric, whole = of.metrics.get(name), overall.metrics.get(name)
    if metric is not None:
        yield from _both(metric)
    yield from _outcome_cells(of.outcomes[name])
    if metric is not None and whole is not None and whole.verdicts is not None:
        yield from [Value("-")] * 3 if metric.verdicts is None else _discordant_cells(metric.verdicts)


def _changed(side: SideComparison, names: Sequence[str], *, characters: int) -> Iterator[Table]:
    for name in names:
        if (changed := side.changed.get(name)) is None:
            continue
        for title, rows in changed.items():
            if rows:
                shown = any(row.baseline_answer or row.candidate_answer for row in rows)
                answers = [f"answer of {side.baseline}", f"answer of {side.candidate}"] if shown else []
                yield Table(
                    f"Rows that {title} most by {name}",
                    ["id", side.baseline, side.candidate, "difference", "question", *answers],
                    [_changed_cells(row, characters)[: 5 + len(answers)] for row in rows],
                )


def _changed_cells(row: ChangedRow, characters: int) -> list[Value | str]:
    return [
        one_line(row.id, characters),
        measured(row.baseline_score),
        measured(row.candidate_score),
        Value(f"{row.difference:+.3f}", row.difference),
        *(one_line(text, characters) for text in (row.question, row.baseline_answer, row.candidate_answer)),
    ]


def one_line(text: str, characters: int) -> str:
    """Return the text on one line, cut to `characters` characters with an ellipsis."""
    line = " ".join(text[: 8 * characters].split())
    return line if len(line) <= characters and len(text) <= 8 * characters else f"{line[: characters - 1]}…"


def difference_table(side: SideComparison) -> Table | None:
    """Return a table of differences between the manifests, or None if they do not differ."""
    if not side.differences:
        return None
    return Table(
        "Differences besides the answers",
        ["", side.baseline, side.candidate],
        [[each.fact, each.baseline or "-", each.candidate or "-"] for each in side.differences],
    )


# Maximum numbers of changed rows, characters in each text, and lines in a table. The page uses the first row of limits
# that makes it small enough.
_AMOUNTS: Final = ((25, 1200, 400), (10, 600, 200), (5, 300, 60), (0, 0, 20))
_REFERENCES: Final = 5
_LINE_CHARACTERS: Final = 2000
_VERDICTS: Final = {True: "right", False: "wrong", None: ""}


def comparison_pages(
    result: CompareResult, source: str, incomplete: Sequence[str], conditions: Sequence[CheckedCondition]
) -> Iterator[Page]:
    """Yield versions of the page, largest first. `incomplete` holds the sentences about missing rows."""
    base = name_of(result.sides[0].baseline)
    for rows, characters, lines in _AMOUNTS:
        yield Page(
            title=f"Comparison: {cut(source, _LINE_CHARACTERS)}",
            heading=("Comparison with ", base),
            lead=(ShownText(cut(source, _LINE_CHARACTERS)), f", {today()}: ", *_candidates(result)),
            first=[
                *(Paragraph((ShownText(cut(each, _LINE_CHARACTERS)),), "holds") for each in incomplete),
                *(
                    Paragraph(
                        (ShownText(cut(str(each), _LINE_CHARACTERS)),), "holds" if each.holds or each.problem else ""
                    )
                    for each in conditions
                ),
            ],
            sections=[
                *(
                    Section(
                        f"side-{place}",
                        (name_of(side.candidate), " against ", base),
                        list(_side(side, result.chooser, place, rows=rows, characters=characters, lines=lines)),
                        link=(name_of(side.candidate),),
                    )
                    for place, side in enumerate(result.sides, 1)
                ),
                _reproduce(result),
            ],
        )


def _candidates(result: CompareResult) -> Iterator[str | ShownText]:
    for place, side in enumerate(result.sides):
        yield from ((", ",) if place else ())
        yield name_of(side.candidate)
        yield f" on {side.overall.pairs:,} questions"


def _side(  # noqa: PLR0913 - the values, and limits on their number
    side: SideComparison, chooser: str, place: int, *, rows: int, characters: int, lines: int
) -> Iterator[Block]:
    yield Charts([_outcomes(side)], "wide")
    for number_, table in enumerate(_value_tables(side, list(side.overall.outcomes)), 1):
        yield ShownTable(f"t-{place}-{number_}", _first(table, lines))
    if (differences := difference_table(side)) is not None:
        yield Heading(("Differences besides the answers",))
        yield ShownTable(f"t-differences-{place}", _first(differences, lines))
    by = chooser if chooser in side.changed else next(iter(side.changed), "")
    if (changed := side.changed.get(by)) is None:
        return
    for title, listed in changed.items():
        if listed and rows:
            yield Heading((f"Rows that {title} most by ", name_of(by)))
            yield from (_card(row, side, characters) for row in listed[:rows])


def _first(table: Table, most: int) -> Table:
    if len(table.rows) <= most:
        return table
    note = f"The first {most:,} of {len(table.rows):,} rows are shown."
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


def _reproduce(result: CompareResult) -> Section:
    baseline = result.sides[0].baseline
    chooser = ", ".join(str(value) if name == "by" else f"{name} {value}" for name, value in result.identity.items())
    how = (
        "Better answers are chosen by ",
        Code(cut(chooser, _LINE_CHARACTERS)),
        ". Differences are a candidate's value minus the value of ",
        name_of(baseline),
        ", on the questions for which both have a score.",
    )
    lines = page.lines(result.manifests[baseline].lines.items())
    return Section(
        "reproduce",
        title=("Reproduce",),
        blocks=[Paragraph(how), *page.notes(value_notes(result)), lines],
    )
