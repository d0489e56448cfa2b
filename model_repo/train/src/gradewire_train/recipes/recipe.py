"""The settings of a training: two runs of a recipe on the same texts are equal bit for bit on one kind of machine.

Labelled rows that select a step, and how often they are evaluated, are no part of a recipe; the card names them.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

from gradewire_train.errors import TrainingError

CHOICES = {"method": ("adapter", "full"), "precision": ("float32", "bfloat16")}
"""Settings that are one of a few words."""


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


SECTIONS: dict[str, type] = {"training": Training, "objective": Objective, "texts": Texts}
"""The tables of a recipe's file."""


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
        raise TrainingError(f"{name} should be {_KINDS[kind]}, not {value!r}")
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


_KINDS = {int: "a whole number", float: "a number", str: "a text", tuple: "a list of texts"}


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
