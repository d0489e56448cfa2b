"""The columns of a file to rank: lists of answers, or one answer in each row."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from gradewire._columns import ALIASES, AmbiguousColumnsError, choose_columns, columns_among, similar_columns, spelled
from gradewire._rows import is_missing, plain, unpacked_list
from gradewire.candidates import CANDIDATE_COLUMNS
from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.row import pictures_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence


_SINGLE: Final = {"answer": ALIASES["prediction"], "question_id": ALIASES["question_id"]}
"""Columns of a file with one row for each answer."""
RANK_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {**CANDIDATE_COLUMNS, **_SINGLE}
"""Columns that may contain each field. `answer` and `question_id` are read if no row has a list of answers."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of each field.

    Attributes:
        has_lists: True if a row has a list of answers, and False if it has one answer.
        mapped: Columns by field from --map.
        chosen: Columns by field that the first rows decided.
    """

    has_lists: bool
    mapped: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]], mapped: Mapping[str, str]) -> Self:
        """Choose the columns from the first rows of a file.

        Raises:
            InputError: There is no column of answers, or several columns could be it.
        """
        present = list(dict.fromkeys(column for row in rows for column in row))
        listed = f"Columns: {', '.join(map(printable, present))}"
        if "answers" in mapped and "answer" in mapped:
            raise InputError(f"{name}: --map answers reads lists and --map answer one row for each answer. Use one")
        if not rows or mapped.get("answers") in present:
            return cls(has_lists=True, mapped=mapped)
        values = _values(rows)
        if "answer" in mapped:
            if mapped["answer"] not in present:
                raise InputError(f"{name}: no column {mapped['answer']!r}. {listed}")
            if not _has_question_id(values, mapped):
                raise InputError(
                    f"{name}: no column question_id, which the rows of one question share. {listed}. Use --map "
                    "question_id=COLUMN"
                )
            return cls._of_single_answers(name, values, mapped, listed)
        found = None if "answers" in mapped else cls._of_usual_columns(name, values, mapped, listed)
        if found is None:
            raise InputError(
                f"{name}: no column with a list of answers (looked for {', '.join(RANK_COLUMNS['answers'])}). {listed}."
                " Use --map answers=COLUMN, or give one row for each answer with a column question_id"
            )
        return found

    @classmethod
    def _of_usual_columns(
        cls, name: str, values: Mapping[str, Any], mapped: Mapping[str, str], listed: str
    ) -> Self | None:
        taken = _taken(mapped)
        if ways := _ways(values, taken):
            raise InputError(f"{name}: several columns could have the answers to rank. {listed}. Use {_options(ways)}")
        is_single = _has_question_id(values, mapped) and similar_columns(RANK_COLUMNS["answer"], values, taken)
        if is_single and not _list_columns(values, taken):
            return cls._of_single_answers(name, values, mapped, listed)
        # If no value is a list, each row says so.
        return cls(has_lists=True, mapped=mapped) if similar_columns(RANK_COLUMNS["answers"], values, taken) else None

    @classmethod
    def _of_single_answers(cls, name: str, values: Mapping[str, Any], mapped: Mapping[str, str], listed: str) -> Self:
        fields = {"answer": "prediction", "references": "references"}
        given = {fields[key]: column for key, column in mapped.items() if key in fields}
        taken = _taken(mapped) - set(given.values())
        try:
            chosen = choose_columns(list(values), ("prediction",), read=("prediction",), given=given, taken=taken)
        except AmbiguousColumnsError as error:
            ways = dict.fromkeys(f"answer={choice['prediction']}" for choice in error.choices if "prediction" in choice)
            raise InputError(printable(f"{name}: {error}. {listed}. Use {_options(ways)}")) from None
        references = columns_among(list(values), "references", chosen, taken)
        return cls(has_lists=False, mapped=mapped, chosen={"answer": [chosen["prediction"]], "references": references})

    def columns(self, name: str, fields: Mapping[str, Any]) -> Sequence[str]:
        """Return a row's columns that may contain a field, the preferred column first."""
        if name in self.mapped:
            return [self.mapped[name]] if self.mapped[name] in fields else []
        if name in self.chosen:
            return [column for column in self.chosen[name] if column in fields]
        return similar_columns(RANK_COLUMNS[name], fields, _taken(self.mapped))

    def value(self, name: str, fields: Mapping[str, Any]) -> Any:
        """Return a field's first value in a row, or None."""
        values = (fields[column] for column in self.columns(name, fields))
        return next((value for value in values if not is_missing(value)), None)

    def values(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row's values by field. `images` has the pictures of all its columns, each once."""
        found = {name: self.value(name, fields) for name in CANDIDATE_COLUMNS}
        pictures = [pictures_of(fields[column]) for column in self.columns("images", fields)]
        found["images"] = tuple(dict.fromkeys(named for each in pictures for named in each))
        return found

    def problem(self, fields: Mapping[str, Any]) -> str:
        """Return why a row's list of answers cannot be read, or "". The text continues the row's position."""
        if "answers" not in self.mapped and (ways := _ways(_values([fields]), _taken(self.mapped))):
            return f" has several columns that could have the answers to rank: use {_options(ways)}"
        value = self.value("answers", fields)
        if listed_of(value) is not None:
            return ""
        if value is None:
            return f" has no list of answers (its columns: {', '.join(map(printable, fields)) or 'none'})"
        column = next(each for each in self.columns("answers", fields) if not is_missing(fields[each]))
        return f".{printable(column)} is not a list of answers: give a list of 2 to 64 strings"


def listed_of(value: Any) -> list[Any] | None:
    """Return a cell's list, or None if it has none."""
    value = plain(value)
    if isinstance(value, str):
        return unpacked_list(value)
    return list(value) if isinstance(value, list | tuple) else None


def _values(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a value of each column that has one, if possible a list."""
    found: dict[str, Any] = {}
    for row in rows:
        for column, value in row.items():
            if not is_missing(value) and value != "" and listed_of(found.get(column)) is None:
                found[column] = value if column not in found or listed_of(value) is not None else found[column]
    return found


def _taken(mapped: Mapping[str, str]) -> set[str]:
    """Return the columns that --map gives to other fields than the answers."""
    return {column for name, column in mapped.items() if name not in {"answers", "answer"}}


def _has_question_id(values: Mapping[str, Any], mapped: Mapping[str, str]) -> bool:
    named = [mapped["question_id"]] if "question_id" in mapped else similar_columns(RANK_COLUMNS["question_id"], values)
    return any(column in values for column in named)


def _list_columns(values: Mapping[str, Any], taken: Container[str]) -> list[str]:
    there = similar_columns(RANK_COLUMNS["answers"], values, taken)
    return [column for column in there if listed_of(values[column]) is not None]


def _ways(values: Mapping[str, Any], taken: set[str]) -> list[str]:
    """Return the --map values to choose from, or none if it is certain which column has the answers.

    A list `answers` may be the right answers, such as those of SQuAD. No other list of answers can be that.
    """
    lists = _list_columns(values, taken)
    may_be_gold = "answers" in map(spelled, lists)
    singles = [
        column
        for column in similar_columns(RANK_COLUMNS["answer"], values, {*taken, *lists})
        if lists and (may_be_gold or spelled(column) != "answer")
    ]
    ways = [*(f"answers={column}" for column in lists), *(f"answer={column}" for column in singles)]
    return ways if len(ways) > 1 else []


def _options(ways: Iterable[str]) -> str:
    return printable(", or ".join(f"--map {shlex.quote(way)}" for way in ways))
