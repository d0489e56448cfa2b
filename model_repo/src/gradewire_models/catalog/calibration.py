"""A fit for an encoder on labelled answers, as its description carries it. Light: standard library only.

It decides about verdicts, or about the probability that metric `correctness` gives, and never about a vector: so a
model's digest does not cover it, and it is bound to the digest of the model whose scores it was fitted on.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gradewire_models.catalog.table import SHA256, read_table
from gradewire_proto.wire_rules import current

Origin = Literal["catalog", "user"]


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
        ValueError: A value is not of this form; the message names it.
    """

    metric: str
    metric_version: int
    model_digest: str
    origin: Origin
    parameters: tuple[tuple[str, str], ...] = ()
    threshold: float | None = None
    sentence_weight: float | None = None
    fit: str = ""
    rows: int = 0
    rows_sha256: str = ""
    fitted_on: str = ""
    date: str = ""
    figures: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(sorted(self.parameters)))
        object.__setattr__(self, "figures", tuple(sorted(self.figures)))
        self._check()
        if self.fit:
            # One form, so that equal fits have equal digests wherever they were written.
            object.__setattr__(self, "fit", dumped(json.loads(self.fit)))

    def _check(self) -> None:
        texts = (self.metric, self.model_digest, self.fit, self.rows_sha256, self.fitted_on, self.date)
        pairs = [text for pair in self.parameters for text in pair]
        weight = self.sentence_weight
        rules = {
            "metric, digests, fitted_on, date and parameters are texts": all(
                isinstance(text, str) for text in (*texts, *pairs)
            ),
            "metric_version is a whole number, 1 or more": _is_count(self.metric_version) and self.metric_version,
            "rows is a whole number, 0 or more": _is_count(self.rows),
            f"origin is one of {', '.join(get_args(Origin))}": self.origin in get_args(Origin),
            "figures are finite numbers": all(_is_number(value) for _, value in self.figures),
            "there is a threshold or a fit, and not both": (self.threshold is None) == bool(self.fit),
            "threshold is a finite number": self.threshold is None or _is_number(self.threshold),
            "sentence_weight lies in 0 to 1": weight is None or (_is_number(weight) and 0 <= weight <= 1),
        }
        for rule, kept in rules.items():
            if not kept:
                raise ValueError(rule)
        if not self.metric.isidentifier():
            raise ValueError(f"metric is a name, not {self.metric!r}")
        if not SHA256.fullmatch(self.model_digest) or not (
            self.rows_sha256 == "" or SHA256.fullmatch(self.rows_sha256)
        ):
            raise ValueError("model_digest and rows_sha256 are 64 lower-case hex characters")
        if self.fit and not isinstance(json.loads(self.fit), dict):
            raise ValueError("fit is a JSON object")

    @property
    def key(self) -> tuple[str, int, tuple[tuple[str, str], ...]]:
        """What it is for: metric, its version, and parameters. Of two with one key the later one counts."""
        return self.metric, self.metric_version, self.parameters

    @property
    def described(self) -> str:
        """Who fitted it on what; one line for people."""
        on = self.fitted_on or f"{self.rows} rows"
        digest = f", SHA-256 {self.rows_sha256[:12]}" if self.rows_sha256 else ""
        return f"{self.origin}: fitted on {on}{digest}{f', {self.date}' if self.date else ''}"

    @property
    def summary(self) -> str:
        """What was fitted, and its provenance; one line for people."""
        values = ",".join(f"{name}={value}" for name, value in self.parameters)
        weight = "" if self.sentence_weight is None else f", sentence_weight {self.sentence_weight:g}"
        whole = "a probability" if self.metric == "correctness" else "bands"
        what = whole if self.threshold is None else f"threshold {self.threshold:.4g}{weight}"
        metric = f"{self.metric}/{self.metric_version}{f' ({values})' if values else ''}"
        return f"fitted for {metric}: {what}; {self.described}"


def read_calibration(values: Mapping[str, Any]) -> StoredCalibration:
    """Reads a record whose `parameters` and `figures` are tables.

    Raises:
        ValueError: A field is missing, unknown or of a wrong type, or its value is not of this form.
    """
    values = dict(values)
    for name in ("parameters", "figures"):
        if not isinstance(table := values.get(name, {}), Mapping):
            raise ValueError(f"{name} should be a table, not {table!r}")  # noqa: TRY004 - as of every other field
        values[name] = tuple(table.items())
    if isinstance(metric := values.get("metric"), str):
        values["metric"] = current(metric)
    return read_table(StoredCalibration, values)


def merge(below: Iterable[StoredCalibration], above: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Joins both, sorted by key; where two have one key, the one `above` replaces the one `below`."""
    by_key = {each.key: each for each in (*below, *above)}
    return tuple(by_key[key] for key in sorted(by_key))


def of_users(calibrations: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Those that users fitted: the ones that no catalog can give back."""
    return tuple(each for each in calibrations if each.origin == "user")


def fitting(calibrations: Iterable[StoredCalibration], digest: str) -> tuple[StoredCalibration, ...]:
    """Leaves out what users fitted on scores of a model with another `digest`.

    Those of the catalog stay: a variant has its base's, as its scores are accepted only where they are the base's.
    """
    return tuple(each for each in calibrations if each.origin == "catalog" or each.model_digest == digest)


def dumped(value: Any) -> str:
    """The one JSON text of a value: sorted, without blanks, ASCII; ValueError for a number that is not finite."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
