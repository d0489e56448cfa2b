"""Files beside trained weights: the model card, the recipe, the curve, the metadata."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradewire_train.encoder import TrainedEncoder
from gradewire_train.examples import GROUPS, Example
from gradewire_train.recipes import Recipe, recipe_text
from gradewire_train.run.steps import Outcome
from gradewire_train.selection import MEAN

METADATA_FILE = "gradewire.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What the card says of a training besides its recipe.

    Attributes:
        data_sha256: `examples_digest` of the examples.
        dev: Number, file and digest of the dev rows; "" without.
        options: The command's options besides the recipe: of the texts and of the dev rows.
        versions: Of the packages that computed it.
        files: Names of the user's files that were read, with their SHA-256.
    """

    examples: Sequence[Example]
    data_sha256: str
    outcome: Outcome
    dev: str = ""
    options: str = ""
    versions: Mapping[str, str]
    files: Mapping[str, str]


def write_account(directory: Path, encoder: TrainedEncoder, recipe: Recipe, account: Account) -> None:
    """Writes README.md, recipe.toml, curve.jsonl and the metadata that ``gradewire models build --adapter`` reads."""
    (directory / "README.md").write_text(card(encoder, recipe, account), encoding="utf-8")
    (directory / "recipe.toml").write_text(recipe_text(recipe), encoding="utf-8")
    # JSON has no NaN: a part of the dev rows that cannot be ranked has no figure.
    rows = [
        {name: None if math.isnan(value) else value for name, value in row.items()} for row in account.outcome.curve
    ]
    curve = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    (directory / "curve.jsonl").write_text(curve, encoding="utf-8")
    metadata = {
        "base": encoder.base.name,
        "base_sha256": encoder.base.weights_sha256,
        "data_sha256": account.data_sha256,
        "licence": encoder.base.licence,
        "max_tokens": recipe.training.max_tokens,
        "recipe_sha256": recipe.digest,
        "text_form": "sfve",
    }
    (directory / METADATA_FILE).write_text(json.dumps(metadata, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def card(encoder: TrainedEncoder, recipe: Recipe, account: Account) -> str:
    """The model card, in Markdown; nothing in it but the figures differs between two runs of one recipe."""
    counts = Counter(example.task for example in account.examples)
    tasks = [
        f"| {group} | {task} | {counts[task]} |" for group, names in GROUPS.items() for task in names if counts[task]
    ]
    kind = "a low-rank adapter" if recipe.training.method == "adapter" else "all weights"
    licence = encoder.base.licence or "unknown"
    return "\n".join(
        [
            "---",
            f"license: {licence.lower()}",
            f"base_model: {encoder.base.origin}",
            "---",
            f"# SFVE on {encoder.base.name}: {kind}",
            "",
            'An encoder for the metric `sfve` of gradewire: the cosine of "Question: … Answer: …" of prediction',
            f"and reference, at most {recipe.training.max_tokens} tokens. Scheme: Ji, Si, Lin et al. 2024,",
            '"Towards Flexible Evaluation for Generative Visual Question Answering".',
            "",
            f"- Base: {encoder.base.origin}, weights SHA-256 `{encoder.base.weights_sha256}`, licence {licence}",
            f"- Texts: {len(account.examples)} examples, SHA-256 `{account.data_sha256}`",
            f"- Recipe: SHA-256 `{recipe.digest}`, seed {recipe.training.seed}, {recipe.training.threads} thread(s)",
            f"- Kept: step {account.outcome.best_step} of {recipe.training.steps}",
            f"- Made by: `gradewire models train sfve --recipe recipe.toml{account.options} --out DIR`"
            + "".join(f", with {name} (SHA-256 `{sha256}`)" for name, sha256 in account.files.items()),
            f"- With: {', '.join(f'{name} {version}' for name, version in account.versions.items())}",
            "- No human label was trained on"
            + (f"; the step was selected on {account.dev}" if account.dev else "; the last step was kept"),
            "",
            "| group | task | examples |",
            "|---|---|---|",
            *tasks,
            "",
            *_figures(account),
            "## Recipe",
            "",
            "```toml",
            recipe_text(recipe).rstrip(),
            "```",
            "",
        ]
    )


def _figures(account: Account) -> list[str]:
    evaluated = [row for row in account.outcome.curve if MEAN in row]
    if not evaluated:
        return []
    names = [name for name in evaluated[0] if name.startswith(MEAN)]
    rows = [
        f"| {row['step']:.0f} | {_number(row.get('loss', math.nan))} | "
        + " | ".join(_number(row[name]) for name in names)
        + " |"
        for row in evaluated
    ]
    return [
        f"Spearman of the cosines with the labels of {account.dev}; step 0 is the base. They selected the step, so",
        "they flatter it.",
        "",
        f"| step | loss | {' | '.join(names)} |",
        "|---|---|" + "---|" * len(names),
        *rows,
        "",
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
