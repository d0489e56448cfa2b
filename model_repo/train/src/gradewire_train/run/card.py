"""Write the files that accompany trained weights: model card, recipe, curve and metadata."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gradewire_models.catalog.entries import ADAPTER_METADATA
from gradewire_train.encoder import Base
from gradewire_train.examples import GROUPS, Example
from gradewire_train.recipes import GraderRecipe, Recipe, recipe_digest, recipe_text
from gradewire_train.run.steps import Outcome
from gradewire_train.selection import MEAN
from gradewire_train.texts import examples_digest

_PACKAGES = ("gradewire", "torch", "transformers", "peft", "tokenizers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The contents of a model card that depend on the command.

    Attributes:
        about: The heading and the lines below it.
        setting: The list item after the recipe's digest: the kept step, or the temperature.
        tables: The lines before the recipe.
        options: The command's options except --recipe and --out, with a blank before each option.
        files: SHA-256 of the user's files, by name.
    """

    command: str
    about: Sequence[str]
    data: str
    setting: str
    remark: str
    tables: Sequence[str]
    metadata: Mapping[str, Any]
    options: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def write_account(
    directory: Path, base: Base, recipe: Recipe | GraderRecipe, account: Account, curve: Sequence[Mapping[str, float]]
) -> None:
    """Write README.md, recipe.toml, curve.jsonl and the metadata for ``gradewire models build --adapter``."""
    (directory / "README.md").write_text(_card(base, recipe, account), encoding="utf-8")
    (directory / "recipe.toml").write_text(recipe_text(recipe), encoding="utf-8")
    # JSON has no NaN, which is the value for a part that cannot be ranked.
    rows = [{name: None if math.isnan(value) else value for name, value in row.items()} for row in curve]
    lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    (directory / "curve.jsonl").write_text(lines, encoding="utf-8")
    metadata = {
        "base": base.name,
        "base_sha256": base.weights_sha256,
        "licence": base.licence,
        "recipe_sha256": recipe_digest(recipe),
        **account.metadata,
    }
    (directory / ADAPTER_METADATA).write_text(json.dumps(metadata, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _card(base: Base, recipe: Recipe | GraderRecipe, account: Account) -> str:
    """Return the model card in Markdown, without paths and times."""
    licence = base.licence or "unknown"
    training = recipe.training
    command = f"gradewire models train {account.command} --recipe recipe.toml{account.options} --out DIR"
    files = "".join(f", with {name} (SHA-256 `{sha256}`)" for name, sha256 in account.files.items())
    return "\n".join(
        [
            "---",
            f"license: {licence.lower()}",
            f"base_model: {base.origin}",
            "---",
            *account.about,
            "",
            f"- Base: {base.origin}, weights SHA-256 `{base.weights_sha256}`, licence {licence}",
            f"- {account.data}",
            f"- Recipe: SHA-256 `{recipe_digest(recipe)}`, seed {training.seed}, {training.threads} thread(s)",
            f"- {account.setting}",
            f"- Made by: `{command}`{files}",
            f"- With: {', '.join(f'{name} {version(name)}' for name in _PACKAGES)}",
            f"- {account.remark}",
            "",
            *account.tables,
            "## Recipe",
            "",
            "```toml",
            recipe_text(recipe).rstrip(),
            "```",
            "",
        ]
    )


def sfve_account(base: Base, recipe: Recipe, examples: Sequence[Example], outcome: Outcome, dev: str = "") -> Account:
    """Return the `Account` of an `sfve` encoder, whose files are still missing; `dev` describes the dev rows."""
    sha256 = examples_digest(examples)
    counts = Counter(example.task for example in examples)
    rows = [
        f"| {group} | {task} | {counts[task]} |" for group, names in GROUPS.items() for task in names if counts[task]
    ]
    kind = "a low-rank adapter" if recipe.training.method == "adapter" else "all weights"
    selected = f"the step was selected on {dev}" if dev else "the last step was kept"
    return Account(
        command="sfve",
        about=[
            f"# SFVE on {Path(base.name).name}: {kind}",
            "",
            "An encoder for the metric `sfve` of gradewire: the cosine between the prediction and a reference, each",
            f'written as "Question: … Answer: …", at most {recipe.training.max_tokens} tokens.',
            "Scheme: Ji, Si, Lin et al. 2024,",
            '"Towards Flexible Evaluation for Generative Visual Question Answering".',
        ],
        data=f"Texts: {len(examples)} examples, SHA-256 `{sha256}`",
        setting=f"Kept: step {outcome.best_step} of {recipe.training.steps}",
        remark=selected,
        tables=["| group | task | examples |", "|---|---|---|", *rows, "", *_ranks(outcome, dev)],
        metadata={"data_sha256": sha256, "max_tokens": recipe.training.max_tokens, "text_form": "sfve"},
    )


def _ranks(outcome: Outcome, dev: str) -> list[str]:
    evaluated = [row for row in outcome.curve if MEAN in row]
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
        f"Spearman of the cosines with the labels of {dev}; step 0 is the base. The step was selected by",
        "these values, so they are optimistic.",
        "",
        f"| step | loss | {' | '.join(names)} |",
        "|---|---|" + "---|" * len(names),
        *rows,
        "",
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
