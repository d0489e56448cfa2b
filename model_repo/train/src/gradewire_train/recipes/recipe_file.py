"""Recipes as TOML: read with errors that name the line, written so that they are read back as the same."""

import json
import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar, overload

from gradewire_train.errors import TrainingError
from gradewire_train.recipes.recipe import Recipe, check_value, lists, sections, specs

K = TypeVar("K")


@overload
def read_recipe(path: Path) -> Recipe: ...
@overload
def read_recipe(path: Path, kind: type[K]) -> K: ...
def read_recipe(path: Path, kind: type[Any] = Recipe) -> Any:
    """Reads a recipe: of an encoder for `sfve`, tables [training], [objective], [texts], lists only and without.

    What is left out has its default.

    Args:
        path: The file.
        kind: The dataclass of the recipe; its tables and lists are what the file may have.

    Raises:
        TrainingError: The file cannot be read, or holds something that is unknown or out of its range; the message
            names file, line and field.
    """
    try:
        source = path.read_text(encoding="utf-8")
        raw = tomllib.loads(source)
    # A number of thousands of digits is a ValueError, and so are TOML's own errors and those of UTF-8.
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"cannot read the recipe {path}: {error}") from error
    values: dict[str, Any] = {}
    tables = sections(kind)
    for key, value in raw.items():
        if key in lists(kind):
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise TrainingError(f"{_where(path, source, '', key)}: {key} should be a list of tasks")
            values[key] = tuple(value)
        elif key in tables and isinstance(value, dict):
            values[key] = _section(path, source, key, value, tables[key])
        else:
            known = ", ".join([*(f"[{name}]" for name in tables), *lists(kind)])
            raise TrainingError(f"{_where(path, source, '', key)}: unknown {key!r}; a recipe has {known}")
    return kind(**values)


def shipped_recipes(kind: type = Recipe) -> dict[str, Path]:
    """The recipes of the catalog's trained models that are of a kind, by the model's name."""
    folder = Path(__file__).parent / ("" if kind is Recipe else kind.__name__.removesuffix("Recipe").lower())
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def _section(path: Path, source: str, section: str, given: dict[str, Any], kind: type) -> Any:
    known = specs(kind)
    checked = {}
    for key, value in given.items():
        where = _where(path, source, section, key)
        if key not in known:
            raise TrainingError(f"{where}: [{section}] has no {key!r}; it has {', '.join(known)}")
        try:
            checked[key] = check_value(f"{section}.{key}", value, known[key])
        except TrainingError as error:
            raise TrainingError(f"{where}: {error}") from error
    return kind(**checked)


def _where(path: Path, source: str, section: str, key: str) -> str:
    # The reader of the standard library gives no lines, so the key is looked for again, below its table's head.
    inside = ""
    for number, line in enumerate(source.splitlines(), 1):
        head = re.match(r"\s*\[+\s*([^\]\s]+)\s*\]+", line)
        if head:
            inside = head[1]
            if not section and inside == key:
                return f"{path}, line {number}"
        elif inside == section and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return f"{path}, line {number}"
    return str(path)


def with_settings(recipe: K, given: dict[str, Any]) -> K:
    """A recipe with some settings changed.

    Args:
        recipe: Where all others come from.
        given: Values by field name; names are unique over the tables.

    Raises:
        TrainingError: A value is out of its range; the message names the command's option.
    """
    changed: dict[str, Any] = {name: tuple(given[name]) for name in lists(type(recipe)) if given.get(name)}
    for section, kind in sections(type(recipe)).items():
        known = specs(kind)
        own = {name: given[name] for name in known if name in given}
        checked = {name: check_value(option(name), value, known[name]) for name, value in own.items()}
        changed[section] = replace(getattr(recipe, section), **checked)
    return replace(recipe, **changed)  # type: ignore[type-var]


def option(name: str) -> str:
    """The command's option of a setting."""
    return "--" + name.replace("_", "-")


def recipe_text(recipe: Any) -> str:
    """The recipe as TOML, every setting in it."""
    lines = [f"{name} = {_toml(getattr(recipe, name))}" for name in lists(type(recipe))]
    for section in sections(type(recipe)):
        values = asdict(getattr(recipe, section))
        lines += ["", f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in values.items())]
    return "\n".join(lines).lstrip() + "\n"


def _toml(value: Any) -> str:
    # Numbers, texts and lists of texts are written in TOML as in JSON, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
