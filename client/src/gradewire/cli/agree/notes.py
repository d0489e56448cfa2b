"""Lines below the tables of agreement: what reproduces each metric, what failed, how far annotators agree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradewire.agreement.annotators.labels import SHOWN_PAIRS
from gradewire.cli.output.names import TITLES
from gradewire.tables import estimated, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire.agreement import MetricAgreement
    from gradewire.agreement.annotators.labels import AnnotatorAgreement
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.cli.agree.result import AgreementResult


def metric_lines(found: AgreementResult, statistics: Sequence[Statistic]) -> Iterator[str]:
    """What reproduces each metric, what failed, is undefined or uncertain."""
    if found.labelled.against is not None:
        yield found.labelled.against.told()
    for metric in found.report.metrics:
        yield found.labelled.tallies[metric.metric].told(metric.metric)
    for metric in found.report.metrics:
        yield from _undefined(metric, statistics)
    yield from abstention_lines(found)


def abstention_lines(found: AgreementResult) -> Iterator[str]:
    """A line for each metric with uncertain verdicts: how many, and the accuracy of the others and of all."""
    for label in found.rows.verdicts:
        if (told := found.abstention(label)) is not None:
            yield (
                f"{label}: {told.uncertain} of {told.judged} verdicts are uncertain "
                f"({told.uncertain / told.judged:.1%}); accuracy {number(told.accuracy_certain)} of the others, "
                f"{number(told.accuracy)} of all"
            )


def annotator_lines(annotators: AnnotatorAgreement | None) -> Iterator[str]:
    """How far annotators agree, all in all; nothing where no row has several."""
    if annotators is not None:
        yield _alphas(annotators)


def annotator_pair_lines(annotators: AnnotatorAgreement | None) -> Iterator[str]:
    """As `annotator_lines`, with the agreement of pairs of annotators."""
    if annotators is not None:
        yield f"{_alphas(annotators)}; Cohen's kappa {_kappas(annotators)}{_draws_of_rows(annotators)}"


def _alphas(annotators: AnnotatorAgreement) -> str:
    alphas = ", ".join(f"{level} {estimated(alpha)}" for level, alpha in annotators.alpha.items())
    return (
        f"annotators: {annotators.items} rows with at least two of up to {annotators.annotators}; "
        f"Krippendorff's alpha {alphas}"
    )


def _kappas(annotators: AnnotatorAgreement) -> str:
    """Kappa of the pairs of columns with the most rows, and how many more pairs there are."""
    if not annotators.pairs:
        return "of no pair"
    shown = ", ".join(
        f"{estimated(pair.kappa)} of annotators {pair.first} and {pair.second} ({pair.items} rows)"
        for pair in annotators.pairs[:SHOWN_PAIRS]
    )
    more = len(annotators.pairs) - SHOWN_PAIRS
    return f"{shown} and {more} more" if more > 0 else shown


def _draws_of_rows(annotators: AnnotatorAgreement) -> str:
    figures = (*annotators.alpha.values(), *(pair.kappa for pair in annotators.pairs))
    made = {each.resamples + each.undefined for each in figures if each.resamples}
    return f"; {max(made)} draws of rows" if made else ""


def _undefined(metric: MetricAgreement, statistics: Sequence[Statistic]) -> Iterator[str]:
    """In how many cells which statistics are not defined, because scores or labels are all alike there."""
    cells = [cell for cell in metric.cells if cell.level == "cell"]
    counts = {statistic: sum(math.isnan(cell.estimates[statistic].value) for cell in cells) for statistic in statistics}
    # A metric without verdicts has no accuracy anywhere: nothing is left out of a mean.
    listed = ", ".join(
        f"{TITLES[statistic]} in {count} of {len(cells)} cells"
        for statistic, count in counts.items()
        if 0 < count < len(cells)
    )
    if listed:
        yield f"{metric.metric}: not defined, and not in the cells' mean: {listed}"
