"""Renders and writes the page of a leaderboard, within its size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradewire.report.bounded import shown_names
from gradewire.report.figures import number
from gradewire.report.leaderboard import tables
from gradewire.report.leaderboard.input import LeaderboardInput, QuestionablePair
from gradewire.report.page import MAX_BYTES, ReportTooLargeError
from gradewire.report.rendering import page_assets, template_of
from gradewire.report.texts import ShownText, normal_form, shown, visible

MAX_MODELS = 60
# Pairs that are shown, and characters of each text: the first of these with which the page is small enough.
_AMOUNTS = ((50, 1200), (25, 600), (10, 300), (0, 0))
_NOTE_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class _ShownPair:
    """A questionable pair with texts that are cut and made visible."""

    why: str
    question: ShownText
    sides: Sequence[tuple[str, ShownText]]
    orders: Sequence[str]
    probability: str


def write_leaderboard(path: Path, board: LeaderboardInput) -> int:
    """Writes the page: ratings with their intervals, win matrix, families, biases, questionable pairs.

    It loads nothing, shows the first 60 models, up to 50 questionable pairs with texts cut at 1 200 characters, fewer
    where it would grow beyond 1.9 MB, and names cut at 80 characters.

    Args:
        path: File to write; one that is there is replaced.
        board: What to show.

    Returns:
        Its size, bytes.

    Raises:
        MissingJinjaError: jinja2 is not installed.
        ReportTooLargeError: It would be larger than 1.9 MB without a questionable pair.
        OSError: The file cannot be written.
    """
    page = render(board)
    path.write_bytes(page)
    return len(page)


def render(board: LeaderboardInput) -> bytes:
    """The page in UTF-8; raises as `write_leaderboard`."""
    models = [line.model for line in board.ratings.models]
    names = {model: short for model, short in shown_names(models).items() if model in models[:MAX_MODELS]}
    # The reference is named in a head even where it is not among the models that are shown.
    every_name = shown_names([*models, board.reference]) if board.reference else names
    notes = [visible(note[:_NOTE_CHARACTERS]) for note in board.notes]
    if len(models) > MAX_MODELS:
        notes.append(f"The first {MAX_MODELS} of {len(models)} models are shown.")
    template = template_of("leaderboard.html")
    content = page_assets(("common.js",), ("report.css", "leaderboard.css")) | {
        "source": visible(board.source[:_NOTE_CHARACTERS]),
        "by": visible(board.by[:_NOTE_CHARACTERS]),
        "board": board,
        "notes": notes,
        "models": len(models),
        "ratings": tables.ratings(board, names | {board.reference: every_name.get(board.reference, "")}),
        "chart": tables.intervals(board, names),
        "matrix": tables.matrix(board, names),
        "families": list(tables.families(board, names, shown_names(board.families))),
        "biases": tables.biases(board),
        "people": tables.people(board),
    }
    for most, characters in _AMOUNTS:
        pairs = [_shown(pair, characters) for pair in board.questionable[:most]]
        page = template.render(content, pairs=pairs).encode(errors="replace")
        if len(page) <= MAX_BYTES:
            return page
    raise ReportTooLargeError(f"the page would have {len(page):,} bytes without a single pair")


def _shown(pair: QuestionablePair, characters: int) -> _ShownPair:
    models = shown_names(pair.models)
    return _ShownPair(
        why=visible(pair.why[:_NOTE_CHARACTERS]),
        question=shown(normal_form(pair.question), max_characters=characters),
        sides=[
            (models[model], shown(normal_form(answer), max_characters=characters))
            for model, answer in zip(pair.models, pair.answers, strict=True)
        ],
        orders=[visible(order[:_NOTE_CHARACTERS]) for order in pair.orders],
        probability="" if math.isnan(pair.probability_a) else number(pair.probability_a),
    )
