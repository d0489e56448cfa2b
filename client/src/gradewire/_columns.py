"""Usual names of a row's columns, and the choice of the columns that contain references and predictions."""

import itertools
import re
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id",),
    "question": ("question", "query", "user_input", "problem"),
    "references": (
        "references",
        "reference",
        "answers",
        "golden_answer",
        "golden_answers",
        "gold_answer",
        "gold_answers",
        "gold",
        "ground_truth",
        "ground_truths",
        "gt",
        "gts",
        "target",
        "targets",
        "expected",
        "expected_answer",
        "expected_output",
        "reference_answer",
        "reference_answers",
        "reference_output",
        "reference_outputs",
        "correct_answer",
        "correct_answers",
        "possible_answers",
        "ideal",
        "solution",
        "answer",
    ),
    "prediction": (
        "prediction",
        "predictions",
        "pred",
        "response",
        "candidate",
        "model_answer",
        "model_output",
        "model_response",
        "predicted_answer",
        "generated_answer",
        "generated_text",
        "actual_output",
        "output",
        "outputs",
        "completion",
        "answer",
    ),
    "answer_a": ("answer_a", "response_a"),
    "answer_b": ("answer_b", "response_b"),
    "synthetic_answers": ("synthetic_answers", "syn_ans"),
    "caption": ("caption",),
    "captions": ("captions",),
    "choices": ("choices",),
    "answerable": ("answerable",),
    "group": ("group", "family", "dataset"),
    "label": ("label", "human_score"),
    "labels": ("labels", "annotations"),
    "flags": ("flags",),
    "error_class": ("error_class",),
    "question_id": ("question_id",),
    "image": ("image_id", "image", "images"),
    "dataset": ("dataset", "group"),
    "model": ("model",),
}
"""Possible column names of a field. Only `references` and `prediction` share a name: see `choose_columns`."""

CHOSEN_FIELDS: Final = ("references", "prediction")
"""Fields whose column must be certain, because a wrong column gives wrong scores without an error."""
CONTENT_FIELDS: Final = (
    "question",
    *CHOSEN_FIELDS,
    "answer_a",
    "answer_b",
    "synthetic_answers",
    "caption",
    "captions",
    "choices",
    "answerable",
    "label",
    "labels",
)
"""Fields of which no two can have the same column."""

SHARED_NAMES: Final = tuple(name for name in ALIASES["references"] if name in ALIASES["prediction"])
"""Column names that mean the references in some files, and the prediction in others."""
NO_COLUMNS: Final[Mapping[str, str]] = {}
_BETWEEN_WORDS: Final = re.compile(r"[\s_-]+")
_LAYOUTS: Final = 256
"""Number of layouts whose columns are remembered. Usually, all rows of a data set have the same keys."""


class AmbiguousColumnsError(ValueError):
    """Raised when several columns could contain the references or the prediction.

    Attributes:
        choices: All possible choices, as columns by field.
    """

    def __init__(self, choices: Sequence[Mapping[str, str]]) -> None:
        self.choices = choices
        fields: dict[str, list[str]] = {}
        for field, column in sorted({pair for choice in choices for pair in choice.items()}, key=_by_field):
            fields.setdefault(column, []).append(f"the {field}")
        super().__init__(", ".join(f"{column} could be {' or '.join(fields[column])}" for column in fields))


def _by_field(pair: tuple[str, str]) -> tuple[int, int]:
    field, column = pair
    names = [spelled(name) for name in ALIASES[field]]
    return CHOSEN_FIELDS.index(field), names.index(spelled(column)) if spelled(column) in names else -1


def spelled(name: object) -> str:
    """Return a column's name without case, blanks, hyphens and underscores: "Ground Truth" is ground_truth."""
    return _BETWEEN_WORDS.sub("", str(name)).casefold()


def similar_columns(names: Iterable[str], present: Iterable[str], taken: Container[str] = ()) -> list[str]:
    """Return the columns with these names, in the order of the names.

    Of several columns whose names are spelled alike, return the one that is spelled like the name, or the first.
    """
    alike: dict[str, list[str]] = {}
    for column in present:
        if column not in taken:
            alike.setdefault(spelled(column), []).append(column)
    found = ((name, alike.get(spelled(name), ())) for name in names)
    return [name if name in columns else columns[0] for name, columns in found if columns]


def choose_columns(
    present: Sequence[str],
    wanted: Container[str],
    *,
    read: Container[str] = CHOSEN_FIELDS,
    given: Mapping[str, str] = NO_COLUMNS,
    taken: Container[str] = (),
) -> dict[str, str]:
    """Return the columns of the references and of the prediction, without a field that has no column.

    A column with the field's own name is certain. A column `answer` contains what no other column could contain. It
    has no field if it could contain both.

    Args:
        present: All columns of a row.
        wanted: Fields that are needed. A choice with more of them is better.
        read: Fields that are read. The column of another field may be unclear.
        given: Columns by field that are certain.
        taken: Columns of other fields.

    Raises:
        AmbiguousColumnsError: Several choices are equally good.
    """
    possible = [_possible(field, present, taken, given.get(field)) for field in CHOSEN_FIELDS]
    best: list[dict[str, str]] = []
    most = (-1, -1)
    for columns in itertools.product(*possible):
        choice = {field: column for field, column in zip(CHOSEN_FIELDS, columns, strict=True) if column is not None}
        filled = sum(field in wanted for field in choice), len(choice)
        if len(set(choice.values())) == len(choice) and filled >= most:
            best = [*(best if filled == most else ()), choice]
            most = filled
    unclear = {field for field in CHOSEN_FIELDS if len({choice.get(field) for choice in best}) > 1}
    if any(field in read for field in unclear) and len({each for choice in best for each in choice.values()}) > 1:
        raise AmbiguousColumnsError(best)
    return {field: column for field, column in best[0].items() if field not in unclear}


def _possible(field: str, present: Sequence[str], taken: Container[str], given: str | None) -> list[str | None]:
    if given is not None:
        return [given]
    columns = similar_columns(ALIASES[field], present, taken)
    if columns and spelled(columns[0]) == field:
        return [columns[0]]
    return [*columns, None]


@lru_cache(maxsize=_LAYOUTS)
def key_columns(keys: tuple[Hashable, ...], names: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return the keys of a mapping that may contain each of the fields `names`, the preferred key first.

    Raises:
        AmbiguousColumnsError: Several keys could contain the references or the prediction.
    """
    present = [key for key in keys if isinstance(key, str)]
    chosen = choose_columns(present, names, read=names) if not set(names).isdisjoint(CHOSEN_FIELDS) else {}
    return {name: columns_among(present, name, chosen) for name in names}


def columns_among(
    present: Sequence[str], name: str, chosen: Mapping[str, str], taken: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the columns that may contain a field, the preferred column first. `chosen` is from `choose_columns`."""
    if name not in CHOSEN_FIELDS:
        return tuple(similar_columns(ALIASES[name], present))
    if name not in chosen:
        return ()
    if name == "prediction":
        return (chosen[name],)
    # Concatenated tables have several columns of references, of which each row fills one.
    others = similar_columns(
        (alias for alias in ALIASES[name] if alias not in SHARED_NAMES), present, {*taken, *chosen.values()}
    )
    return (chosen[name], *others)
