"""`gradewire compare`: models or runs over the same questions, without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.compare.conditions import check_conditions, parts_only
from gradewire.cli.compare.input.sides import check_names
from gradewire.cli.compare.input.stored import are_outputs
from gradewire.cli.compare.job import CompareJob, SideOptions
from gradewire.cli.compare.options import compare_options, comparison_with, metrics_with
from gradewire.cli.compare.outputs import Outputs, output_options
from gradewire.cli.compare.result import Drawing, document_of
from gradewire.cli.compare.tables import all_tables, figure_notes, headline_tables
from gradewire.cli.input.files import ALIAS_HELP, input_file
from gradewire.cli.input.grouping import read_groupings
from gradewire.cli.input.record import printable
from gradewire.cli.options.connection import connection_of
from gradewire.cli.options.labelled import draw_options
from gradewire.cli.options.metrics import metric_options_of
from gradewire.cli.output.output_check import check_outputs
from gradewire.cli.output.tables import FURTHER_TABLES, show_figures
from gradewire.cli.problems import InputError, exit_codes, exit_on_interrupt, one_line_errors
from gradewire.cli.run.plan import scoring_options
from gradewire.comparison.conditions import FIGURES
from gradewire.comparison.groups import RESAMPLES
from gradewire_proto.conventions.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.cli.compare.result import CompareResult
    from gradewire.cli.input.files import InputFile
    from gradewire.comparison.conditions import Condition


@click.command(
    "compare",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire compare base.jsonl new.jsonl
  gradewire compare base.jsonl new.jsonl --metrics smile,correctness --out pairs.jsonl --html compare.html
  gradewire compare runs.jsonl --models gpt35,gpt4 --metrics smile --group-by dataset
  gradewire compare scores-monday.jsonl scores-friday.jsonl --fail-if 'smile.mean < -0.01'
  gradewire compare base.jsonl new.jsonl --by correctness --tie-margin verdict --fail-if 'correctness.wins.p < 0.05'
  gradewire compare base.jsonl new.jsonl --by 'compare?references=true' --out pairs.jsonl --resume

FILEs are answers, which are scored, or outputs of gradewire score, whose scores are taken as they are. The first is the
baseline; every figure is of a candidate minus the baseline, on the questions that both answered.

\b
CONDITION is METRIC.FIGURE, then < <= > or >=, then a number. Figures:
  {"  ".join(FIGURES[:6])}
  {"  ".join(FIGURES[6:12])}
  {"  ".join(FIGURES[12:18])}
  {"  ".join(FIGURES[18:])}

{exit_codes(failed_rows="", condition="a condition of --fail-if holds")}""",
)
@scoring_options
@compare_options
@draw_options(resamples=RESAMPLES)
@output_options
@click.pass_context
def compare_command(ctx: click.Context, /, *, conditions: Sequence[Condition], quiet: bool, **options: Any) -> None:
    """Compare two or more models or runs over the same questions; no labels are needed.

    FILEs are one for each run, or one with a column model. Prints paired differences of mean scores and of answers
    called right, whose answer is the better one how often, the rows that changed most, and what else differs.
    """
    outputs = Outputs.of(options)
    source = _source(options)
    check_names(source.paths, options["models"], options["names"])
    stored = are_outputs(source.paths)
    if options["summaries"] and not stored:
        raise click.UsageError("--summary belongs to outputs of gradewire score: these files are answers")
    named = {f"--summary {path}": str(path) for path in options["summaries"]}
    check_outputs(outputs.written, source.named_paths | named)
    with one_line_errors():
        metrics, comparison = comparison_with(_metrics(ctx, options), options["by"])
    if comparison is not None and stored:
        raise click.UsageError(
            f"--by {options['by']} has a judge read the answers: give the files that have them, not outputs of "
            "gradewire score"
        )
    job = CompareJob(
        source=source,
        stored=stored,
        metrics=metrics,
        comparison=comparison,
        connection=connection_of(options),
        sides=SideOptions(
            models=options["models"],
            names=options["names"],
            baseline=options["baseline"],
            rule=options["rule"],
            duplicates=options["duplicates"],
            summaries=options["summaries"],
        ),
        by=options["by"],
        conditions=conditions,
        drawing=Drawing(
            tie_margin=options["tie_margin"],
            resamples=options["resamples"],
            seed=options["seed"],
            changed=options["changed"],
        ),
        outputs=outputs,
        quiet=quiet,
    )
    with exit_on_interrupt(outputs.way_on), one_line_errors():
        found = job.run(ctx.obj)
    _show(found, outputs)
    if _fails(conditions, found, outputs, source.short_name):
        ctx.exit(ExitCode.GATE)


def _source(options: Mapping[str, Any]) -> InputFile:
    given = {name: value for name, value in options.items() if name != "baseline"}
    if any(Path(path).is_dir() for path in options["files"]):  # of bulk, and its parts are JSONL
        given["input_format"] = given["input_format"] or "jsonl"
    source = input_file(given)
    groupings = read_groupings(options["group_by"], "--group-by")
    columns = tuple(dict.fromkeys(column for grouping in groupings for column in grouping))
    rows = replace(source.options, grouped_by=columns, grouping_option="--group-by", grouping_needed=False)
    return replace(source, options=rows, groupings=groupings, groupings_asked=bool(groupings))


def _metrics(ctx: click.Context, options: Mapping[str, Any]) -> Any:
    named = ctx.get_parameter_source("metrics") is not click.core.ParameterSource.DEFAULT
    return metrics_with(metric_options_of(options), options["by"], named=named)


def _show(found: CompareResult, outputs: Outputs) -> None:
    tables = list(all_tables(found) if outputs.all_tables else headline_tables(found))
    notes = [printable(note) for note in figure_notes(found)]
    further = [] if outputs.all_tables or len(tables) == len(list(all_tables(found))) else [FURTHER_TABLES]
    show_figures(tables, notes, further)


def _fails(conditions: Sequence[Condition], found: CompareResult, outputs: Outputs, source: str) -> bool:
    """Writes the files, and says which conditions hold; raises InputError where one cannot be told."""
    checked = check_conditions(conditions, found)
    document = document_of(found) | {"conditions": checked}
    outputs.figures.write(document, list(all_tables(found, characters=_FILE_CHARACTERS)), figure_notes(found))
    if outputs.page is not None:
        from gradewire.cli.compare.page import write_page  # noqa: PLC0415 - templates are loaded where a page is wanted

        write_page(outputs.page, found, source, checked)
    told = [*parts_only(conditions, found), *(str(each) for each in checked if each.holds)]
    for line in told:
        click.echo(printable(line), err=True)
    if problems := [str(each) for each in checked if each.problem]:
        raise InputError("; ".join(problems))
    return any(each.holds for each in checked)


_FILE_CHARACTERS = 400
