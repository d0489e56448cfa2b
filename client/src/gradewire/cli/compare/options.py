"""What is compared and by whom: the options of `compare` beside those that commands share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.choosing.options import comparison_of, is_comparison, tie_margin_option
from gradewire.cli.compare.conditions import parse_conditions
from gradewire.cli.compare.input.matching import DUPLICATES, RULES
from gradewire.cli.options.group import OUTPUT_FILE, choice_option, option_group
from gradewire.cli.run.every_metric import ALL_METRICS
from gradewire.errors import InvalidRequest
from gradewire.metric_types import Compare
from gradewire.metric_types.choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.cli.options.metrics import MetricOptions


def names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Reads names separated by commas."""
    given = tuple(name.strip() for name in value.split(",")) if value is not None else ()
    if not all(given):
        raise click.BadParameter(f"{value!r}: write NAME,NAME")
    return given


compare_options = option_group(
    click.option(
        "--models", metavar="NAME,…", callback=names, help="Compare these models of the column model, over all files."
    ),
    click.option("--names", metavar="NAME,…", callback=names, help="What the files are called; default: their names."),
    click.option("--baseline", metavar="NAME", help="What the others are compared with; default: the first."),
    click.option(
        "--by",
        metavar="CHOOSER",
        help="Who says which answer is better: a metric, by its scores, or compare, a judge that is shown both answers "
        "in both orders ('compare?references=true&mode=reason'). Default: the first of --metrics.",
    ),
    tie_margin_option,
    click.option(
        "--group-by",
        metavar="COLUMN,…",
        multiple=True,
        help="Tell the figures by these columns too; model+dataset: by both together. May be repeated.",
    ),
    choice_option(
        "--match",
        "rule",
        among=RULES,
        about="What rows of one question have in common: ids, else questions (auto), or one of these.",
    ),
    choice_option(
        "--duplicates",
        among=DUPLICATES,
        about="Rows of one side that answer one question: refuse them, or take the first.",
    ),
    click.option(
        "--summary",
        "summaries",
        type=OUTPUT_FILE,
        multiple=True,
        help="What gradewire score --summary-json wrote for each FILE that is its output, in their order. Default: the "
        "manifests beside the FILEs.",
    ),
    click.option("--where", metavar="COLUMN=VALUE,…", multiple=True, help="Only these rows. May be repeated."),
    click.option(
        "--changed",
        type=click.IntRange(min=0),
        default=5,
        help="Show so many rows that gained most, and that lost most.",
    ),
    click.option(
        "--fail-if",
        "conditions",
        metavar="CONDITION",
        multiple=True,
        callback=parse_conditions,
        help="Exit with code 4 where this holds, for instance 'smile.mean < -0.01'. May be repeated.",
    ),
)


def comparison_with(metrics: MetricOptions, by: str | None) -> tuple[MetricOptions, Compare | None]:
    """The comparison that --by names, with --judge and its --prompt, and the options of the metrics without that.

    Raises:
        click.UsageError: --by is wrong.
        InputError: Two prompt files are for it, or it names another one.
    """
    if by is None or not is_comparison(by):
        return metrics, None
    mine = [given for given in metrics.prompts if given.prompt.metric == Compare.name]
    others = [given for given in metrics.prompts if given.prompt.metric != Compare.name]
    comparison = comparison_of(by, metrics.judge, mine)
    try:
        # It is refused where none of the metrics asks one.
        judge = metrics.judge if _ask_judge(metrics) else None
    except InvalidRequest as error:
        raise click.UsageError(f"--by {by}: {error}") from error
    return replace(metrics, prompts=others, judge=judge), comparison


def _ask_judge(metrics: MetricOptions) -> bool:
    named = _without_all(str(metrics.metrics))
    return bool(named) and choose_metrics(named, MetricDefaults()).asks_judge


def _without_all(written: str) -> str:
    return ",".join(name for name in written.split(",") if name.strip() != ALL_METRICS)


def metrics_with(metrics: MetricOptions, by: str | None, *, named: bool) -> MetricOptions:
    """What is scored: --metrics, and the metric that chooses.

    Args:
        metrics: The options.
        by: What --by says; None for nothing.
        named: Whether --metrics was given.

    Raises:
        click.UsageError: --by is no metric, or several.
    """
    if by is None or is_comparison(by):
        return metrics
    written = str(metrics.metrics)
    others = _without_all(written)
    try:
        chooser = choose_metrics(by, MetricDefaults()).labels
        asked: Sequence[str] = choose_metrics(others, MetricDefaults()).labels if others else ()
    except InvalidRequest as error:
        raise click.UsageError(f"--by {by}: {error}") from error
    if len(chooser) != 1:
        raise click.UsageError(f"--by {by}: name one metric")
    added: dict[str, Any] = {"metrics": written if chooser[0] in asked else f"{written},{by}" if named else by}
    return replace(metrics, **added, usual=False)
