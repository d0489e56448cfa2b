"""All that a run of `agree` found, computed in one place for table, JSON and page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradewire.agreement import AgreementReport, JudgedRows
    from gradewire.agreement.annotators.labels import AnnotatorAgreement
    from gradewire.agreement.point import Statistic
    from gradewire.cli.run.judged_rows import JudgedColumns
    from gradewire.cli.run.judging import Judging


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was judged and what came out.

    Attributes:
        judging: The options.
        columns: Rows as they came, with what was left out.
        rows: The same as arrays.
        report: Agreement of the metrics with the labels.
        annotators: Agreement of the annotators with one another; None where no row has several.
    """

    judging: Judging
    columns: JudgedColumns
    rows: JudgedRows
    report: AgreementReport
    annotators: AnnotatorAgreement | None


def find(
    judging: Judging,
    columns: JudgedColumns,
    *,
    pairs: Callable[[Sequence[str]], Sequence[tuple[str, str]]],
    compared: Sequence[Statistic],
    with_groups: bool,
) -> Finding:
    """Computes the figures.

    Args:
        judging: The options.
        columns: What `judging` collected.
        pairs: Gives, for the labels of the metrics, the pairs to be compared.
        compared: Statistics of these comparisons.
        with_groups: Whether groups are told apart.

    Raises:
        InputError: There is nothing to judge, or scipy is not installed.
    """
    from gradewire.agreement import MissingScipyError, agreement  # noqa: PLC0415 - scipy takes a second to load
    from gradewire.agreement.annotators.labels import annotator_agreement  # noqa: PLC0415 - as above

    rows = columns.judged(with_groups=with_groups)
    ratings = columns.ratings()
    resamples, seed = judging.resamples, judging.seed
    compare = pairs(list(rows.scores))
    try:
        report = agreement(rows, compare=compare, compare_statistics=compared, resamples=resamples, seed=seed)
        annotators = annotator_agreement(ratings, resamples=resamples, seed=seed) if len(ratings) else None
    except MissingScipyError as error:
        raise InputError(str(error)) from error
    return Finding(judging=judging, columns=columns, rows=rows, report=report, annotators=annotators)
