"""`gradewire bench ave`: alignment, consistency and generalisation of evaluators on the AVE benchmark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.bench.ave.file import AVE_ALIASES, SPREAD_FIELDS, AveFile
from gradewire.cli.bench.ave.run import ave_scores, write_items
from gradewire.cli.bench.ave.tables import ave_headline, ave_notes, ave_tables
from gradewire.cli.bench.manifest import BenchManifest, BenchScores, run_parameters
from gradewire.cli.bench.run import with_default_metrics
from gradewire.cli.input.files import input_file, named_columns
from gradewire.cli.options.group import OUTPUT_FILE, choice_option
from gradewire.cli.options.labelled import draw_options
from gradewire.cli.output.files import TableFiles, all_tables_option, table_file_options
from gradewire.cli.output.interval_notes import PlacedEstimate, interval_notes
from gradewire.cli.output.tables import FURTHER_TABLES, show_tables
from gradewire.cli.problems import exit_codes, exit_on_interrupt
from gradewire.cli.run.labelled_run import RESAMPLES, described_draws, labelled_run_of
from gradewire.cli.run.labels import label_named
from gradewire.cli.run.manifest_file import manifest_option
from gradewire.cli.run.plan import scoring_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire.agreement.papers.ave import AveDifferences, AveProperties

METRICS = "sbert,sfve,bertscore,smile,rouge_l,bleu,meteor,exact_match"


@click.command(
    "ave",
    epilog=f"""\b
Columns, by the first of these names that a row has:
{chr(10).join(f"  {name:<19} {' '.join(usual)}" for name, usual in AVE_ALIASES.items())}

Descriptions (part 2) and shifted references (part 3) are a text or a list; --map descriptions=COLUMN,COLUMN takes one
from each column, and --map labels=COLUMN,COLUMN one annotator's grade from each.

\b
Examples:
  gradewire bench ave ave.json --map prediction=response --map descriptions=desc1,desc2,desc3
  gradewire bench ave standin.jsonl --half b --baseline sbert
  gradewire bench ave standin.jsonl --metrics 'sfve?model=all-MiniLM-L6-v2,sfve?model=sfve-mini'
  gradewire bench ave standin.jsonl --items items.jsonl   (then: gradewire score items.jsonl --out scores.jsonl,
                                                          gradewire bench ave standin.jsonl --scores scores.jsonl)

Alignment is the mean over the parts of Spearman's correlation with the grades; consistency the logarithm of 1 / the
mean variance of a sample's scores over the parts, on the scores as they are and, free of their scale, divided by their
spread; generalization the logarithm of 1 / the variance of the alignments of the data sets.

{exit_codes(failed_rows="")}""",
)
@scoring_options
@click.option("--where", metavar="COLUMN=VALUE,…", multiple=True, help="Only these samples. May be repeated.")
@click.option("--half", type=click.Choice(("a", "b")), help="Only samples whose question is of this half, by its hash.")
@click.option("--baseline", metavar="METRIC", help="Compare the others with this one, as the table calls it.")
@choice_option(
    "--merge", among=("mean", "median", "max"), about="How the scores of a sample's descriptions are combined."
)
@choice_option("--variance", among=("population", "sample"), about="Divide by the number of values, or by one less.")
@click.option(
    "--log-base",
    type=click.FloatRange(min=1, min_open=True),
    default=2.0,
    help="Base of the logarithms; 2 fits the published values.",
)
@choice_option(
    "--dataset-alignment",
    among=("mean-of-parts", "pooled"),
    about="Alignment of a data set: the mean over its parts, or of all its parts at once.",
)
@click.option(
    "--scores",
    type=OUTPUT_FILE,
    multiple=True,
    help="Take the scores from this output of gradewire score on the file of --items; nothing is scored.",
)
@click.option(
    "--items",
    type=OUTPUT_FILE,
    help="Write what would be scored here, one labelled row for each text, and score nothing.",
)
@draw_options(resamples=RESAMPLES)
@all_tables_option
@table_file_options
@manifest_option
@click.pass_context
def ave_command(ctx: click.Context, /, **options: Any) -> None:
    """Alignment, consistency and generalization of evaluators on the samples of FILE.

    Failed rows and samples without a part enter no figure of that part, and are counted.
    """
    options = with_default_metrics(ctx, options, METRICS)
    files = TableFiles.of(options)
    # The rows come with the samples.
    run = labelled_run_of({**options, "columns": (), "where": (), "labels": None, "without_flags": ()})
    manifest = BenchManifest.of("bench ave", options, files)
    run.check_outputs([*files.named, ("--items", options["items"]), *manifest.named])
    source = input_file({**options, "columns": ()})
    file = AveFile.read(
        source.records(),
        _columns(options["columns"]),
        where=source.options.where,
        half=options["half"],
    )
    if options["items"] is not None:
        write_items(options["items"], file.samples)
        click.echo(f"{len(file.samples)} samples written as items to {options['items']}", err=True)
        return
    baseline = options["baseline"]

    def baseline_among(labels: Sequence[str]) -> str | None:
        return None if baseline is None else label_named(labels, baseline, "--baseline")

    with exit_on_interrupt():
        scores = ave_scores(file, run, options["merge"], ctx.obj, baseline_among)
    from gradewire.agreement.papers.ave import ave_differences, ave_properties  # noqa: PLC0415 - after the scores
    from gradewire.agreement.papers.ave_figures import AveOptions  # noqa: PLC0415 - as above

    left_open = AveOptions(
        log_base=options["log_base"],
        variance=options["variance"],
        dataset_alignment="pooled" if options["dataset_alignment"] == "pooled" else "mean_of_parts",
    )
    draws = {"resamples": run.resamples, "seed": run.seed}
    found = {label: ave_properties(rows, left_open, **draws) for label, rows in scores.rows.items()}
    baseline = baseline_among(list(found))
    gains = {
        label: ave_differences(rows, scores.rows[baseline], left_open, **draws)
        for label, rows in scores.rows.items()
        if baseline is not None and label != baseline
    }
    tables = list(ave_tables(found, gains, baseline))
    notes = [*ave_notes(scores, found), *interval_notes(_intervals(found, gains, baseline))]
    if options["all_tables"]:
        show_tables(tables, notes, file.sentences())
    else:
        show_tables(ave_headline(found, gains, baseline), notes, [*file.sentences(), FURTHER_TABLES])
    lines = {label: {"line": tally.line, "statuses": dict(tally.statuses)} for label, tally in scores.tallies.items()}
    document = _document(options, file, found, gains)
    files.write({**document, "metrics": lines}, tables, notes)
    scored = BenchScores.of(run, scores.tallies, rows=len(file.chosen), server_version=scores.server_version)
    where = {column: sorted(values) for column, values in source.options.where.items()}
    manifest.write(scored, **run_parameters(run) | document["options"] | {"half": options["half"], "where": where})


def _columns(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    named = named_columns("--map", pairs, AVE_ALIASES)
    return {name: tuple(listed.split(",")) if name in SPREAD_FIELDS else (listed,) for name, listed in named.items()}


def _intervals(
    found: Mapping[str, AveProperties], gains: Mapping[str, AveDifferences], baseline: str | None
) -> Iterator[PlacedEstimate]:
    for label, each in found.items():
        for part, estimate in enumerate(each.parts, 1):
            yield PlacedEstimate(label, "Spearman", f"part {part}", estimate)
        for name in ("alignment", "consistency", "generalization"):
            if math.isfinite((estimate := getattr(each, name)).value):
                yield PlacedEstimate(label, name, "all samples", estimate)
    for label, gain in gains.items():
        for name in ("alignment", "consistency"):
            if math.isfinite((estimate := getattr(gain, name)).value):
                yield PlacedEstimate(f"{label} minus {baseline}", name, "all samples", estimate)


def _document(
    options: Mapping[str, Any],
    file: AveFile,
    found: Mapping[str, AveProperties],
    gains: Mapping[str, AveDifferences],
) -> dict[str, Any]:
    return {
        "file": ", ".join(options["files"]),
        "half": options["half"],
        "where": list(options["where"]),
        "samples": len(file.chosen),
        "left_out": dict(file.left_out.counts),
        "options": {name: options[name] for name in ("merge", "variance", "log_base", "dataset_alignment")},
        "bootstrap": described_draws(options["resamples"], options["seed"], unit="question"),
        "evaluators": found,
        "baseline": options["baseline"],
        "differences": gains,
    }
