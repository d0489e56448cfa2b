"""Options of a command that reads official files."""

from collections.abc import Mapping
from typing import Any

import click

from gradewire.cli.input.official.vqa import VqaFiles
from gradewire.cli.options.group import option_group

official_options = option_group(
    click.option(
        "--from",
        "official",
        type=click.Choice(("vqa",)),
        help="FILE is the results of a data set's own program; vqa: VQA v2, OK-VQA, TextVQA, GQA.",
    ),
    click.option("--questions", metavar="FILE", help="With --from: the data set's questions."),
    click.option(
        "--annotations", metavar="FILE", help="With --from: its annotations, where the questions have no answers."
    ),
)


def official_files(options: Mapping[str, Any]) -> VqaFiles | None:
    """Reads `official_options`; None where FILE is rows by itself, and for commands without these options.

    Raises:
        click.UsageError: Options do not go together.
    """
    questions, annotations = options.get("questions"), options.get("annotations")
    if not options.get("official"):
        if questions or annotations:
            raise click.UsageError("--questions and --annotations are for --from vqa: give it too")
        return None
    if not questions:
        raise click.UsageError("--from vqa needs --questions FILE: the data set's questions")
    for name in ("input_format", "encoding", "delimiter"):
        if options.get(name):
            raise click.UsageError(f"--from vqa reads JSON in UTF-8: leave out --{name.replace('_', '-')}")
    return VqaFiles(questions, annotations or "")
