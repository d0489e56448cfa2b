"""`gradewire bench knvqa`: agreement of each evaluator's verdicts with the human ones, by model under test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from gradewire.cli.bench.engine import TableSpec
from gradewire.cli.bench.verdicts import VerdictRows, cut_option
from gradewire.cli.output.interval_notes import PlacedEstimate
from gradewire.cli.output.names import TITLES, cell_names
from gradewire.cli.run.labelled_run import labelled_run_options
from gradewire.tables import Cell, Table, Value, count, estimated, measured

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire.agreement.papers.verdicts import EvaluatorOnModel, KnvqaTable, ModelSummary
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.cli.bench.engine import TableCall, TableResult
    from gradewire.cli.run.accuracy_tables import People

_Named = Literal["accuracy", "f1", "macro_f1", "precision", "recall"]
_STATISTICS: tuple[_Named, ...] = ("accuracy", "f1", "macro_f1", "precision", "recall")
_NARROW: tuple[Statistic, ...] = ("positive_rate", "accuracy", "f1")


def _compute(call: TableCall) -> TableResult:
    rows = VerdictRows.read(call, cut=None)
    from gradewire.agreement.papers.verdicts import knvqa_table  # noqa: PLC0415 - after the scores: scipy takes a second to load

    table, people = knvqa_table(rows.judged, lengths_words=rows.labelled.lengths_words(), **rows.draws), rows.people
    return rows.result(
        {"models": table.models, "evaluators": table.lines},
        headline=_headline(table, people),
        tables=_tables(table, people),
        intervals=_intervals(table, people),
    )


def _headline(table: KnvqaTable, people: People) -> Iterator[Table]:
    """Positive rate and accuracy; of a single model a line for each evaluator, as narrow as a terminal may be."""
    if len(table.models) > 1:
        yield _positive_rates(table, people)
        yield _by_model(table, "accuracy")
        return
    human = table.models[0]
    rows: list[list[Cell]] = [
        [line.evaluator, *(estimated(line.estimates[name]) for name in _NARROW)] for line in table.lines
    ]
    yield Table(
        f"Verdicts over {human.rows} rows: share called right, and agreement with {people.several}",
        ["evaluator", *(TITLES[name] for name in _NARROW)],
        [*rows, [people.all_rows, estimated(human.human_rate), "", ""]],
    )


def _tables(table: KnvqaTable, people: People) -> Iterator[Table]:
    names, lines = _model_names(table), _by_evaluator(table)
    yield Table(
        f"Models as {people.judge} them, over all labelled rows",
        ["", *names],
        _as_people_judge(table.models),
    )
    incomplete = [name for name, found in lines.items() if any(line.failed for line in found)]
    for name in incomplete:
        yield Table(
            f"Models as {people.judge} them, on the rows that {name} judged",
            ["", *names],
            _as_people_judge(lines[name]),
        )
    yield _positive_rates(table, people)
    yield from (_by_model(table, statistic) for statistic in _STATISTICS)
    if incomplete:
        yield Table(
            "Rows without a verdict",
            ["evaluator", *names],
            [[name, *(count(line.failed) for line in found)] for name, found in lines.items()],
        )


def _positive_rates(table: KnvqaTable, people: People) -> Table:
    rows = [row for name, lines in _by_evaluator(table).items() for row in _rates(name, lines, people)]
    human: list[Cell] = [people.all_rows, *(estimated(model.human_rate) for model in table.models)]
    return Table("Positive rate (rank of the evaluator)", ["evaluator", *_model_names(table)], [*rows, human])


def _by_model(table: KnvqaTable, statistic: _Named) -> Table:
    return Table(
        TITLES[statistic][0].upper() + TITLES[statistic][1:],
        ["evaluator", *_model_names(table)],
        [
            [name, *(estimated(line.estimates[statistic]) for line in lines)]
            for name, lines in _by_evaluator(table).items()
        ],
    )


def _model_names(table: KnvqaTable) -> list[str]:
    return cell_names([("", model.model) for model in table.models])


def _by_evaluator(table: KnvqaTable) -> dict[str, list[EvaluatorOnModel]]:
    evaluators = dict.fromkeys(line.evaluator for line in table.lines)
    return {name: [line for line in table.lines if line.evaluator == name] for name in evaluators}


def _intervals(table: KnvqaTable, people: People) -> Iterator[PlacedEstimate]:
    models = [model.model for model in table.models]
    named = dict(zip(models, cell_names([("", model) for model in models]), strict=True))
    for model in table.models:
        yield PlacedEstimate(people.name, "right answers", named[model.model], model.human_rate)
    for line in table.lines:
        yield PlacedEstimate(line.evaluator, "right answers", named[line.model], line.human_rate)
        for statistic, estimate in line.estimates.items():
            yield PlacedEstimate(line.evaluator, TITLES[statistic], named[line.model], estimate)


def _as_people_judge(models: Sequence[ModelSummary | EvaluatorOnModel]) -> list[list[Cell]]:
    return [
        ["rows", *(count(model.rows) for model in models)],
        ["right", *(estimated(model.human_rate) for model in models)],
        ["rank", *(_ranked(model.human_rank) for model in models)],
        ["words an answer", *(measured(model.mean_length_words, digits=1) for model in models)],
    ]


def _rates(name: str, lines: Sequence[EvaluatorOnModel], people: People) -> Iterator[list[Cell]]:
    yield [name, *(estimated(line.estimates["positive_rate"]).beside(_rank(line.rank)) for line in lines)]
    if any(line.failed for line in lines):
        yield [f"{people.name}, rows of {name}", *(estimated(line.human_rate) for line in lines)]


def _ranked(rank: float | None) -> Value:
    return Value(_rank(rank), math.nan if rank is None else rank)


def _rank(rank: float | None) -> str:
    return "-" if rank is None else f"{rank:g}"


knvqa_command = TableSpec(
    name="knvqa",
    about="""Compare the verdicts of evaluators on FILE with the human ones, for each model under test.

    Rows that failed, or have no verdict, enter no figure of that evaluator, nor the human ones beside it, and are
    counted. Empty answers are in no mean length.
    """,
    # The paper's evaluators without an LLM: a VQA score is a verdict from the first annotator that agrees.
    metrics="lexical_match,vqa_accuracy,bertscore?with_question=true&threshold=0.5",
    options=[labelled_run_options, cut_option("Metrics without a verdict have none otherwise.")],
    compute=_compute,
    has_headline=True,
    epilog="""\b
Examples:
  gradewire bench knvqa answers.jsonl
  gradewire bench knvqa answers.jsonl --without-flag time-dependent --without-flag bad-gold
  gradewire bench knvqa answers.jsonl --metrics lexical_match,smile,rouge_l --cut rouge_l=0.5

F1 is that of the right answers, which the paper prints as Macro-F1; macro-F1 is the mean of the F1 of right and wrong
ones. The positive rate is the share of answers called right, the paper's score, with the rank of the evaluator among
all for this model.
""",
).command()
