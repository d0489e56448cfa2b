"""Recipes as TOML: read with errors that name the line, written so that they are read back as the same."""

import json
import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gradewire_train.errors import TrainingError
from gradewire_train.recipes.recipe import SECTIONS, Recipe, check_value, specs

_LISTS = ("only", "without")


def read_recipe(path: Path) -> Recipe:
    """Reads a recipe: tables [training], [objective], [texts], and the lists only and without.

    What is left out has its default.

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
    for key, value in raw.items():
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise TrainingError(f"{_where(path, source, '', key)}: {key} should be a list of tasks")
            values[key] = tuple(value)
        elif key in SECTIONS and isinstance(value, dict):
            values[key] = _section(path, source, key, value)
        else:
            known = ", ".join([*(f"[{name}]" for name in SECTIONS), *_LISTS])
            raise TrainingError(f"{_where(path, source, '', key)}: unknown {key!r}; a recipe has {known}")
    return Recipe(**values)


def shipped_recipes() -> dict[str, Path]:
    """The recipes of the catalog's trained models, by the model's name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def _section(path: Path, source: str, section: str, given: dict[str, Any]) -> Any:
    known = specs(SECTIONS[section])
    checked = {}
    for key, value in given.items():
        where = _where(path, source, section, key)
        if key not in known:
            raise TrainingError(f"{where}: [{section}] has no {key!r}; it has {', '.join(known)}")
        try:
            checked[key] = check_value(f"{section}.{key}", value, known[key])
        except TrainingError as error:
            raise TrainingError(f"{where}: {error}") from error
    return SECTIONS[section](**checked)


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


def with_settings(recipe: Recipe, given: dict[str, Any]) -> Recipe:
    """A recipe with some settings changed.

    Args:
        recipe: Where all others come from.
        given: Values by field name; names are unique over the tables.

    Raises:
        TrainingError: A value is out of its range; the message names the command's option.
    """
    changed: dict[str, Any] = {name: tuple(given[name]) for name in _LISTS if given.get(name)}
    for section, kind in SECTIONS.items():
        known = specs(kind)
        own = {name: given[name] for name in known if name in given}
        checked = {name: check_value(option(name), value, known[name]) for name, value in own.items()}
        changed[section] = replace(getattr(recipe, section), **checked)
    return replace(recipe, **changed)


def option(name: str) -> str:
    """The command's option of a setting."""
    return "--" + name.replace("_", "-")


def recipe_text(recipe: Recipe) -> str:
    """The recipe as TOML, every setting in it."""
    lines = [f"{name} = {_toml(getattr(recipe, name))}" for name in _LISTS]
    for section in SECTIONS:
        values = asdict(getattr(recipe, section))
        lines += ["", f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    # Numbers, texts and lists of texts are written in TOML as in JSON, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
