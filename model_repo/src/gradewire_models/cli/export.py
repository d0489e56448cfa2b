"""The command ``gradewire models export``."""

from dataclasses import replace
from pathlib import Path

import click
import cloup

from gradewire_models.cli.help import ExampleCommand, rare_option
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

_EXAMPLES = """
  gradewire models export llmrails/ember-v1
  gradewire models export llmrails/ember-v1 --revision COMMIT --target gpu
  gradewire models export ./my-encoder --name my-encoder --pooling mean
"""


@click.command(cls=ExampleCommand, examples=_EXAMPLES)
@click.argument("source", metavar="HUB_ID|PATH")
@grouped(
    "options",
    ExportOptions,
    cloup.option_group(
        "Model",
        click.option("--name", default="", help="Name the model; by default after HUB_ID or PATH."),
        click.option("--licence", default="", help="Set the weights' licence (SPDX); by default the model card's."),
    ),
    cloup.option_group(
        "Vectors",
        click.option(
            "--pooling",
            type=click.Choice(POOLINGS),
            help="Pool token vectors with this method; by default with the folder's (modules.json).",
        ),
        click.option("--prefix", help="Put this text before every input; by default the folder's default prompt."),
        click.option("--suffix", help="Put this text after every input, and keep it if an input is cut."),
        click.option(
            "--max-tokens",
            type=click.IntRange(min=1),
            metavar="N",
            help="Cut inputs at N tokens; by default at the folder's limit, but at most 512.",
        ),
        rare_option(
            "--token-layer",
            "token_layers",
            type=click.IntRange(min=1),
            metavar="N",
            multiple=True,
            help="Also output the token vectors of layer N; 1 is the first layer. Repeatable.",
        ),
    ),
)
@cloup.option_group(
    "Download", click.option("--revision", default="", help="Export this branch, tag or commit of the hub.")
)
@target_options("target", "Use this precision on a GPU; by default fp16.")
@cloup.option_group("Directories", REPOSITORY_OPTION)
@without_traceback()
def export(source: str, options: ExportOptions, revision: str, target: Target, repository: Path) -> None:
    """Export any sentence encoder, from the hub or a folder.

    The folder has the format of transformers or sentence-transformers. The command reads only safetensors and never
    runs a model's code. It compares the graph with torch, text by text, before it publishes the model. After a failure,
    the repository is unchanged. A repeated export replaces the model.
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
    if model.prefix or model.suffix:
        click.echo(f"  texts are read as {model.prefix + '…' + model.suffix!r}")
    if model.weights_path is not None:
        click.echo(f"  weights in {model.weights_path} ({model.weights_path.stat().st_size / 1e9:.1f} GB)")
    for check in result.checks:
        click.echo(f"  {check.name}: {check.detail}")
    for note in result.notes:
        click.echo(f"  note: {note}")
    if not model.on_cpu:
        click.echo("  not tested on a GPU. Compare the model's scores on your GPU and on a CPU")
