"""`gradewire bench flips`: measure how metrics react to small changes in answers.

A change is at one place in an answer, or is an edit that keeps the answer right.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gradewire_cli.bench.answer_edits import EDITS
from gradewire_cli.bench.flip_pairs import FlipFile, PairReading, ScoredItems, scored_items, write_items
from gradewire_cli.bench.paper_tables import TableCall, TableResult, described_tallies, table_command
from gradewire_cli.options.common import OUTPUT_FILE, read_groupings, written
from gradewire_cli.options.help import option
from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.tables import ALL_ROWS, NO_NAME, Cell, Table, Value, bare, count, estimated, html_option
from gradewire_cli.scoring.labelled_run import RESAMPLES, described_draws, draw_options, labelled_run_of
from gradewire_cli.scoring.plan import scoring_options
from gradewire_stats.flips import EditStatistics, FlipStatistics, edit_statistics, flip_statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradewire_cli.bench.flip_pairs import EditedAnswer, FlipPair
    from gradewire_cli.results.tallies import MetricTally
    from gradewire_cli.scoring.labelled_run import LabelledRun
    from gradewire_stats.bootstrap import Estimate

_VERDICTS = {
    "decided_right": "decided\nand right",
    "wrong_called_right": "wrong,\ncalled right",
    "right_called_wrong": "right,\ncalled wrong",
    "uncertain_right": "right,\nUNCERTAIN",
    "uncertain_wrong": "wrong,\nUNCERTAIN",
}
_BY_GROUP = {
    "decided_right": "Decided and right",
    "wrong_called_right": "Wrong answers called right without UNCERTAIN",
    "right_called_wrong": "Right answers called wrong without UNCERTAIN",
    "noticed": "Wrong changes noticed (lower score)",
    "kept": "Verdicts kept after a harmless change",
}
_BY_EDIT = {
    "verdicts_changed": "Verdicts that change with an edit",
    "certain_changed": "Certain verdicts that change with an edit",
    "score_change": "Mean absolute change of the score with an edit",
}
_ALL_EDITS = "all edits"
_POSITION = re.compile(r"\Aline \d+\W*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """All statistics by metric.

    Attributes:
        groups: Statistics by grouping (as written in --group-by), group and metric.
        edits: Statistics by edit and metric. Empty without --edits.
    """

    pairs: Mapping[str, FlipStatistics]
    groups: Mapping[str, Mapping[str, Mapping[str, FlipStatistics]]]
    edits: Mapping[str, Mapping[str, EditStatistics]]


def _compute(call: TableCall) -> TableResult | None:
    options, source = call.options, call.source
    run = labelled_run_of({**options, "columns": (), "where": (), "labels": None, "without_flags": ()})
    groupings = read_groupings(options["group_by"])
    file = FlipFile.read(source, PairReading.of(source, call.columns, groupings))
    edits = file.edits() if options["edits"] else []
    items = file.items(edits)
    if options["items"] is not None:
        write_items(options["items"], items)
        click.echo(f"wrote {len(items)} items of {len(file.pairs)} pairs to {options['items']}", err=True)
        return None
    by_metric, labelled = scored_items(items, run, call.transport)
    found = _Found(
        pairs=_flips(file.pairs, by_metric, np.ones(len(file.pairs), dtype=bool), run),
        groups={written(grouping): dict(_grouped(file.pairs, grouping, by_metric, run)) for grouping in groupings},
        edits=_edited(edits, len(file.pairs), by_metric, run) if edits else {},
    )
    always = [*_pair_tables(found.pairs), *_statuses(labelled.tallies, len(items))]
    where = {column: sorted(values) for column, values in source.options.where.items()}
    return TableResult(
        tables=[*always, *_group_tables(found, estimated), *_edit_tables(found, estimated)],
        # Without intervals, many metrics fit side by side.
        headline=[*always, *_group_tables(found, bare), *_edit_tables(found, bare)] if groupings or edits else None,
        notes=list(_notes(labelled.tallies)),
        intervals=_intervals(found),
        left_out=file.sentences(),
        document={
            "file": ", ".join(options["files"]),
            "where": where,
            "pairs": len(file.pairs),
            "edited_answers": len(edits),
            "left_out": dict(file.left_out.counts),
            "bootstrap": described_draws(run.resamples, run.seed, unit="question"),
            "flips": found.pairs,
            "groups": found.groups,
            "edits": found.edits,
            "metrics": described_tallies(labelled.tallies),
        },
        parameters={"group_by": list(options["group_by"]), "edits": options["edits"], "where": where},
        rows=len(items),
        tallies=labelled.tallies,
        server_version=labelled.server_version,
        run=run,
    )


def _flips(
    pairs: Sequence[FlipPair], by_metric: Mapping[str, ScoredItems], members: Any, run: LabelledRun
) -> dict[str, FlipStatistics]:
    places = np.arange(2 * len(pairs)).reshape(-1, 2)[members]
    still_right = np.array([pair.still_right for pair in pairs], dtype=bool)[members]
    return {
        label: flip_statistics(results.forms(places), still_right, **run.draws) for label, results in by_metric.items()
    }


def _grouped(
    pairs: Sequence[FlipPair], grouping: Sequence[str], by_metric: Mapping[str, ScoredItems], run: LabelledRun
) -> Iterator[tuple[str, Mapping[str, FlipStatistics]]]:
    names = [", ".join(pair.groups[name] or NO_NAME for name in grouping) for pair in pairs]
    for group in sorted(set(names)):
        yield group, _flips(pairs, by_metric, np.array([name == group for name in names], dtype=bool), run)


def _edited(
    edits: Sequence[EditedAnswer], pairs: int, by_metric: Mapping[str, ScoredItems], run: LabelledRun
) -> dict[str, dict[str, EditStatistics]]:
    places = np.array([(each.place, 2 * pairs + number) for number, each in enumerate(edits)], dtype=np.intp)
    by_edit = {name: places[[each.edit == name for each in edits]] for name in EDITS}
    return {
        name: {label: edit_statistics(results.forms(chosen), **run.draws) for label, results in by_metric.items()}
        for name, chosen in ({**by_edit, _ALL_EDITS: places}).items()
        if len(chosen)
    }


def _pair_tables(pairs: Mapping[str, FlipStatistics]) -> Iterator[Table]:
    one = next(iter(pairs.values()))
    yield Table(
        f"Verdicts on {one.right} right and {one.wrong} wrong answers, as shares",
        ["metric", *_VERDICTS.values(), "without\nverdict"],
        [
            [label, *(estimated(getattr(found, name)) for name in _VERDICTS), count(found.without_verdict)]
            for label, found in pairs.items()
        ],
    )
    harmful, harmless = one.wrong, one.pairs - one.wrong
    yield Table(
        f"{harmful} wrong and {harmless} harmless changes",
        ["metric", "noticed\n(lower score)", "verdict kept", "answers\nwithout score"],
        [
            [
                label,
                _of(estimated(found.noticed), found.noticed_pairs, harmful),
                _of(estimated(found.kept), found.kept_pairs, harmless),
                count(found.without_score),
            ]
            for label, found in pairs.items()
        ],
    )


def _of(value: Value, counted: int, all_pairs: int) -> Value:
    return value if counted in {0, all_pairs} else value.beside(f"{counted} of {all_pairs} pairs")


def _statuses(tallies: Mapping[str, MetricTally], items: int) -> Iterator[Table]:
    failures: dict[str, Counter[str]] = {label: Counter(tally.failures) for label, tally in tallies.items()}
    for label, tally in tallies.items():
        if tally.verdicts.total() and (unjudged := len(tally.scores) - tally.verdicts.total()):
            failures[label]["scored, no verdict"] += unjudged
    statuses = sorted({status for counts in failures.values() for status in counts})
    if statuses:
        yield Table(
            f"Answers without a score or verdict, of {items}",
            ["metric", *statuses],
            [[label, *(count(counts[status]) for status in statuses)] for label, counts in failures.items() if counts],
        )


def _group_tables(found: _Found, shown: Callable[[Estimate], Value]) -> Iterator[Table]:
    for grouping, groups in found.groups.items():
        for name, title in _BY_GROUP.items():
            rows: list[list[Cell]] = [
                [group, count(next(iter(metrics.values())).pairs), *_across(metrics, name, shown)]
                for group, metrics in groups.items()
            ]
            everything = next(iter(found.pairs.values())).pairs
            rows.append([ALL_ROWS, count(everything), *_across(found.pairs, name, shown)])
            yield Table(f"{title}, by {grouping}", [grouping, "pairs", *found.pairs], rows)


def _edit_tables(found: _Found, shown: Callable[[Estimate], Value]) -> Iterator[Table]:
    for name, title in _BY_EDIT.items() if found.edits else ():
        yield Table(
            title,
            ["edit", "answers", *found.pairs],
            [
                [edit, count(next(iter(metrics.values())).answers), *_across(metrics, name, shown)]
                for edit, metrics in found.edits.items()
            ],
        )


def _across(metrics: Mapping[str, Any], name: str, shown: Callable[[Estimate], Value]) -> list[Value]:
    return [shown(getattr(each, name)) for each in metrics.values()]


def _notes(tallies: Mapping[str, MetricTally]) -> Iterator[str]:
    for label, tally in tallies.items():
        yield tally.summary(label)
        if not tally.verdicts.total() and tally.scores:
            yield f"{label} gives no verdicts, so it has no shares of verdicts"
        for status, (identifier, message) in tally.examples.items():
            # The ID names the answer. The position is that of an item, which is not the user's row.
            why = _POSITION.sub("", message) or "no message"
            yield f"{label} is {status}, for example {identifier}: {why}"


def _intervals(found: _Found) -> Iterator[NamedEstimate]:
    tables: list[tuple[str, Mapping[str, Any], Sequence[str]]] = [
        (ALL_ROWS, found.pairs, (*_VERDICTS, "noticed", "kept")),
        *((group, metrics, tuple(_BY_GROUP)) for groups in found.groups.values() for group, metrics in groups.items()),
        *((edit, metrics, tuple(_BY_EDIT)) for edit, metrics in found.edits.items()),
    ]
    for place, metrics, names in tables:
        for label, each in metrics.items():
            yield from (NamedEstimate(label, name.replace("_", " "), place, getattr(each, name)) for name in names)


flips_command = table_command(
    "flips",
    scoring_options,
    option("--where", multiple=True),
    option("--scores", type=OUTPUT_FILE, multiple=True),
    option("--edits", is_flag=True),
    option("--group-by", multiple=True),
    option("--items", type=OUTPUT_FILE),
    html_option,
    draw_options(resamples=RESAMPLES),
    compute=_compute,
    has_headline=True,
)
