"""What a judge is asked with: options that several commands share."""

from __future__ import annotations

import click

from gradewire.cli.options.group import INPUT_FILE, option_group

# How often a row that the judge could not take is sent again.
RETRIES = 2

judge_options = option_group(
    click.option("--judge", metavar="NAME[@DIGEST]", help="Judge for the metrics that need one."),
    click.option(
        "--prompt",
        "prompts",
        metavar="FILE",
        type=INPUT_FILE,
        multiple=True,
        help="Prompt file for the metric that it names, where --metrics names no other. May be repeated.",
    ),
    click.option(
        "--retries",
        type=click.IntRange(min=0),
        default=RETRIES,
        show_default=True,
        help="How often rows are sent again when the judge is unavailable or its queue is full.",
    ),
)
