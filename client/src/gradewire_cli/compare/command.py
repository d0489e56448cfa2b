"""The command `gradewire compare`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire.errors import InvalidRequest
from gradewire.metrics import Compare
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire_cli.compare.conditions import (
    VALUE_NAMES,
    check_conditions,
    incomplete_sides,
    parse_conditions,
    parse_share,
)
from gradewire_cli.compare.earlier_outputs import are_outputs
from gradewire_cli.compare.output import all_tables, comparison_pages, headline_tables, value_notes
from gradewire_cli.compare.result import Drawing, document_of
from gradewire_cli.compare.run import CompareJob, output_options, resume_hint, scores_beside
from gradewire_cli.compare.sides import DUPLICATES, RULES, check_names
from gradewire_cli.options.common import (
    OUTPUT_FILE,
    check_resume,
    choice_option,
    read_groupings,
)
from gradewire_cli.options.connection import connection_of
from gradewire_cli.options.help import command, option, stacked
from gradewire_cli.options.metrics import MetricOptions, metric_options_of
from gradewire_cli.pages.page import write_page
from gradewire_cli.problems import (
    NOTHING_SCORED,
    InputError,
    check_something_scored,
    exit_on_interrupt,
    one_line_errors,
    tell,
)
from gradewire_cli.results.journal import check_outputs, files_of
from gradewire_cli.results.table_formats import table_files, write_tables
from gradewire_cli.results.tables import FURTHER_TABLES, show_tables
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.input_file import InputFile, compared_official_options, input_file
from gradewire_cli.scoring.choosers import (
    draws_over_of,
    draws_over_option,
    is_comparison,
    pair_comparison_of,
    tie_margin_option,
)
from gradewire_cli.scoring.labelled_run import draw_options
from gradewire_cli.scoring.plan import scoring_options, single_metric, without_all
from gradewire_proto.exit_codes import ExitCode
from gradewire_stats.comparison.groups import RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Mapping


_FILE_CHARACTERS = 400


def names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Parse comma-separated names."""
    given = tuple(name.strip() for name in value.split(",")) if value is not None else ()
    if not all(given):
        raise click.BadParameter(f"{value!r} is not a list of names. Use NAME,NAME")
    return given


compare_options = stacked(
    option("--models", callback=names),
    option("--names", callback=names),
    option("--baseline", rare=True, show_default="the first"),
    option("--by", show_default="the first of --metrics"),
    tie_margin_option,
    draws_over_option,
    choice_option("--match", "rule", among=RULES),
    choice_option("--duplicates", among=DUPLICATES),
    option("--summary", "summaries", type=OUTPUT_FILE, multiple=True),
    option("--fail-if", "conditions", multiple=True, callback=parse_conditions),
    option("--allow-missing", default="0%", callback=parse_share),
    option("--where", multiple=True),
    option("--group-by", multiple=True),
    option("--changed", type=click.IntRange(min=0), default=5),
)


def _scored_and_comparison(metrics: MetricOptions, by: str, *, named: bool) -> tuple[MetricOptions, Compare | None]:
    written = str(metrics.metrics)
    if not is_comparison(by):
        chooser, asked = single_metric(by, written, "--by")
        scored = written if chooser in asked else f"{written},{by}" if named else by
        return replace(metrics, metrics=scored, usual=False), None
    of_comparison = [given for given in metrics.prompts if given.prompt.metric == Compare.name]
    prompts = [given for given in metrics.prompts if given not in of_comparison]
    others = without_all(written)
    try:
        comparison = pair_comparison_of(by, metrics.judge, of_comparison)
        # Pass --judge only if a metric needs a judge. Otherwise --judge is an error.
        judge = metrics.judge if others and choose_metrics(others, MetricDefaults()).asks_judge else None
    except InvalidRequest as error:
        raise click.UsageError(f"--by {by}: {error}") from error
    return replace(metrics, prompts=prompts, judge=judge), comparison


@command(
    "compare",
    values="\n".join(f"  {'  '.join(VALUE_NAMES[begin:end])}" for begin, end in pairwise((0, 4, 8, 12, None))),
    failed_rows=NOTHING_SCORED,
    condition="a condition of --fail-if is true, or too many rows are missing",
)
@scoring_options
@compared_official_options
@compare_options
@draw_options(resamples=RESAMPLES)
@output_options
@click.pass_context
def compare_command(ctx: click.Context, /, **options: Any) -> None:
    """Compare two or more models or runs on the same questions, without labels.

    Give one FILE for each run, or one FILE with a column model. The command prints paired differences in mean scores
    and in the share of right answers, and how often each side's answer is better. It also prints the rows that changed
    most, and the differences between the runs' settings.
    """
    check_resume(options, options["out"])
    if options["allow_missing"] and not options["conditions"]:
        raise click.UsageError("--allow-missing needs --fail-if. Give both")
    files, source = table_files(options), _source(options)
    check_names(source.paths, options["models"], options["names"])
    stored = are_outputs(source.paths)
    if options["summaries"] and not stored:
        raise click.UsageError("--summary needs outputs of gradewire score, but these files contain answers")
    named = {f"--summary {path}": str(path) for path in options["summaries"]}
    kept = [path for file in (options["out"], scores_beside(options["out"])) if file for path in files_of(file)]
    written = [*(("--out", path) for path in kept), *files.items(), ("--html", options["html"])]
    check_outputs(written, source.named_paths | named)
    named_metrics = ctx.get_parameter_source("metrics") is not click.core.ParameterSource.DEFAULT
    metrics, comparison = metric_options_of(options), None
    if options["by"] is not None:
        with one_line_errors():
            metrics, comparison = _scored_and_comparison(metrics, options["by"], named=named_metrics)
    if comparison is not None and stored:
        raise click.UsageError(
            f"--by {options['by']}: a judge must read the answers. Name files with answers instead of outputs of "
            "gradewire score"
        )
    with one_line_errors():
        only = choose_metrics(str(metrics.metrics), MetricDefaults()).labels if stored and named_metrics else ()
    job = CompareJob(
        options=options,
        source=source,
        stored=stored,
        metrics=metrics,
        connection=connection_of(options),
        comparison=comparison,
        only_labels=only,
        drawing=Drawing(
            draws_over=draws_over_of(options),
            **{name: options[name] for name in ("tie_margin", "resamples", "seed", "changed")},
        ),
    )
    with exit_on_interrupt(lambda: resume_hint(options["out"])), one_line_errors():
        found = job.run(ctx.obj)
    every = list(all_tables(found))
    tables = every if options["all_tables"] else list(headline_tables(found))
    further = [FURTHER_TABLES] if len(tables) < len(every) else []
    show_tables(tables, [printable(note) for note in value_notes(found)], further)
    checked = check_conditions(options["conditions"], found)
    incomplete = incomplete_sides(options["conditions"], found, options["allow_missing"])
    document = document_of(found) | {"incomplete": incomplete, "conditions": checked}
    write_tables(files, document, list(all_tables(found, characters=_FILE_CHARACTERS)), value_notes(found))
    if options["html"] is not None:
        write_page(options["html"], comparison_pages(found, source.short_name, incomplete, checked))
    tell(map(printable, [*incomplete, *(str(each) for each in checked if each.holds)]))
    if incomplete:
        ctx.exit(ExitCode.GATE)
    if problems := [str(each) for each in checked if each.problem]:
        raise InputError("; ".join(problems))
    if any(each.holds for each in checked):
        ctx.exit(ExitCode.GATE)
    statuses = sum((Counter(side.statuses) for side in found.sides), Counter[str]())
    check_something_scored(f"no pair could be judged by {found.chooser}", statuses)


def _source(options: Mapping[str, Any]) -> InputFile:
    given = {name: value for name, value in options.items() if name != "baseline"}
    if any(Path(path).is_dir() for path in options["files"]):  # from `gradewire bulk`, which writes JSONL
        given["input_format"] = given["input_format"] or "jsonl"
    source = input_file(given)
    groupings = read_groupings(options["group_by"])
    columns = tuple(dict.fromkeys(column for grouping in groupings for column in grouping))
    rows = replace(source.options, grouped_by=columns, grouping_needed=False)
    return replace(source, options=rows, groupings=groupings, groupings_requested=bool(groupings))
