"""The result of a run of `agree`, computed once for tables, JSON and page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradewire.agreement import AgreementReport, JudgedRows
    from gradewire.agreement.annotators.labels import AnnotatorAgreement
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.cli.run.labelled_rows import LabelledRows
    from gradewire.cli.run.labelled_run import LabelledRun


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementResult:
    """What was compared, and the figures.

    Attributes:
        run: The options.
        labelled: Rows as they came, with what was left out.
        rows: The same as arrays.
        report: Agreement of the metrics with the labels.
        annotators: Agreement of the annotators with one another; None where no row has several.
    """

    run: LabelledRun
    labelled: LabelledRows
    rows: JudgedRows
    report: AgreementReport
    annotators: AnnotatorAgreement | None


def compute_agreement(
    run: LabelledRun,
    labelled: LabelledRows,
    *,
    pairs: Callable[[Sequence[str]], Sequence[tuple[str, str]]],
    compared: Sequence[Statistic],
    with_groups: bool,
) -> AgreementResult:
    """Computes the figures.

    Args:
        run: The options.
        labelled: What `run` collected.
        pairs: Gives, for the labels of the metrics, the pairs to be compared.
        compared: Statistics of these comparisons.
        with_groups: Whether groups are told apart.

    Raises:
        InputError: There is nothing to judge, or scipy is not installed.
    """
    from gradewire.agreement import MissingScipyError, agreement  # noqa: PLC0415 - scipy takes a second to load
    from gradewire.agreement.annotators.labels import annotator_agreement  # noqa: PLC0415 - as above

    rows = labelled.judged(with_groups=with_groups)
    ratings = labelled.ratings()
    resamples, seed = run.resamples, run.seed
    compare = pairs(list(rows.scores))
    try:
        report = agreement(rows, compare=compare, compare_statistics=compared, resamples=resamples, seed=seed)
        annotators = annotator_agreement(ratings, resamples=resamples, seed=seed) if len(ratings) else None
    except MissingScipyError as error:
        raise InputError(str(error)) from error
    return AgreementResult(run=run, labelled=labelled, rows=rows, report=report, annotators=annotators)
