"""Metrics that got another name are found under the old one."""

import pytest

from gradewire_proto.conventions.metric_lines import FORMER_NAMES, current
from gradewire_proto.v1 import types_pb2


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("calibrated", "correctness"),
        ("calibrated/2?confidence=0.9&model=m@0123", "correctness/2?confidence=0.9&model=m@0123"),
        ("calibrated.score", "correctness.score"),
        ("correctness", "correctness"),
        ("smile:v1", "smile:v1"),
        ("calibrated_by_hand", "calibrated_by_hand"),
        ("uncalibrated", "uncalibrated"),
        ("smile?note=calibrated", "smile?note=calibrated"),
        ("", ""),
    ],
)
def test_the_name_in_front_is_that_of_now(written: str, read: str) -> None:
    assert current(written) == read


def test_the_names_of_now_are_metrics_and_the_former_ones_are_none() -> None:
    metrics = types_pb2.MetricSpec.DESCRIPTOR.fields_by_name
    assert all(name in metrics for name in FORMER_NAMES.values())
    assert not any(name in metrics for name in FORMER_NAMES)
