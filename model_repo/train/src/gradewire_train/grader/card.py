"""What decides the weights of a grader, as one digest."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gradewire_models.repository.grader_input import MAX_TOKENS
from gradewire_train.encoder import Base
from gradewire_train.grader.rows import DRAWN, GraderRow, rows_digest
from gradewire_train.recipes import GraderRecipe, recipe_text
from gradewire_train.run.card import METADATA_FILE
from gradewire_train.run.steps import Outcome


def identity(recipe: GraderRecipe, base_sha256: str, rows: Sequence[GraderRow]) -> str:
    """Digest of the recipe, the base's weights and the rows: only a training of the same goes on from a checkpoint."""
    parts = ["grader", asdict(recipe), base_sha256, rows_digest(rows)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What the card says of a training besides its recipe.

    Attributes:
        rows: What was trained on.
        temperature: Logits are divided by it before they are probabilities.
        temperature_from: What it was read on; "" where it was not fitted.
        outcome: How the training ended.
        options: The command's options besides the recipe.
        versions: Of the packages that computed it.
        files: Names of the files of rows, with their SHA-256.
    """

    rows: Sequence[GraderRow]
    temperature: float
    temperature_from: str
    outcome: Outcome
    options: str
    versions: Mapping[str, str]
    files: Mapping[str, str]


def write_account(directory: Path, base: Base, recipe: GraderRecipe, account: Account) -> None:
    """Writes README.md, recipe.toml, curve.jsonl and the metadata that ``gradewire models build --adapter`` reads."""
    (directory / "README.md").write_text(card(base, recipe, account), encoding="utf-8")
    (directory / "recipe.toml").write_text(recipe_text(recipe), encoding="utf-8")
    curve = "".join(json.dumps(row, allow_nan=False) + "\n" for row in account.outcome.curve)
    (directory / "curve.jsonl").write_text(curve, encoding="utf-8")
    metadata = {
        "base": base.name,
        "base_sha256": base.weights_sha256,
        "data_sha256": rows_digest(account.rows),
        "licence": base.licence,
        "max_tokens": MAX_TOKENS,
        "recipe_sha256": recipe.digest,
        "temperature": account.temperature,
        "text_form": "grader",
    }
    (directory / METADATA_FILE).write_text(json.dumps(metadata, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def card(base: Base, recipe: GraderRecipe, account: Account) -> str:
    """The model card, in Markdown; nothing in it differs between two runs of one recipe."""
    licence = base.licence or "unknown"
    sources = Counter(row.source for row in account.rows)
    kinds = Counter(row.kind for row in account.rows if row.source == DRAWN)
    made = "".join(f", with {name} (SHA-256 `{sha256}`)" for name, sha256 in account.files.items())
    fitted = f", fitted on {account.temperature_from}" if account.temperature_from else ""
    return "\n".join(
        [
            "---",
            f"license: {licence.lower()}",
            f"base_model: {base.origin}",
            "---",
            f"# A grader on {base.name}",
            "",
            "A cross-encoder for the metric `grader` of gradewire: it reads question, reference and answer together,",
            f"at most {MAX_TOKENS} tokens, and gives the logit of the answer being right. A low-rank adapter on the",
            "base's linear layers, and one linear layer over the mean of its tokens.",
            "",
            f"- Base: {base.origin}, weights SHA-256 `{base.weights_sha256}`, licence {licence}",
            f"- Rows: {len(account.rows)}, SHA-256 `{rows_digest(account.rows)}`",
            f"- Recipe: SHA-256 `{recipe.digest}`, seed {recipe.training.seed}, {recipe.training.threads} thread(s)",
            f"- Temperature: {account.temperature:g}{fitted}",
            f"- Made by: `gradewire models train grader --recipe recipe.toml{account.options} --out DIR`{made}",
            f"- With: {', '.join(f'{name} {version}' for name, version in account.versions.items())}",
            "- The last step was kept",
            "",
            "| source | rows |",
            "|---|---|",
            *(f"| {source} | {count} |" for source, count in sorted(sources.items())),
            "",
            *([f"Drawn rows are of {len(kinds)} kinds: {', '.join(kinds)}.", ""] if kinds else []),
            "## Recipe",
            "",
            "```toml",
            recipe_text(recipe).rstrip(),
            "```",
            "",
        ]
    )
