"""The HTML page of a leaderboard."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gradewire_cli.leaderboard.reading import INCONSISTENT, OK
from gradewire_cli.leaderboard.result import biases, families, people, ratings, win_matrix
from gradewire_cli.leaderboard.verdicts import questionable
from gradewire_cli.pages import page
from gradewire_cli.pages.charts import Axis, Interval, interval_chart
from gradewire_cli.pages.page import (
    Card,
    CardText,
    Charts,
    Code,
    Page,
    Paragraph,
    Section,
    ShownTable,
    today,
    write_page_file,
)
from gradewire_cli.pages.report import shown_names
from gradewire_cli.pages.texts import ShownText, cut, name_of, normal_form, shown, signed
from gradewire_cli.results.tables import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gradewire_cli.leaderboard.reading import JudgedPair
    from gradewire_cli.leaderboard.result import Leaderboard, RatingOptions
    from gradewire_cli.pages.charts import Chart
    from gradewire_cli.pages.page import Block
    from gradewire_cli.results.tables import Table
    from gradewire_stats.ratings import RatingTable

MAX_MODELS: Final = 60
# Pairs that are shown, and characters of each text: the first of these with which the page is small enough.
_AMOUNTS: Final = ((50, 1200), (25, 600), (10, 300), (0, 0))
_NOTE_CHARACTERS: Final = 1000
_QUESTIONABLE: Final = 1000
_FAMILIES: Final = 200
# Room beside the outermost intervals, of the axis.
_MARGIN: Final = 0.04
_WINNERS: Final = {"model_a": "A", "model_b": "B", "tie": "a tie", None: "no verdict"}
_WHY: Final = {INCONSISTENT: "The two orders have different winners", OK: "The judge is not sure"}


def write_page(  # noqa: PLR0913 - what is shown, and where
    path: Path, found: Leaderboard, options: RatingOptions, notes: Sequence[str], *, source: str, by: str, quiet: bool
) -> None:
    """Write the page; raises InputError where it cannot be written."""
    pages = leaderboard_pages(found, options, notes, source=source, by=by)
    write_page_file(path, lambda: page.write_page(path, pages, without="pair"), quiet=quiet)


def leaderboard_pages(
    found: Leaderboard, options: RatingOptions, notes: Sequence[str], *, source: str, by: str
) -> Iterator[Page]:
    """Yield the page with less and less on it: ratings, win matrix, families, biases, questionable pairs."""
    models, pairs = len(found.ratings.models), len(found.verdicts.pairs)
    told = [f"{note[0].upper()}{note[1:]}." for note in notes if note]
    if models > MAX_MODELS:
        told.append(f"The first {MAX_MODELS} of {models} models are shown.")
    judged = [Paragraph(("Judged by ", Code(cut(by, _NOTE_CHARACTERS))), "note")] if by else []
    found, options = _bounded(found, options)
    chart = _chart(found.ratings, options)
    drawn = [Charts([chart], "wide")] if chart is not None else []
    first = ShownTable("t-ratings", ratings(found, options))
    head: list[Block] = [*judged, *page.notes(told, most=_NOTE_CHARACTERS), first, *drawn]
    matrix = ShownTable("t-wins", win_matrix(found), is_shaded=True)
    further = (
        ("families", "By family of instructions", "Families", list(families(found, options))),
        ("biases", "What wins beside the answer", "Biases", list(biases(found))),
        ("people", "Agreement with people", "People", list(people(found))),
    )
    sections = [
        Section(id="ratings", title=("Ratings",), blocks=head),
        Section(id="wins", title=("Wins of each model against each other one",), link=("Wins",), blocks=[matrix]),
        *(_tables(name, title, link, tables) for name, title, link, tables in further if tables),
    ]
    doubtful = questionable(found.verdicts.pairs, most=_QUESTIONABLE)
    instructions = f"{found.ratings.instructions:,} instructions"
    for most, characters in _AMOUNTS:
        yield Page(
            title=f"Leaderboard: {cut(source, _NOTE_CHARACTERS)}",
            heading=("Leaderboard",),
            lead=(
                ShownText(cut(source, _NOTE_CHARACTERS)),
                f", {today()}: {models} models, {pairs:,} judged pairs on {instructions}",
            ),
            sections=[*sections, _questionable(doubtful, most, characters)],
        )


def _tables(name: str, title: str, link: str, tables: Sequence[Table]) -> Section:
    blocks = [ShownTable(f"t-{name}-{number_}", table) for number_, table in enumerate(tables, 1)]
    return Section(id=name, title=(title,), link=(link,), blocks=blocks)


def _bounded(found: Leaderboard, options: RatingOptions) -> tuple[Leaderboard, RatingOptions]:
    """Return the first models and families alone, under names that are short and distinct."""
    names = shown_names([*(line.model for line in found.ratings.models), options.reference or ""])

    def of(table: RatingTable, kept: frozenset[str]) -> RatingTable:
        lines = [replace(line, model=names[line.model]) for line in table.models if line.model in kept]
        return replace(table, models=lines)

    kept = frozenset(line.model for line in found.ratings.models[:MAX_MODELS])
    shown_families = dict(list(found.families.items())[:_FAMILIES])
    called = shown_names(shown_families)
    tables = {called[family]: of(table, kept) for family, table in shown_families.items()}
    reference = None if options.reference is None else names[options.reference]
    return replace(found, ratings=of(found.ratings, kept), families=tables), replace(options, reference=reference)


def _chart(table: RatingTable, options: RatingOptions) -> Chart | None:
    """Return the ratings that order the models, drawn; None where none is defined."""
    ruling = {line.model: line.bradley_terry if line.controlled is None else line.controlled for line in table.models}
    defined = {model: each for model, each in ruling.items() if not math.isnan(each.value)}
    if not defined:
        return None
    lows = [each.value if math.isnan(each.low) else each.low for each in defined.values()]
    highs = [each.value if math.isnan(each.high) else each.high for each in defined.values()]
    margin = max(1.0, (max(highs) - min(lows)) * _MARGIN)
    name = "Rating" if not options.controls else f"Rating, {' and '.join(options.controls)} held fixed"
    lines = [
        Interval(model, each.value, each.low, each.high, signed(number(each.value, digits=0)))
        for model, each in defined.items()
    ]
    axis = Axis(min(lows) - margin, max(highs) + margin)
    return interval_chart(lines, axis, name, over="points", title=f"{name} of each model, with its 95 % interval")


def _questionable(pairs: Sequence[JudgedPair], most: int, characters: int) -> Section:
    about = (
        "Pairs whose two orders got different winners, then those without a verdict, then those on which the judge is "
        f"least sure. {len(pairs[:most])} of {len(pairs):,} are shown."
    )
    cards: list[Block] = [_card(pair, characters) for pair in pairs[:most]]
    return Section(
        id="pairs",
        title=("Questionable pairs",),
        blocks=[Paragraph((about,)), *(cards or [Paragraph(("None is shown.",))])],
    )


def _card(pair: JudgedPair, characters: int) -> Card:
    def text(name: str | ShownText, words: str, style: str = "") -> CardText:
        return CardText(name, shown(normal_form(words), max_characters=characters), style=style)

    orders = pair.orders if len(pair.orders) > 1 else ()
    probability = "" if math.isnan(pair.probability_a) else f" · probability of A {number(pair.probability_a)}"
    why = cut(_WHY.get(pair.status, f"No verdict: {pair.status}"), _NOTE_CHARACTERS) + probability
    for order in orders:
        why += f" · {'A' if order.first == 'model_a' else 'B'} first: {_WINNERS[order.winner]}"
    sides = zip("AB", pair.models, pair.answers, strict=True)
    return Card(
        (why,),
        [
            *([text("Instruction", pair.question)] if pair.question else []),
            *(text(ShownText(f"{side}: {name_of(model).before}"), answer, "answer") for side, model, answer in sides),
        ],
    )
