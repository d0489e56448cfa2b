"""The command ``gradewire models export``."""

from dataclasses import replace
from pathlib import Path

import click

from gradewire_models.cli.options import (
    REPOSITORY_OPTION,
    Target,
    grouped,
    needs,
    target_options,
    without_traceback,
)
from gradewire_models.export.folder import POOLINGS
from gradewire_models.export.plan import CPU_CLASS, ExportOptions


@click.command()
@click.argument("source", metavar="HUB_ID|PATH")
@grouped(
    "options",
    ExportOptions,
    click.option("--name", default="", help="Name in the repository; by default the model's name."),
    click.option(
        "--pooling",
        type=click.Choice(POOLINGS),
        help="Pooling of token vectors; by default as sentence-transformers' files in the folder say.",
    ),
    click.option("--prefix", help="Text to put before every input; by default the folder's default prompt, if any."),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        help="Longest input; by default the folder's limit, but at most 512.",
    ),
    click.option(
        "--token-layer",
        "token_layers",
        type=click.IntRange(min=1),
        multiple=True,
        help="Also output the token vectors of this earlier layer (1 is the first); may be repeated.",
    ),
    click.option("--licence", default="", help="SPDX identifier of the weights' licence; by default the model card's."),
)
@click.option(
    "--revision", default="", help="Branch, tag or commit of the hub; the model's description records the commit."
)
@target_options("target", "Precision on a GPU; fp16 by default.")
@REPOSITORY_OPTION
@without_traceback()
def export(source: str, options: ExportOptions, revision: str, target: Target, repository: Path) -> None:
    """Export any sentence encoder, from the hub or a folder.

    Reads folders of transformers and sentence-transformers: safetensors only, and never runs a model's code. The graph
    is compared with torch, text by text, before it is put in place. After a failure the repository is unchanged.
    Exporting again replaces the model.
    """
    # These imports take seconds.
    with needs("export", "exporting"):
        from rich.console import Console  # noqa: PLC0415

        from gradewire_models.build.progress import ConsoleProgress  # noqa: PLC0415
        from gradewire_models.export.run import export_model  # noqa: PLC0415
    precise = f"{target.precision or 'fp16'}-{target.accelerator or 'cuda'}"
    options = replace(options, numeric_class=CPU_CLASS if target.target == "cpu" else precise)
    with ConsoleProgress(Console(stderr=True), options.name or source) as progress:
        result = export_model(source, repository, options, revision=revision, report=progress.report)
    model = result.model
    click.echo(f"{model.name}: exported, digest {model.digest}, in {model.directory}")
    size = f"at most {model.max_tokens} tokens, {model.dims} dims"
    click.echo(f"  pooling {model.pooling}, {size}, licence {model.licence or 'unknown'}")
    for check in result.checks:
        click.echo(f"  {check.name}: {check.detail}")
    for note in result.notes:
        click.echo(f"  note: {note}")
    if not model.on_cpu:
        click.echo("  not tested on a GPU here. Compare its scores on your GPU with those of the same model for CPUs")
