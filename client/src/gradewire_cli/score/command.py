"""`gradewire score`: scores the answers of a file."""

import asyncio
from typing import Any

import click

from gradewire.transport import Transport
from gradewire_cli.options.common import FailOn, fail_on_option, grouping_options, price_options, prices_of
from gradewire_cli.options.connection import connection_of
from gradewire_cli.options.metrics import metric_options_of, metrics_help
from gradewire_cli.problems import exit_codes, exit_on_interrupt, one_line_errors
from gradewire_cli.results.output_check import check_outputs
from gradewire_cli.rows.input_file import ALIAS_HELP, input_file, official_options
from gradewire_cli.score.dry_run import DryRun
from gradewire_cli.score.groups import check_comparable
from gradewire_cli.score.run import Output, ScoreJob, output_options
from gradewire_cli.scoring.plan import scoring_options
from gradewire_proto.exit_codes import ExitCode


@click.command(
    "score",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire score answers.jsonl --out scores.jsonl
  gradewire score answers.jsonl --out scores.jsonl --resume
  gradewire score 'runs/*.csv' --out scores.parquet --keep-columns model,split --summary-json summary.json
  gradewire score vqa.csv --map prediction=model_output --metrics smile:fast,exact_match --format table
  gradewire score answers.parquet --server 127.0.0.1:50051 --metrics 'smile:v1/1?sentence_weight=0.5'
  gradewire score answers.jsonl --metrics 'bertscore?layer=5&measure=recall,bleu,bleu?max_ngram=2'
  gradewire score captions.jsonl --metrics 'meteor,cider?corpus=prepared'
  gradewire score answers.jsonl --metrics all --out scores.jsonl
  gradewire score answers.jsonl --metrics smile,lave --judge qwen2.5-coder-1.5b-instruct --out scores.jsonl
  gradewire score vqa.jsonl --metrics 'lave?mode=rationale' --prompt mine.toml --out scores.jsonl
  gradewire score answers.jsonl --metrics lave --dry-run --judge-url https://host/v1 --judge-remote-model NAME \\
      --judge-input-price 0.15 --judge-output-price 0.60
  gradewire score results.json --from vqa --questions questions.json --annotations annotations.json \\
      --metrics vqa_accuracy,smile
  gradewire score runs.jsonl --metrics smile,exact_match --by model,model+dataset --baseline base
  gradewire score results/my-model --from lm-eval --metrics smile --keep-columns lm_eval_exact_match
  gradewire score logs/run.eval --from inspect --metrics smile,exact_match
  gradewire score outputs/model_MMStar.xlsx --from vlmevalkit --metrics smile
  cat answers.jsonl | gradewire score - --quiet | jq .scores.smile.score

{metrics_help()}

What counts a prepared corpus (cider, idf=prepared) counts the references of FILE, unless --reference-set or
reference_set=NAME names another set.

{exit_codes(failed_rows="some rows have no score (see --fail-on)")}""",
)
@scoring_options
@official_options
@grouping_options
@output_options
@fail_on_option
@click.option("--quiet", is_flag=True, help="Show no progress and no summary.")
@price_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print how often judges would be asked, with how many tokens and at what price; ask and score nothing.",
)
@click.pass_context
def score_command(ctx: click.Context, /, *, fail_on: FailOn, quiet: bool, dry_run: bool, **options: Any) -> None:
    """Score the answers of one or several FILEs: JSONL, JSON, CSV, TSV, Parquet, Arrow; - reads standard input.

    Rows are written in the order of the file, each as {"id", "index", "scores": {metric: {"score", "status", …}}, …}.
    A row that cannot be scored has a status in place of a score; the others are scored all the same.
    """
    output = Output.of(options)
    source, prices = input_file(options), prices_of(options)
    if dry_run:
        if output.resume:
            raise click.UsageError("--dry-run reckons all rows: leave out --resume")
        with exit_on_interrupt(lambda: "interrupted"), one_line_errors():
            reckoned = DryRun(source, metric_options_of(options), prices, connection_of(options))
            asyncio.run(_dry_run(reckoned, ctx.obj))
        return
    check_outputs(output.written, source.named_paths)
    job = ScoreJob(
        source, metric_options_of(options), connection_of(options), output, prices, quiet, options["baseline"]
    )
    with exit_on_interrupt(output.way_on), one_line_errors():
        check_comparable(source)
        asyncio.run(job.run(transport=ctx.obj))
    if job.summary.fails(fail_on):
        ctx.exit(ExitCode.FAILED)


async def _dry_run(reckoned: DryRun, transport: Transport | None) -> None:
    async with reckoned.connection.open(transport) as client:
        await reckoned.run(client)
