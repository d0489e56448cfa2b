"""Read, merge and write calibrations, which are fitted on labelled answers for one encoder.

A calibration affects verdicts, or the probability from the metric `correctness`, but never vectors, so a model's digest
does not cover calibrations. Instead, each calibration states the digest of the model whose scores it was fitted on.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gradewire_models.catalog.table import Count, Finite, Sha256, Sha256OrNone, Word, read_table
from gradewire_proto.wire_rules import current

Origin = Literal["catalog", "user"]


def _pairs(table: object) -> tuple[tuple[object, object], ...]:
    if isinstance(table, Mapping):
        return tuple(table.items())
    if isinstance(table, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in table):
        return tuple((name, value) for name, value in table)
    raise ValueError(f"must be a table, not {table!r}")


class CanonicalJson(str):
    """A text from `dumped`, so that nobody has to read and write it again, which takes 10 ms for a fit with trees."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A metric's threshold for one encoder, or a fit for the metric `correctness` or `auto`; either has a provenance.

    Attributes:
        metric_version: Version of the metric's definition, from 1, for which the calibration is valid.
        model_digest: Digest of the model whose scores the calibration was fitted on, 64 hex characters.
        parameters: Metric parameters for which the calibration is valid, as (name, value) pairs, sorted by name.
        threshold: Minimum score of a correct answer; None if `fit` decides.
        sentence_weight: For `smile`, the weight of the sentence term in the fit, 0 to 1; None for other metrics.
        fit: JSON object for the metric `correctness` or `auto`; "" for other metrics.
        rows_sha256: SHA-256 of the labelled answers, 64 hex characters; "" if unknown.

    Raises:
        ValueError: Both or neither of threshold and fit are set, or the fit is not a JSON object.
    """

    metric: Word
    metric_version: Count
    model_digest: Sha256
    origin: Origin
    parameters: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_pairs)] = ()
    threshold: Finite | None = None
    sentence_weight: Annotated[float, Field(ge=0, le=1)] | None = None
    fit: str = ""
    rows: Annotated[int, Field(ge=0)] = 0
    rows_sha256: Sha256OrNone = ""
    fitted_on: str = ""
    date: str = ""
    figures: Annotated[tuple[tuple[str, Finite], ...], BeforeValidator(_pairs)] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(sorted(self.parameters)))
        object.__setattr__(self, "figures", tuple(sorted(self.figures)))
        if (self.threshold is None) != bool(self.fit):
            raise ValueError("needs either a threshold or a fit")
        if self.fit:
            # Equal fits need the same JSON text, so that their digests are equal.
            canonical = self.fit if isinstance(self.fit, CanonicalJson) else dumped(json.loads(self.fit))
            if not canonical.startswith("{"):
                raise ValueError("fit must be a JSON object")
            object.__setattr__(self, "fit", str(canonical))

    @property
    def key(self) -> tuple[str, int, tuple[tuple[str, str], ...]]:
        """The metric, version and parameters; a later calibration replaces an earlier one with the same key."""
        return self.metric, self.metric_version, self.parameters

    @property
    def described(self) -> str:
        """The origin and the labelled answers in one line, for display."""
        on = self.fitted_on or f"{self.rows} rows"
        digest = f", SHA-256 {self.rows_sha256[:12]}" if self.rows_sha256 else ""
        return f"{self.origin}: fitted on {on}{digest}{f', {self.date}' if self.date else ''}"

    @property
    def summary(self) -> str:
        """The fitted value and its provenance in one line, for display."""
        values = ",".join(f"{name}={value}" for name, value in self.parameters)
        weight = "" if self.sentence_weight is None else f", sentence_weight {self.sentence_weight:g}"
        whole = "a probability" if self.metric == "correctness" else "bands"
        what = whole if self.threshold is None else f"threshold {self.threshold:.4g}{weight}"
        metric = f"{self.metric}/{self.metric_version}{f' ({values})' if values else ''}"
        return f"fitted for {metric}: {what}; {self.described}"


def read_calibration(values: Mapping[str, Any]) -> StoredCalibration:
    """Read a calibration from a record with the tables `parameters` and `figures`.

    Raises:
        ValueError: A field is missing or unknown, or a value is invalid.
    """
    metric = values.get("metric")
    return read_table(StoredCalibration, {**values, "metric": current(metric)} if isinstance(metric, str) else values)


def merge(below: Iterable[StoredCalibration], above: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Join two collections, sorted by key; a calibration in `above` replaces one with the same key in `below`."""
    by_key = {each.key: each for each in (*below, *above)}
    return tuple(by_key[key] for key in sorted(by_key))


def of_users(calibrations: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Return the users' calibrations, which no catalog can restore."""
    return tuple(each for each in calibrations if each.origin == "user")


def fitting(calibrations: Iterable[StoredCalibration], digest: str) -> tuple[StoredCalibration, ...]:
    """Drop calibrations that were fitted on a model with a digest other than `digest`.

    Keep the catalog's thresholds. A variant inherits these from its base, because the scores of both models must be
    close. Earlier releases also stored the base's fits with a variant, and these cannot be used.
    """
    return tuple(
        each for each in calibrations if each.model_digest == digest or (each.origin == "catalog" and not each.fit)
    )


def dumped(value: Any) -> CanonicalJson:
    """Return a value as canonical JSON: keys sorted, no blanks, ASCII.

    Raises:
        ValueError: A number is not finite.
    """
    return CanonicalJson(json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True))
