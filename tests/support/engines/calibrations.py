"""Calibrations made by hand, and any that there could be."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from gradewire_models.catalog.calibration import StoredCalibration

SMILE = StoredCalibration(
    metric="smile",
    metric_version=1,
    model_digest="0" * 64,
    origin="catalog",
    parameters=(("preset", "v1"), ("synthetic", "none")),
    threshold=0.61,
    sentence_weight=0.25,
    rows=7,
    rows_sha256="a" * 64,
    fitted_on="seven rows",
    date="2026-11-22",
    figures=(("accuracy_after", 0.9),),
)


def calibration(**changes: Any) -> StoredCalibration:
    return replace(SMILE, **changes)


def stored_calibrations() -> st.SearchStrategy[StoredCalibration]:
    names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    digests = st.text("0123456789abcdef", min_size=64, max_size=64)
    fits = st.dictionaries(texts, st.lists(numbers, max_size=3) | texts, max_size=3)
    return st.builds(
        lambda fit, threshold, **rest: StoredCalibration(
            threshold=threshold, fit="" if threshold is not None else json.dumps(fit), **rest
        ),
        fit=fits,
        threshold=numbers | st.none(),
        metric=names,
        metric_version=st.integers(1, 9),
        model_digest=digests,
        origin=st.sampled_from(["catalog", "user"]),
        parameters=st.dictionaries(names, texts, max_size=3).map(lambda values: tuple(values.items())),
        sentence_weight=st.none() | st.floats(0, 1),
        rows=st.integers(0, 10**9),
        rows_sha256=st.just("") | digests,
        fitted_on=texts,
        date=texts,
        figures=st.dictionaries(names, numbers, max_size=3).map(lambda values: tuple(values.items())),
    )
