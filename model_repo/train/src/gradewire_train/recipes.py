"""Recipes: the settings of a training as typed values and as TOML files."""

import hashlib
import json
import re
import tomllib
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, overload

from gradewire_train.errors import TrainingError

CHOICES = {"method": ("adapter", "full"), "precision": ("float32", "bfloat16")}
"""Settings that are one of a few words."""

_TYPE_NAMES = {int: "a whole number", float: "a number", str: "a text", tuple: "a list of texts"}

K = TypeVar("K")


def setting(default: Any, explanation: str, *, minimum: float | None = None, maximum: float | None = None) -> Any:
    """A field of a recipe, with the range of its values; the explanation is the help of the command's option."""
    return field(default=default, metadata={"help": explanation, "minimum": minimum, "maximum": maximum})


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisation:
    """How weights are optimised, whatever they are trained for."""

    base: str = setting("all-MiniLM-L6-v2", "Encoder to start from: a model of the catalog, or a folder of its files.")
    seed: int = setting(1, "Seed of everything that is drawn.", minimum=0, maximum=2**32 - 1)
    precision: str = setting(
        "float32", "bfloat16: products of matrices in it, on processors that have it 1.8 times as fast."
    )
    threads: int = setting(1, "Threads; another number may round otherwise.", minimum=1, maximum=256)
    steps: int = setting(400, "Optimiser steps.", minimum=1, maximum=10**9)
    batch_size: int = setting(64, "Examples a step (SFVE's paper: 128).", minimum=2, maximum=4096)
    learning_rate: float = setting(5e-4, "Highest learning rate (SFVE's paper, all weights: 1e-5).", minimum=0)
    warmup: float = setting(
        0.06, "Share of the steps in which the learning rate rises; then a cosine.", minimum=0, maximum=1
    )
    weight_decay: float = setting(0.01, "AdamW's weight decay.", minimum=0)
    gradient_norm: float = setting(1.0, "Gradients longer than this are cut to it; 0: never.", minimum=0)
    dropout: float = setting(
        0.0, "Dropout of the adapter's inputs, or in full training of the encoder's own.", minimum=0, maximum=0.9
    )
    rank: int = setting(16, "Rank of the adapter's matrices.", minimum=1, maximum=1024)
    alpha: float = setting(32.0, "The adapter's scale is alpha / rank.", minimum=0)
    targets: tuple[str, ...] = setting((), "Linear layers that get an adapter, by the end of their names; none: all.")
    first_layer: int = setting(0, "First layer that gets an adapter, counted from 0.", minimum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training(Optimisation):
    """How the weights of an encoder for `sfve` are optimised."""

    method: str = setting("adapter", "adapter: low-rank matrices beside the weights (PEFT's LoRA). full: all weights.")
    negatives: int = setting(2, "Hard negatives read of each example, at most.", minimum=0, maximum=16)
    max_tokens: int = setting(128, "Longest text in tokens, special tokens included.", minimum=4, maximum=8192)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is minimised (`objective.py` has the formulas)."""

    temperature: float = setting(0.05, "Temperature of the softmax over cosines.", minimum=1e-4, maximum=10)
    contrastive_weight: float = setting(1.0, "Weight of the contrastive term (SFVE, eq. 6).", minimum=0)
    ranking_weight: float = setting(
        1.0, "Weight of the term that ranks right pairs over wrong ones across questions.", minimum=0
    )
    keep_weight: float = setting(0.0, "Weight of the term that keeps the base's cosines on plain texts.", minimum=0)
    keep_texts: int = setting(32, "Plain texts a step for the keep term.", minimum=2, maximum=4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What is trained on: how many examples of each task, before `only` and `without` are looked at."""

    nli: int = setting(8000, "Examples of entailment: sentences without a question.", minimum=0)
    candidates: int = setting(8000, "Examples of candidate answers of differing detail.", minimum=0)
    synonyms: int = setting(8000, "Examples of synonyms against antonyms and siblings.", minimum=0)
    numbers: int = setting(4000, "Examples of numbers and amounts.", minimum=0)
    colours: int = setting(1000, "Examples of colours.", minimum=0)
    yes_no: int = setting(1000, "Examples of yes and no.", minimum=0)
    names: int = setting(4000, "Examples of names of people and places.", minimum=0)
    dates: int = setting(4000, "Examples of dates and years.", minimum=0)
    descriptions: int = setting(8000, "Examples of sentences around an answer.", minimum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that decides the weights, but a user's own files of texts and labelled rows, which the card names.

    Attributes:
        only: Tasks or groups to train on alone; empty: all.
        without: Tasks or groups to leave out.
    """

    training: Training = field(default_factory=Training)
    objective: Objective = field(default_factory=Objective)
    texts: Texts = field(default_factory=Texts)
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the settings, 64 hex characters."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def check_value(name: str, value: Any, spec: Any) -> Any:
    """Checks the value of a setting, a field of a dataclass, and converts it to the setting's own type.

    Raises:
        TrainingError: It is of another type, or outside its range; the message begins with `name`.
    """
    kind = type(spec.default)
    if kind is tuple and isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and number:
        value = _double(value)
    if type(value) is not kind:
        raise TrainingError(f"{name} should be {_TYPE_NAMES[kind]}, not {value!r}")
    low, high = spec.metadata["minimum"], spec.metadata["maximum"]
    # Written so that NaN, which compares with nothing, is refused.
    if number and not ((low is None or value >= low) and (high is None or value <= high) and value < float("inf")):
        span = f"at least {low}" if high is None else f"between {low} and {high}"
        raise TrainingError(f"{name} should be {span}, not {value!r}")
    words = CHOICES.get(spec.name, (value,))
    if value not in words:
        raise TrainingError(f"{name} should be {' or '.join(map(repr, words))}, not {value!r}")
    return value


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def sections(kind: type) -> dict[str, type]:
    """The tables of a kind of recipe: its fields that are dataclasses."""
    made: dict[str, Any] = {spec.name: spec.default_factory for spec in fields(kind)}
    return {name: factory for name, factory in made.items() if isinstance(factory, type) and is_dataclass(factory)}


def lists(kind: type) -> tuple[str, ...]:
    """The lists of a kind of recipe that stand in no table."""
    return tuple(spec.name for spec in fields(kind) if spec.default == ())


def specs(section: type) -> dict[str, Any]:
    """The fields of one table by name."""
    return {spec.name: spec for spec in fields(section)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderTraining(Optimisation):
    """How a grader's adapter and its head are optimised."""

    head_rate: float = setting(10.0, "Learning rate of the head, as a multiple of the adapter's.", minimum=0)

    @property
    def method(self) -> str:
        """An adapter always: the files of a grader hold no other weights."""
        return "adapter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is trained on."""

    drawn_rows: int = setting(200, "Drawn rows of each kind; 0: none.", minimum=0)
    drawn_share: float = setting(
        0.5,
        "Weight of all drawn rows beside that of the rows given, whose sources weigh the same.",
        minimum=0,
        maximum=1,
    )
    reference_count: int = setting(
        2, "References read of each row, one an epoch: those whose words the answer has most of.", minimum=1, maximum=64
    )
    unasked: float = setting(0.1, "Share of the rows that are read without their question.", minimum=0, maximum=1)
    smoothing: float = setting(
        0.05, "Labels are drawn towards the middle by so much: 1 becomes 0.95.", minimum=0, maximum=0.5
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderRecipe:
    """Everything that decides the weights, but the rows given."""

    training: GraderTraining = field(default_factory=GraderTraining)
    material: Material = field(default_factory=Material)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings, 64 hex characters."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


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
    folder = Path(__file__).with_name("recipes") / (
        "" if kind is Recipe else kind.__name__.removesuffix("Recipe").lower()
    )
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
