"""A fit for an encoder on labelled answers, as its description carries it.

It decides about verdicts, or about the probability that metric `correctness` gives, and never about a vector: so a
model's digest does not cover it, and it is bound to the digest of the model whose scores it was fitted on.
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
    raise ValueError(f"should be a table, not {table!r}")


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A threshold of a metric with one encoder, or a fit of metric `correctness` or `auto`, and where it comes from.

    Attributes:
        metric: Name of the metric.
        metric_version: Of the metric's definition, 1 and up; it holds for that one only.
        model_digest: Of the model whose scores it was fitted on, 64 hex characters.
        origin: The catalog, or a user of this repository.
        parameters: Names and values, as a metric line writes them, that scores must have for it to hold; by name.
        threshold: Score from which an answer counts as right; None where `fit` says all.
        sentence_weight: Of `smile`: weight 0 to 1 of the sentence term that it was fitted with; None for other metrics.
        fit: JSON object of metric `correctness` or `auto`, which alone reads it; "" for other metrics.
        rows: Labelled answers that it was fitted on.
        rows_sha256: SHA-256 over those rows, 64 hex characters; "" where nobody said.
        fitted_on: The rows, for people; one line.
        date: ISO date of the fit, "" where nobody said.
        figures: What it was worth, for people, by name.

    Raises:
        ValueError: There are both a threshold and a fit, or neither, or the fit is no JSON object.
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
            raise ValueError("there is a threshold or a fit, and not both")
        if self.fit:
            fit = json.loads(self.fit)
            if not isinstance(fit, dict):
                raise ValueError("fit is a JSON object")
            # One form, so that equal fits have equal digests wherever they were written.
            object.__setattr__(self, "fit", dumped(fit))

    @property
    def key(self) -> tuple[str, int, tuple[tuple[str, str], ...]]:
        """Its purpose: metric, version and parameters. Of two with one key the later one counts."""
        return self.metric, self.metric_version, self.parameters

    @property
    def described(self) -> str:
        """The origin and the rows of the fit; one line for people."""
        on = self.fitted_on or f"{self.rows} rows"
        digest = f", SHA-256 {self.rows_sha256[:12]}" if self.rows_sha256 else ""
        return f"{self.origin}: fitted on {on}{digest}{f', {self.date}' if self.date else ''}"

    @property
    def summary(self) -> str:
        """The fitted value and its provenance; one line for people."""
        values = ",".join(f"{name}={value}" for name, value in self.parameters)
        weight = "" if self.sentence_weight is None else f", sentence_weight {self.sentence_weight:g}"
        whole = "a probability" if self.metric == "correctness" else "bands"
        what = whole if self.threshold is None else f"threshold {self.threshold:.4g}{weight}"
        metric = f"{self.metric}/{self.metric_version}{f' ({values})' if values else ''}"
        return f"fitted for {metric}: {what}; {self.described}"


def read_calibration(values: Mapping[str, Any]) -> StoredCalibration:
    """Read a record whose `parameters` and `figures` are tables.

    Raises:
        ValueError: A field is missing, unknown or of a wrong type, or its value is not of this form.
    """
    metric = values.get("metric")
    return read_table(StoredCalibration, {**values, "metric": current(metric)} if isinstance(metric, str) else values)


def merge(below: Iterable[StoredCalibration], above: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Join both, sorted by key; where two have one key, the one `above` replaces the one `below`."""
    by_key = {each.key: each for each in (*below, *above)}
    return tuple(by_key[key] for key in sorted(by_key))


def of_users(calibrations: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Return those that users fitted: the ones that no catalog can give back."""
    return tuple(each for each in calibrations if each.origin == "user")


def fitting(calibrations: Iterable[StoredCalibration], digest: str) -> tuple[StoredCalibration, ...]:
    """Leave out what users fitted on scores of a model with another `digest`.

    Those of the catalog stay: a variant has its base's, as its scores are accepted only where they are the base's.
    """
    return tuple(each for each in calibrations if each.origin == "catalog" or each.model_digest == digest)


def dumped(value: Any) -> str:
    """The one JSON text of a value: sorted, without blanks, ASCII; ValueError for a number that is not finite."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
