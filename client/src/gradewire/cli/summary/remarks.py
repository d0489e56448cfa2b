"""Remarks below a summary: which figures say something else than they seem to, and what to do about it."""

import shlex
from collections.abc import Iterator

from gradewire.cli.output.summary import MetricTally, Summary
from gradewire.metric_types import Correctness
from gradewire.results import ScoreWarning

# Less than this between a mean and a share of rows misleads nobody.
_FAR = 0.05


def remarks(summary: Summary) -> Iterator[str]:
    """A sentence where means lie far from shares of right answers, and the next step for verdicts nobody fitted."""
    misleading = [
        f"{label} calls {tally.share_right:.1%} of the rows right, and its mean is {tally.mean:.3f}"
        for label, tally in summary.metrics.items()
        # NaN, where a metric gives no verdict, is not more than anything.
        if abs(tally.mean - tally.share_right) > _FAR and not _is_probability(tally)
    ]
    if misleading:
        there = any(_is_probability(tally) for tally in summary.metrics.values())
        yield (
            f"a mean is no share of right answers: {'; '.join(misleading)}. Read the share right, or "
            f"{'the mean of' if there else 'score'} {Correctness.name}, "
            f"{'' if there else 'whose mean is '}a probability"
        )
    for label, tally in summary.metrics.items():
        if tally.warnings[ScoreWarning.UNCALIBRATED] and tally.line:
            yield (
                f"{label} is {ScoreWarning.UNCALIBRATED}: nobody fitted the threshold of its verdicts to this encoder. "
                f"Next step: gradewire calibrate LABELLED_FILE --metric {shlex.quote(tally.line)}"
            )


def _is_probability(tally: MetricTally) -> bool:
    return tally.line.partition("?")[0].partition("/")[0] == Correctness.name
