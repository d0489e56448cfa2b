"""Read and write recipes: training settings as typed values and TOML files."""

import hashlib
import json
import re
import tomllib
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from gradewire_models.catalog.table import FieldError, read_table
from gradewire_train import TrainingError

K = TypeVar("K", "Recipe", "GraderRecipe")


_CONFIG: Final = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Optimisation:
    """The optimisation settings that all training commands share."""

    base: str = Field(
        default="all-MiniLM-L6-v2",
        description="Encoder to start from: a catalog model, or a folder with an encoder's files.",
    )
    seed: int = Field(default=1, description="Seed of all random choices.", ge=0, le=2**32 - 1)
    precision: Literal["float32", "bfloat16"] = Field(
        default="float32",
        description="Type for matrix products; bfloat16 is 1.8 times as fast if the processor supports it.",
    )
    threads: int = Field(
        default=1, description="Number of threads; a different number may change the rounding.", ge=1, le=256
    )
    steps: int = Field(default=400, description="Number of optimiser steps.", ge=1, le=10**9)
    batch_size: int = Field(default=64, description="Number of examples per step (SFVE's paper: 128).", ge=2, le=4096)
    learning_rate: float = Field(
        default=5e-4, description="Maximum learning rate (SFVE's paper, all weights: 1e-5).", ge=0
    )
    warmup: float = Field(
        default=0.06,
        description="Share of the steps in which the learning rate rises.",
        ge=0,
        le=1,
    )
    weight_decay: float = Field(default=0.01, description="AdamW's weight decay.", ge=0)
    gradient_norm: float = Field(default=1.0, description="Maximum norm of the gradient; 0 means no limit.", ge=0)
    dropout: float = Field(
        default=0.0,
        description="Dropout for the adapter's inputs; with method full, for the whole encoder.",
        ge=0,
        le=0.9,
    )
    rank: int = Field(default=16, description="Rank of the adapter's matrices.", ge=1, le=1024)
    alpha: float = Field(default=32.0, description="The adapter's scale is alpha / rank.", ge=0)
    targets: tuple[str, ...] = Field(
        default=(), description="Suffixes of linear layers' names to adapt; by default all."
    )
    first_layer: int = Field(default=0, description="First layer that gets an adapter, counted from 0.", ge=0)


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Training(Optimisation):
    """The optimisation settings for an `sfve` encoder."""

    method: Literal["adapter", "full"] = Field(
        default="adapter",
        description="Train low-rank matrices (adapter, PEFT's LoRA) or all weights (full).",
    )
    negatives: int = Field(default=2, description="Maximum number of hard negatives per example.", ge=0, le=16)
    max_tokens: int = Field(default=128, description="Maximum text length in tokens.", ge=4, le=8192)
    pooling: Literal["base", "mean", "cls", "last", "pooler"] = Field(
        default="base",
        description="Pooling of token vectors into a text's vector; base keeps the base's own (RoBERTa has none).",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Objective:
    """The settings of the loss (see `objective.py` for formulas)."""

    temperature: float = Field(default=0.05, description="Temperature of the softmax over cosines.", ge=1e-4, le=10)
    contrastive_weight: float = Field(default=1.0, description="Weight of the contrastive term (SFVE, eq. 6).", ge=0)
    ranking_weight: float = Field(
        default=1.0, description="Weight of the term that ranks right pairs above wrong pairs across questions.", ge=0
    )
    keep_weight: float = Field(
        default=0.0, description="Weight of the term that keeps the base's cosines on plain texts.", ge=0
    )
    keep_texts: int = Field(default=32, description="Number of plain texts per step for the keep term.", ge=2, le=4096)


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Texts:
    """The number of examples for each task, before `only` and `without` exclude tasks."""

    nli: int = Field(default=8000, description="Number of entailment examples, which have no question.", ge=0)
    candidates: int = Field(default=8000, description="Number of examples with more or less detailed answers.", ge=0)
    synonyms: int = Field(default=8000, description="Number of examples with synonyms, antonyms and siblings.", ge=0)
    numbers: int = Field(default=4000, description="Number of examples with numbers and amounts.", ge=0)
    colours: int = Field(default=1000, description="Number of examples with colours.", ge=0)
    yes_no: int = Field(default=1000, description='Number of examples with the answer "yes" or "no".', ge=0)
    names: int = Field(default=4000, description="Number of examples with names of persons and places.", ge=0)
    dates: int = Field(default=4000, description="Number of examples with dates and years.", ge=0)
    descriptions: int = Field(default=8000, description="Number of examples with sentences around an answer.", ge=0)


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Recipe:
    """All settings that affect the weights. The user's files also affect the weights; the model card lists these files.

    `only` contains the tasks or groups to train on, and `without` contains the tasks or groups to exclude. An empty
    `only` means all tasks.
    """

    training: Training = Field(default_factory=Training)
    objective: Objective = Field(default_factory=Objective)
    texts: Texts = Field(default_factory=Texts)
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class GraderTraining(Optimisation):
    """The optimisation settings for a grader's adapter and head."""

    head_rate: float = Field(
        default=10.0, description="Learning rate of the head, as a multiple of the adapter's.", ge=0
    )
    # Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", eq. 1, with alpha = 1 - start_share.
    start_share: float = Field(
        default=0.0,
        description="Weight of the grader in --start in the mean of its weights and the trained ones, which is saved: "
        "what it knew is kept better.",
        ge=0,
        lt=1,
    )

    @property
    def method(self) -> str:
        """Always "adapter", because a grader's files contain no other encoder weights."""
        return "adapter"


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Material:
    """The settings for the rows that a grader is trained on."""

    drawn_rows: int = Field(default=200, description="Number of drawn rows of each kind.", ge=0)
    kinds: tuple[str, ...] = Field(default=(), description="Kinds of drawn rows; by default all.")
    drawn_share: float = Field(
        default=0.5,
        description="Share of the total weight that drawn rows get; the sources of your rows share the rest equally.",
        ge=0,
        le=1,
    )
    source_rows: int = Field(
        default=0, description="Maximum number of rows of each of your sources, drawn at random; 0 means all.", ge=0
    )
    counterfactual_rows: int = Field(
        default=0,
        description="Number of rows made from your rows: a right answer made wrong in one place, or a wrong one right.",
        ge=0,
    )
    reference_count: int = Field(
        default=2,
        description="References to use from each row, one per epoch; the first is the most similar to the answer.",
        ge=1,
        le=64,
    )
    unasked: float = Field(
        default=0.1, description="Share of the rows that are read without their question.", ge=0, le=1
    )
    smoothing: float = Field(
        default=0.05, description="Shift of labels towards the middle: 1 becomes 0.95.", ge=0, le=0.5
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class GraderRecipe:
    """All settings that affect the weights, besides the user's rows."""

    training: GraderTraining = Field(default_factory=GraderTraining)
    material: Material = Field(default_factory=Material)


def settings_of(kind: type[Any]) -> dict[str, FieldInfo]:
    """Return the fields of a recipe, or of one of its tables, by name."""
    found: dict[str, FieldInfo] = kind.__pydantic_fields__
    return found


def sections(kind: type) -> dict[str, type]:
    """Return a recipe's tables by name; fields that are not tables are lists of tasks."""
    made = {name: info.annotation for name, info in settings_of(kind).items()}
    return {name: table for name, table in made.items() if isinstance(table, type) and is_dataclass(table)}


def read_recipe(path: Path, kind: type[K]) -> K:
    """Read a recipe of the class `kind`; missing settings get their defaults.

    Raises:
        TrainingError: The file is not readable, or a setting is unknown or out of range.
    """
    try:
        source = path.read_text(encoding="utf-8")
        raw = tomllib.loads(source)
    # ValueError includes errors in TOML and UTF-8, and numbers with thousands of digits.
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"cannot read the recipe {path}: {error}") from error
    try:
        return read_table(kind, raw)
    except FieldError as error:
        section, _, key = error.field.rpartition(".")
        raise TrainingError(f"{_where(path, source, section, key)}: {error}") from error


def shipped_recipes(kind: type) -> dict[str, Path]:
    """Return the shipped recipes of the class `kind`, by their models' names."""
    folder = Path(__file__).with_name("recipes") / (
        "" if kind is Recipe else kind.__name__.removesuffix("Recipe").lower()
    )
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def shipped_graders() -> dict[str, Path]:
    """Return the folders of the graders that a training can start from, by name."""
    folder = Path(__file__).with_name("recipes") / "grader"
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()}


def _where(path: Path, source: str, section: str, key: str) -> str:
    # tomllib gives no line numbers for keys, so search for the key below its table's header.
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
    """Return a copy of the recipe with the settings in `given`, by name; names are unique across tables.

    Raises:
        TrainingError: A value is out of range.
    """
    tables = sections(type(recipe))
    changed: dict[str, Any] = {
        name: tuple(given[name]) for name in settings_of(type(recipe)) if name not in tables and given.get(name)
    }
    for table, kind in tables.items():
        own = {name: value for name, value in given.items() if name in settings_of(kind)}
        try:
            changed[table] = replace(getattr(recipe, table), **own)
        except ValidationError as error:
            wrong = FieldError(error, own)
            raise TrainingError(f"{option(wrong.field)} {wrong.said}") from error
    return replace(recipe, **changed)


def option(name: str) -> str:
    """Return the command's option for a setting."""
    return "--" + name.replace("_", "-")


def recipe_text(recipe: Recipe | GraderRecipe) -> str:
    """Return the recipe as TOML with all settings."""
    values = asdict(recipe)
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if not isinstance(value, dict)]
    for table in sections(type(recipe)):
        lines += ["", f"[{table}]", *(f"{name} = {_toml(value)}" for name, value in values[table].items())]
    return "\n".join(lines).lstrip() + "\n"


def recipe_digest(recipe: Recipe | GraderRecipe) -> str:
    """Return the SHA-256 of a recipe's settings, 64 hex characters."""
    values = asdict(recipe)
    # This setting is newer than the recipes of shipped models, whose digests it must not change.
    if values["training"].get("pooling") == "base":
        del values["training"]["pooling"]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _toml(value: Any) -> str:
    # TOML has JSON's syntax for numbers, strings and lists of strings, except for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
