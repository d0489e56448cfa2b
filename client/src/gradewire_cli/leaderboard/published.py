"""Published ratings of models: printed tables by name, or a file."""

from __future__ import annotations

import json
import math
import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gradewire_cli.problems import InputError
from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.tables import Cell, Table, Value, count, estimated, points
from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Reading, printable, read_file
from gradewire_stats.ratings import PublishedRanks, published_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_stats.ratings import Matches, RatingTable

_PRINTED: Final[Mapping[str, Any]] = tomllib.loads(
    resources.files(__package__).joinpath("published.toml").read_text("utf-8")
)
_NAMES: Final = "names"
PRINTED_TABLES: Final = tuple(name for name in _PRINTED if name != _NAMES)
"""Names of the printed tables."""
_MODEL_COLUMNS: Final = ("model", "name")
_RATING_COLUMNS: Final = ("rating", "elo", "score")


def published_ratings(name: str) -> dict[str, float]:
    """Return a printed table's ratings, also by the models' names in data files, or the ratings in a file.

    A file is a JSON object with a rating for each model, or has a row for each model with the columns model (or name)
    and rating (or elo, or score), in any letter case.

    Raises:
        InputError: The file is missing or unreadable, a rating is not a finite number, or a model has two ratings.
    """
    if name in PRINTED_TABLES:
        printed = _PRINTED[name]["ratings"]
        return {each: float(printed[model]) for model in printed for each in (model, *_PRINTED[_NAMES][model])}
    ratings: dict[str, float] = {}
    for place, model, value in _rows(name):
        try:
            rating = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            rating = math.nan
        if not math.isfinite(rating):
            raise InputError(f"{name}: {place} has no rating (columns {', '.join(_RATING_COLUMNS)})")
        if ratings.setdefault(model, rating) != rating:
            raise InputError(f"{name}: {printable(model)} has two different ratings")
    return ratings


def _rows(path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield each entry's place, model and rating; raise InputError if the file cannot be read."""
    if path.lower().endswith(".json"):
        with open_bytes(path) as stream:
            try:
                document = json.loads(stream.read().decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path} is not JSON: {error}") from error
        if isinstance(document, dict) and not {"rows", "data"} & document.keys():
            yield from ((printable(str(model)), str(model), value) for model, value in document.items())
            return
    for record in read_file(path, Reading()):
        if record.fields is None:
            raise InputError(f"{path}: {record.position} {record.problem}")
        fields = {str(name).strip().lower(): value for name, value in record.fields.items()}
        model = next((str(fields[name]).strip() for name in _MODEL_COLUMNS if fields.get(name) is not None), "")
        if not model:
            raise InputError(f"{path}: {record.position} has no model (columns {', '.join(_MODEL_COLUMNS)})")
        yield record.position, model, next((fields[name] for name in _RATING_COLUMNS if name in fields), None)


def ranks_against(
    matches: Matches, names: Sequence[str], *, gap: float, resamples: int, seed: int
) -> dict[str, PublishedRanks]:
    """Compare the matches' ratings with published ratings.

    Args:
        matches: Matches of the rated models.
        names: Names of printed tables, or paths of files.
        gap: Difference above which the order of two published ratings is checked.
        resamples: Number of draws.
        seed: Seed for the draws.

    Raises:
        InputError: A file cannot be read, or contains none of the models.
    """
    found = {}
    for name in names:
        ratings = published_ratings(name)
        try:
            found[name] = published_ranks(matches, ratings, gap=gap, resamples=resamples, seed=seed)
        except ValueError as error:
            raise InputError(
                f"--published {name}: {error}. Rated are {', '.join(map(printable, matches.models))}; published are "
                f"{', '.join(map(printable, ratings)) or 'none'}"
            ) from error
    return found


def rank_tables(found: Mapping[str, PublishedRanks], gap: float) -> Iterator[Table]:
    """Yield the table of correlations with published ratings, if there are any."""
    if not found:
        return
    rows: list[list[Cell]] = [
        [
            _shown(name),
            count(len(ranks.models)),
            *map(estimated, (ranks.spearman, ranks.kendall, ranks.pearson, ranks.right)),
            _right_of_all(ranks),
        ]
        for name, ranks in found.items()
    ]
    order = f"over {gap:g} apart\nin their order"
    yield Table(
        "Correlation of Bradley-Terry ratings with published ratings",
        ["published", "models", "Spearman", "Kendall", "Pearson", order, "pairs"],
        rows,
        explained={
            order: f"share of the pairs of models whose published ratings differ by more than {gap:g}, which our "
            "ratings put into the same order"
        },
    )


def _shown(name: str) -> str:
    """Return a printed table's name, or a file's name without folders."""
    return Path(name).name


def _right_of_all(ranks: PublishedRanks) -> Value:
    right = sum(pair.is_right for pair in ranks.distant)
    return Value(f"{right} of {len(ranks.distant)}", right)


def rating_tables(found: Mapping[str, PublishedRanks], ours: RatingTable) -> Iterator[Table]:
    """Yield a table with the published ratings and our ratings for each source."""
    lines = {line.model: line for line in ours.models}
    for name, ranks in found.items():
        yield Table(
            f"Published ratings of {_shown(name)}",
            ["model", "published", "Bradley-Terry"],
            [
                [model, Value(f"{value:g}", value), points(lines[model].bradley_terry)]
                for model, value in zip(ranks.models, ranks.published, strict=True)
                if model in lines
            ],
        )


def rank_notes(found: Mapping[str, PublishedRanks]) -> list[str]:
    """Return notes on each source's origin and on the models that it has in the other order."""
    notes = []
    for name, ranks in found.items():
        if name in PRINTED_TABLES:
            notes.append(f"{name}: {_PRINTED[name]['about']}")
        wrong = [
            f"{pair.higher} and {pair.lower} ({pair.apart:g} apart)" for pair in ranks.distant if not pair.is_right
        ]
        if wrong:
            notes.append(f"{_shown(name)} has the other order for {', '.join(wrong)}")
    return notes


def rank_intervals(found: Mapping[str, PublishedRanks]) -> Iterator[NamedEstimate]:
    """Yield the intervals of the correlations, for notes on them."""
    for name, ranks in found.items():
        for head, each in (("Spearman", ranks.spearman), ("Kendall", ranks.kendall), ("Pearson", ranks.pearson)):
            yield NamedEstimate(name, head, "published", each)
