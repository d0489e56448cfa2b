"""A leaderboard's HTML page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gradewire_cli.leaderboard.output import biases, group_tables, people, ratings, win_matrix
from gradewire_cli.leaderboard.published import rank_tables, rating_tables
from gradewire_cli.leaderboard.reading import INCONSISTENT, OK, JudgedPair
from gradewire_cli.leaderboard.verdicts import place_of, questionable
from gradewire_cli.pages import page
from gradewire_cli.pages.agreement_input import shown_names
from gradewire_cli.pages.charts import Axis, Chart, interval_chart
from gradewire_cli.pages.page import Block, Card, CardText, Charts, Code, Page, Paragraph, Section, ShownTable, today
from gradewire_cli.pages.texts import ShownText, cut, name_of, normal_form, shown, signed
from gradewire_cli.results.tables import Table, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire_cli.leaderboard.output import Leaderboard, RatingOptions
    from gradewire_stats.ratings import RatingTable

MAX_MODELS: Final = 60
# Maximum numbers of pairs and of characters per text. The page uses the first pair of limits that makes it small
# enough.
_AMOUNTS: Final = ((50, 1200), (25, 600), (10, 300), (0, 0))
_NOTE_CHARACTERS: Final = 1000
_QUESTIONABLE: Final = 1000
_GROUPS: Final = 200
_NAME_CHARACTERS: Final = 200
# Space beyond the outermost intervals, as a share of the axis.
_MARGIN: Final = 0.04
_WINNERS: Final = {"model_a": "A", "model_b": "B", "tie": "a tie", None: "no verdict"}
_WHY: Final = {INCONSISTENT: "The two orders have different winners", OK: "The judge is uncertain"}


def leaderboard_pages(
    result: Leaderboard, options: RatingOptions, notes: Sequence[str], *, source: str, by: str
) -> Iterator[Page]:
    """Yield versions of the page, largest first."""
    models, pairs = len(result.ratings.models), len(result.verdicts.rated)
    told = [f"{note[0].upper()}{note[1:]}." for note in notes if note]
    if models > MAX_MODELS:
        told.append(f"The first {MAX_MODELS} of {models} models are shown.")
    judged = [Paragraph(("Judged by ", Code(cut(by, _NOTE_CHARACTERS))), "note")] if by else []
    result, options = _shortened(result, options)
    chart = _chart(result.ratings, options)
    drawn = [Charts([chart], "wide")] if chart is not None else []
    first = ShownTable("t-ratings", ratings(result, options))
    head: list[Block] = [*judged, *page.notes(told, most=_NOTE_CHARACTERS), first, *drawn]
    matrix = ShownTable("t-wins", win_matrix(result), is_shaded=True)
    further = (
        ("published", "Published ratings", "Published", _published(result, options)),
        ("groups", "By group of instructions", "Groups", list(group_tables(result, options))),
        ("biases", "Influences besides the answer", "Biases", list(biases(result))),
        ("people", "Agreement with annotators", "Annotators", list(people(result))),
    )
    sections = [
        Section("ratings", ("Ratings",), head),
        Section("wins", ("Each model's wins against every other model",), [matrix], link=("Wins",)),
        *(_tables(name, title, link, tables) for name, title, link, tables in further if tables),
    ]
    doubtful = questionable(result.verdicts.pairs, most=_QUESTIONABLE)
    instructions = f"{result.ratings.instructions:,} instructions"
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


def _published(result: Leaderboard, options: RatingOptions) -> list[Table]:
    tables = (rank_tables(result.published, options.published_gap), rating_tables(result.published, result.ratings))
    return [table for each in tables for table in each]


def _tables(name: str, title: str, link: str, tables: Sequence[Table]) -> Section:
    blocks = [ShownTable(f"t-{name}-{number_}", table) for number_, table in enumerate(tables, 1)]
    return Section(name, (title,), blocks, link=(link,))


def _shortened(result: Leaderboard, options: RatingOptions) -> tuple[Leaderboard, RatingOptions]:
    names = shown_names([*(line.model for line in result.ratings.models), options.reference or ""])

    def of(table: RatingTable, kept: frozenset[str]) -> RatingTable:
        lines = [replace(line, model=names[line.model]) for line in table.models if line.model in kept]
        return replace(table, models=lines)

    kept = frozenset(line.model for line in result.ratings.models[:MAX_MODELS])
    shown_groups = dict(list(result.groups.items())[:_GROUPS])
    called = shown_names(shown_groups)
    tables = {called[group]: of(table, kept) for group, table in shown_groups.items()}
    reference = None if options.reference is None else names[options.reference]
    published = {
        cut(name, _NAME_CHARACTERS): replace(ranks, models=[names[model] for model in ranks.models])
        for name, ranks in result.published.items()
    }
    shown_result = replace(result, ratings=of(result.ratings, kept), groups=tables, published=published)
    return shown_result, replace(options, reference=reference)


def _chart(table: RatingTable, options: RatingOptions) -> Chart | None:
    ruling = {line.model: line.bradley_terry if line.controlled is None else line.controlled for line in table.models}
    defined = {model: each for model, each in ruling.items() if not math.isnan(each.value)}
    if not defined:
        return None
    lows = [each.value if math.isnan(each.low) else each.low for each in defined.values()]
    highs = [each.value if math.isnan(each.high) else each.high for each in defined.values()]
    margin = max(1.0, (max(highs) - min(lows)) * _MARGIN)
    name = "Rating" if not options.controls else f"Rating, {' and '.join(options.controls)} held fixed"
    axis = Axis(min(lows) - margin, max(highs) + margin)
    title = f"{name} of each model, with its 95 % interval"
    lines = {model: (each, signed(number(each.value, digits=0))) for model, each in defined.items()}
    return interval_chart(lines, axis, name, over="points", title=title)


def _questionable(pairs: Sequence[JudgedPair], most: int, characters: int) -> Section:
    about = (
        "Pairs whose two orders have different winners come first, then pairs without a verdict, then pairs with the "
        f"least certain verdicts. {len(pairs[:most])} of {len(pairs):,} are shown."
    )
    cards: list[Block] = [_card(pair, characters) for pair in pairs[:most]]
    return Section(
        "pairs", ("Questionable pairs",), [Paragraph((about,)), *(cards or [Paragraph(("No pairs shown.",))])]
    )


def _card(pair: JudgedPair, characters: int) -> Card:
    def text(name: str | ShownText, words: str, style: str = "") -> CardText:
        return CardText(name, shown(normal_form(words), max_characters=characters), style=style)

    orders = pair.orders if len(pair.orders) > 1 else ()
    probability = "" if math.isnan(pair.probability_a) else f" · probability of A {number(pair.probability_a)}"
    why = cut(_WHY.get(pair.status, f"No verdict: {pair.status}"), _NOTE_CHARACTERS) + probability
    if pair.counted is None:
        why += f" · {cut(place_of(pair), _NOTE_CHARACTERS)}"
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
