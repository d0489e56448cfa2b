"""Tables and charts of a leaderboard's page."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradewire.agreement import Estimate
from gradewire.ratings import ModelRating
from gradewire.report.charts import Interval, IntervalChart
from gradewire.report.figures import MINUS, UNDEFINED, Figure, count, estimated
from gradewire.report.frame import Frame
from gradewire.report.leaderboard.input import LeaderboardInput
from gradewire.report.tables import Column, Line, Table, name

_FAMILIES = 200
# Room beside the outermost intervals, of the axis.
_MARGIN = 0.04


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the win matrix; `shade` is 0 (lost all) to 10 (won all), None where the two never met."""

    text: str
    title: str
    shade: int | None


def points(estimate: Estimate) -> Figure:
    """A rating with its interval, in whole points."""
    if math.isnan(estimate.value):
        return Figure(UNDEFINED)
    low_high = "" if math.isnan(estimate.low) else f"{_whole(estimate.low)} to {_whole(estimate.high)}"
    return Figure(_whole(estimate.value), low_high, f"{estimate.value:.6g}")


def ratings(board: LeaderboardInput, names: Mapping[str, str]) -> Table:
    """The ratings, the best model first."""
    columns = [
        Column("Rank"),
        Column("Model", numeric=False),
        *([Column("Held fixed", f"rating with {' and '.join(board.controls)} held fixed")] if board.controls else []),
        Column("Bradley-Terry", "rating by maximum likelihood, on Elo's scale"),
        Column("Elo", "median over draws of the instructions, each in another order"),
        Column("Win share", "share of its matches, ties half"),
        *([Column(f"Won against {names[board.reference]}", "ties left out")] if board.reference else []),
        Column("Matches"),
        Column("Ties"),
    ]
    lines = [
        Line(
            [
                count(place),
                name(names[line.model]),
                *([points(line.controlled)] if line.controlled is not None else []),
                points(line.bradley_terry),
                points(line.elo),
                estimated(line.win_share),
                *([estimated(line.against_reference)] if board.reference else []),
                count(line.matches),
                count(line.tied),
            ]
        )
        for place, line in enumerate(_shown(board, names), 1)
    ]
    return Table("Ratings with 95 % intervals over instructions", columns, lines, heads=2)


def intervals(board: LeaderboardInput, names: Mapping[str, str]) -> IntervalChart | None:
    """The ratings that order the models, drawn; None where none is defined."""
    ruling = {
        names[line.model]: line.controlled if line.controlled is not None else line.bradley_terry
        for line in _shown(board, names)
    }
    defined = {model: each for model, each in ruling.items() if not math.isnan(each.value)}
    if not defined:
        return None
    lows = [each.value if math.isnan(each.low) else each.low for each in defined.values()]
    highs = [each.value if math.isnan(each.high) else each.high for each in defined.values()]
    margin = max(1.0, (max(highs) - min(lows)) * _MARGIN)
    title = "Rating" if not board.controls else f"Rating, {' and '.join(board.controls)} held fixed"
    frame = Frame(x_low=min(lows) - margin, x_high=max(highs) + margin, x_label=title, y_label="")
    drawn = [
        Interval(
            model,
            _whole(each.value),
            "",
            frame.x(each.value),
            *((None, None) if math.isnan(each.low) else (frame.x(each.low), frame.x(each.high))),
        )
        for model, each in defined.items()
    ]
    return IntervalChart(title, "points", frame, drawn)


def matrix(board: LeaderboardInput, names: Mapping[str, str]) -> list[tuple[str, list[Cell]]]:
    """Each model's share of the matches with each other one, in the order of the ratings."""
    shown = _shown(board, names)
    return [
        (names[line.model], [_cell(board, row, column) for column in range(len(shown))])
        for row, line in enumerate(shown)
    ]


def families(board: LeaderboardInput, names: Mapping[str, str], family_names: Mapping[str, str]) -> Iterator[Table]:
    """Ratings and win shares by family."""
    if not board.families:
        return
    shown = [line.model for line in _shown(board, names)]
    columns = [Column("Family", numeric=False), *(Column(names[model]) for model in shown)]
    left_out = len(board.families) - _FAMILIES
    note = f"The first {_FAMILIES} of {len(board.families)} families." if left_out > 0 else ""
    tables = dict(list(board.families.items())[:_FAMILIES])
    figures: dict[str, Callable[[ModelRating], Figure]] = {
        "Bradley-Terry ratings by family": lambda line: points(line.bradley_terry),
        "Win shares by family, ties half": lambda line: estimated(line.win_share),
    }
    for caption, figure in figures.items():
        lines = []
        for family, table in tables.items():
            found = {line.model: line for line in table.models}
            cells = [figure(found[model]) if model in found else Figure(UNDEFINED) for model in shown]
            lines.append(Line([name(family_names[family]), *cells]))
        yield Table(caption, columns, lines, note=note)


def biases(board: LeaderboardInput) -> Table:
    """What wins beside the answer."""
    columns = [
        Column("Answers that are", numeric=False),
        Column("Share won", "of the decided matches in which one answer is so"),
        Column("Odds", "factor by which it multiplies the odds to win, models held fixed; 1 is none"),
        Column("Matches"),
    ]
    lines = [
        Line(
            [
                name(line.name),
                estimated(line.bias.won),
                estimated(line.effect.odds) if line.effect is not None else Figure(UNDEFINED),
                Figure(f"{line.bias.matches:g}", order=f"{line.bias.matches:g}"),
            ]
        )
        for line in board.biases
        if line.bias.matches
    ]
    return Table("What wins beside the answer", columns, lines)


def people(board: LeaderboardInput) -> list[Table]:
    """Agreement with people; empty without."""
    if board.people is None:
        return []
    strata, systems = board.people
    columns = [
        Column("", numeric=False),
        *(Column(f"{each.stratum} of {each.pairs + each.failed:,} pairs") for each in strata.evaluators[0].strata),
    ]
    lines = [
        Line([name(each.evaluator), *(estimated(one.reproduced) for one in each.strata)]) for each in strata.evaluators
    ]
    ranks = {"Kendall τ-b": systems.kendall, "Spearman": systems.spearman, "Pearson": systems.pearson}
    return [
        Table("Majority votes of people that are reproduced, by how many agree", columns, lines),
        Table(
            f"Ratings by the judge and by people, {systems.models} models",
            [Column("Correlation", numeric=False), Column("Value")],
            [Line([name(each), estimated(value)]) for each, value in ranks.items()],
        ),
    ]


def _shown(board: LeaderboardInput, names: Mapping[str, str]) -> Sequence[ModelRating]:
    return [line for line in board.ratings.models if line.model in names]


def _cell(board: LeaderboardInput, row: int, column: int) -> Cell:
    won, tied, lost = (
        float(each)
        for each in (
            board.ratings.won[row, column],
            board.ratings.tied[row, column],
            board.ratings.won[column, row],
        )
    )
    played = won + tied + lost
    if row == column or not played:
        return Cell("" if row == column else UNDEFINED, "", None)
    share = (won + tied / 2) / played
    return Cell(f"{share:.2f}", f"{won:.0f} won, {tied:.0f} tied, {lost:.0f} lost", round(10 * share))


def _whole(value: float) -> str:
    return f"{value:.0f}".replace("-", MINUS)
