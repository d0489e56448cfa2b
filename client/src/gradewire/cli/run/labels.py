"""Metrics that options name, among those whose results are there."""

from collections.abc import Sequence

from gradewire.cli.problems import InputError
from gradewire.errors import InvalidRequest
from gradewire.metric_types.choice import MetricDefaults, choose_metrics


def label_named(labels: Sequence[str], name: str, option: str) -> str:
    """The label that an option names: the label itself, or the metric as --metrics may write it (smile:v1 for smile).

    Raises:
        InputError: There is none; names those that there are.
    """
    if name in labels:
        return name
    try:
        written = choose_metrics(name, MetricDefaults()).labels
    except InvalidRequest:
        written = ()
    if len(written) != 1 or written[0] not in labels:
        raise InputError(f"{option} {name}: there is no such metric, there are {', '.join(labels)}")
    return written[0]
