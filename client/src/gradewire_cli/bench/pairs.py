"""`gradewire bench pairs`: measure evaluators' agreement with annotators who prefer one of two answers."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire_cli.bench.paper_tables import Columns, TableCall, TableResult, fields_of, table_command
from gradewire_cli.options.connection import ConnectionOptions, connection_of, connection_options
from gradewire_cli.options.help import option
from gradewire_cli.problems import InputError, one_line_errors
from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.progress import progress
from gradewire_cli.results.summary import Summary
from gradewire_cli.results.tables import Table, count, estimated
from gradewire_cli.rows.cells import LeftOut, is_no_choice, listed_votes, unpacked
from gradewire_cli.rows.input_file import compared_official_options, input_options, named_columns
from gradewire_cli.rows.row import Row, question_key_of
from gradewire_cli.scoring.corpus import with_corpus
from gradewire_cli.scoring.labelled_run import RESAMPLES, described_draws, draw_options
from gradewire_cli.scoring.plan import ScorePlan
from gradewire_cli.scoring.row_scorer import RowScorer, ScoredRow
from gradewire_stats.preferences import Choice, JudgedPairs, PreferenceReport, choices_from_scores, preference_agreement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire_cli.rows.formats import Record


_CHOICES: dict[str, Choice] = {"a": "A", "b": "B", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question.

    Attributes:
        position: The pair's place in the file, for messages.
        choices: The choice of each evaluator. None means no choice.
        responses: The two answers, or None if the file lacks an answer.
        instruction_key: A key of the question (see `question_key_of`). A pair without a question has a unique key.
    """

    index: int
    position: str
    votes: tuple[Choice, ...]
    choices: Mapping[str, Choice | None]
    responses: tuple[str, str] | None
    item: Mapping[str, Any]
    instruction_key: str


@dataclass(slots=True)
class PairFile:
    """A file's pairs with votes, and counts of skipped pairs by reason."""

    pairs: list[Pair] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def read(cls, records: Iterable[Record], columns: Columns, choices: Mapping[str, str]) -> Self:
        """Read records; raise InputError if no pair has votes."""
        found = cls()
        for record, fields in fields_of(records, found.left_out):
            try:
                found.pairs.append(_pair(record, fields, columns, choices))
            except ValueError as error:
                found.left_out.add(str(error), record.position)
        if not found.pairs:
            raise InputError(
                f"no pair has votes (columns {', '.join(columns.of('votes'))}): "
                f"{'; '.join(found.left_out.sentences('pairs')) or 'the file is empty'}"
            )
        return found

    def choices(self) -> dict[str, list[Choice | None]]:
        """Return each evaluator's choices in file order. None means no choice."""
        names = dict.fromkeys(name for pair in self.pairs for name in pair.choices)
        return {name: [pair.choices.get(name) for pair in self.pairs] for name in names}

    def without_choice(self, chosen: Mapping[str, Sequence[Choice | None]]) -> dict[str, list[str]]:
        """Return the positions of the pairs without a choice, by evaluator, for evaluators with such pairs."""
        found = {
            name: [pair.position for pair, choice in zip(self.pairs, column, strict=True) if choice is None]
            for name, column in chosen.items()
        }
        return {name: positions for name, positions in found.items() if positions}


def _pair(record: Record, fields: Mapping[str, Any], columns: Columns, choices: Mapping[str, str]) -> Pair:
    values = {name: columns.value(fields, name) for name in columns.usual}
    votes, choice, listed = (unpacked(values[name], brackets="[{") for name in ("votes", "choice", "references"))
    text = {name: "" if value is None else str(value) for name, value in values.items()}
    references = [str(each) for each in (listed if isinstance(listed, list) else [listed] if listed else [])]
    item = {"question": text["question"], "references": references}
    responses = values["response_a"], values["response_b"]
    return Pair(
        index=record.index,
        position=record.position,
        votes=_votes(votes),
        choices=_choices(fields, choice, choices),
        responses=None if None in responses else (str(responses[0]), str(responses[1])),
        item=item,
        instruction_key=question_key_of(text["question_id"], text["image"], item) or f"pair {record.index}",
    )


def _votes(cell: Any) -> tuple[Choice, ...]:
    known = tuple(choice for vote in listed_votes(cell) if (choice := _choice(vote)) is not None)
    if not known:
        raise ValueError("no votes")
    return known


def _choices(fields: Mapping[str, Any], cell: Any, columns: Mapping[str, str]) -> dict[str, Choice | None]:
    if columns:
        return {name: _choice(fields.get(column)) for name, column in columns.items()}
    if isinstance(cell, dict):
        return {str(name): _choice(choice) for name, choice in cell.items()}
    return {"choice": _choice(cell)} if cell is not None else {}


def _choice(cell: Any) -> Choice | None:
    text = str(cell).strip().lower()
    if text in _CHOICES:
        return _CHOICES[text]
    if is_no_choice(cell):
        return None
    raise ValueError('a vote or choice is not "A", "B" or "tie"')


_SIDES = 2
_EXAMPLES = 3


def _compute(call: TableCall) -> TableResult:
    options = call.options
    source = call.source.judged_pairs or call.source
    found = PairFile.read(source.records(), call.columns, named_columns("--choice", options["choices"]))
    chosen, summary, version, place = found.choices(), Summary(), "", ""
    if options["metrics"]:
        connection = connection_of(options)
        with one_line_errors():
            scores, version = asyncio.run(_scores(found.pairs, call, connection, summary))
        place = connection.description
        chosen |= {label: choices_from_scores(sides[:, 0], sides[:, 1]) for label, sides in scores.items()}
    resamples, seed = options["resamples"], options["seed"]
    without_choice = found.without_choice(chosen)
    failed = [name for name, places in without_choice.items() if len(places) == len(found.pairs)]
    if failed and len(failed) == len(chosen) and not options["metrics"]:
        raise InputError(f"no pair has a choice by {', '.join(failed)}. Name another column with --choice NAME=COLUMN")
    report = _report(found.pairs, chosen, resamples=resamples, seed=seed)
    kinds = {"no majority": report.no_majority, "a majority voted for a tie": report.voted_tie}
    return TableResult(
        tables=[_table(report)],
        notes=[],
        intervals=_intervals(report),
        left_out=[
            *found.left_out.sentences("pairs"),
            *(f"skipped {number} pairs: {why}" for why, number in kinds.items() if number),
            *(
                f"{name}: left out {len(places)} pairs without a choice (for example {', '.join(places[:_EXAMPLES])})"
                for name, places in without_choice.items()
            ),
        ],
        document={
            "file": call.source.name,
            "pairs": len(found.pairs),
            "left_out": dict(found.left_out.counts),
            "without_choice": without_choice,
            "bootstrap": described_draws(resamples, seed, unit="pair"),
            "report": report,
        },
        parameters={"resamples": resamples, "seed": seed, "choices": list(options["choices"])},
        rows=len(found.pairs),
        tallies=summary.metrics,
        server_version=version,
        place=place,
    )


def _intervals(report: PreferenceReport) -> Iterator[NamedEstimate]:
    for evaluator in report.evaluators:
        for stratum in evaluator.strata:
            yield NamedEstimate(evaluator.evaluator, "reproduced", stratum.stratum, stratum.reproduced)


def _report(pairs: Sequence[Pair], choices: Any, *, resamples: int, seed: int) -> PreferenceReport:
    words = [[len(text.split()) for text in pair.responses] for pair in pairs if pair.responses]
    judged = JudgedPairs(
        votes=[pair.votes for pair in pairs],
        choices=choices,
        # The baseline "longer answer" needs all lengths.
        lengths_words=([a for a, _ in words], [b for _, b in words]) if len(words) == len(pairs) else None,
        instructions=[pair.instruction_key for pair in pairs],
    )
    try:
        return preference_agreement(judged, resamples=resamples, seed=seed)
    except ValueError as error:
        raise InputError(str(error)) from error


def _table(report: PreferenceReport) -> Table:
    strata = report.evaluators[0].strata
    return Table(
        "Majority votes reproduced, by number of agreeing annotators",
        [
            "evaluator",
            *(f"{stratum.stratum}\n{stratum.pairs + stratum.failed} pairs" for stratum in strata),
            "ties",
            "failed",
        ],
        [
            [
                found.evaluator,
                *(estimated(stratum.reproduced) for stratum in found.strata),
                count(found.strata[-1].ties),
                count(found.strata[-1].failed),
            ]
            for found in report.evaluators
        ],
    )


async def _scores(
    pairs: Sequence[Pair], call: TableCall, connection: ConnectionOptions, summary: Summary
) -> tuple[dict[str, NDArray[np.float64]], str]:
    """Return both answers' scores by label as float64[pairs, 2] (NaN if missing), and the server's version."""
    if missing := next((pair for pair in pairs if pair.responses is None or not pair.item["references"]), None):
        raise InputError(f"--metrics: {missing.position} lacks an answer or references, so it cannot be scored")
    chosen = choose_metrics(call.options["metrics"], MetricDefaults())
    quiet = call.options["quiet"]
    columns: dict[str, NDArray[np.float64]] = {}

    def take(batch: Sequence[ScoredRow]) -> None:
        for scored in batch:
            summary.add(scored.output)
            for label, result in scored.output["scores"].items():
                column = columns.setdefault(label, np.full((len(pairs), _SIDES), math.nan))
                column[divmod(scored.row.index, _SIDES)] = math.nan if result["score"] is None else result["score"]

    async with connection.open(call.transport) as client:
        chosen = await with_corpus(client, _references(pairs), call.source.name, chosen, quiet=quiet)
        scorer = await RowScorer.open(client, ScorePlan(chosen=chosen))
        with progress("scoring", _SIDES * len(pairs), quiet=quiet) as shown:
            await scorer.score(_rows(pairs), take, shown)
        version = (await client.models()).server_version
    return columns, version


def _references(pairs: Sequence[Pair]) -> list[Mapping[str, Any]]:
    """Return each distinct question with its references, which are the corpus for metrics that weight words."""
    return list({json.dumps(pair.item, sort_keys=True): pair.item for pair in pairs}.values())


def _rows(pairs: Sequence[Pair]) -> Iterator[Row]:
    for position, pair in enumerate(pairs):
        for side, response in enumerate(pair.responses or ()):
            item = {**pair.item, "prediction": response}
            yield Row(_SIDES * position + side, pair.position, str(pair.index), item, "", "")


pairs_command = table_command(
    "pairs",
    input_options,
    compared_official_options,
    connection_options,
    option("--choice", "choices", multiple=True),
    option("--metrics"),
    draw_options(resamples=RESAMPLES),
    compute=_compute,
)
