"""The settings of a grader's training; rows given with the command are no part of them, the card names them."""

import hashlib
import json
from dataclasses import asdict, dataclass, field

from gradewire_train.recipes.recipe import Optimisation, setting


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
