"""What decides the weights of a grader, as one digest."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict

from gradewire_train.grader.rows import GraderRow, rows_digest
from gradewire_train.recipes.grader_recipe import GraderRecipe


def identity(recipe: GraderRecipe, base_sha256: str, rows: Sequence[GraderRow]) -> str:
    """Digest of the recipe, the base's weights and the rows: only a training of the same goes on from a checkpoint."""
    parts = ["grader", asdict(recipe), base_sha256, rows_digest(rows)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
