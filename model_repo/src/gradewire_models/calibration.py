"""What was fitted for an encoder on labelled answers, as its description carries it. Light: standard library only.

It decides about verdicts, or about the probability that metric `calibrated` gives, and never about a vector: so a
model's digest does not cover it, and it is bound to the digest of the model whose scores it was fitted on.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, get_args

Origin = Literal["catalog", "user"]

FORMAT: Final = 1
_PREFIX: Final = "calibration."
_SHA256_CHARS: Final = 64
_OLD_PARAMETERS: Final = ("smile_threshold", "smile_sentence_weight")


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A threshold of a metric with one encoder, or the fit of metric `calibrated`, and where it comes from.

    Attributes:
        metric: Name of the metric.
        metric_version: Of the metric's definition, 1 and up; it holds for that one only.
        model_digest: Of the model whose scores it was fitted on, 64 hex characters.
        origin: The catalog, or a user of this repository.
        parameters: Names and values, as a metric line writes them, that scores must have for it to hold; by name.
        threshold: Score from which an answer counts as right; None where `fit` says all.
        sentence_weight: Of `smile`: weight 0 to 1 of the sentence term that it was fitted with; None for other metrics.
        fit: JSON object of metric `calibrated`, which alone reads it; "" for other metrics.
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
            object.__setattr__(self, "fit", _dumped(json.loads(self.fit)))

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
        if not _is_sha256(self.model_digest) or not (self.rows_sha256 == "" or _is_sha256(self.rows_sha256)):
            raise ValueError("model_digest and rows_sha256 are 64 lower-case hex characters")
        if self.fit and not isinstance(json.loads(self.fit), dict):
            raise ValueError("fit is a JSON object")

    @property
    def place(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What it is for; a later one for the same takes its place."""
        return self.metric, self.parameters

    @property
    def described(self) -> str:
        """Whose fit on what, one line for people."""
        on = self.fitted_on or f"{self.rows} rows"
        digest = f", SHA-256 {self.rows_sha256[:12]}" if self.rows_sha256 else ""
        return f"{self.origin}: fitted on {on}{digest}{f', {self.date}' if self.date else ''}"

    @property
    def told(self) -> str:
        """What was fitted, and its provenance; one line for people."""
        values = ",".join(f"{name}={value}" for name, value in self.parameters)
        weight = "" if self.sentence_weight is None else f", sentence_weight {self.sentence_weight:g}"
        what = "a probability" if self.threshold is None else f"threshold {self.threshold:.4g}{weight}"
        return f"fitted for {self.metric}{f' ({values})' if values else ''}: {what}; {self.described}"


def merge(below: Iterable[StoredCalibration], above: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Both, where those `above` take the place of those `below`; by metric and parameters."""
    places = {each.place: each for each in below} | {each.place: each for each in above}
    return tuple(places[place] for place in sorted(places))


def of_users(calibrations: Iterable[StoredCalibration]) -> tuple[StoredCalibration, ...]:
    """Those that users fitted: the ones that no catalog can give back."""
    return tuple(each for each in calibrations if each.origin == "user")


def fitting(calibrations: Iterable[StoredCalibration], digest: str) -> tuple[StoredCalibration, ...]:
    """Without those that users fitted on scores of another model than the one of this digest.

    Those of the catalog stay: a variant has its base's, as its scores are accepted only where they are the base's.
    """
    return tuple(each for each in calibrations if each.origin == "catalog" or each.model_digest == digest)


def to_parameters(calibrations: Sequence[StoredCalibration]) -> dict[str, str]:
    """As parameters of a description, by short name: one a metric, a JSON list."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for each in merge(calibrations, ()):
        by_metric.setdefault(each.metric, []).append(_record(each))
    return {f"{_PREFIX}{metric}": _dumped(records) for metric, records in by_metric.items()}


def calibrations_in(facts: Mapping[str, str]) -> tuple[StoredCalibration, ...]:
    """What a description says, of our own parameters in it by their short names.

    Raises:
        ValueError: It says it in another form; the message names the parameter.
    """
    found: list[StoredCalibration] = []
    for name in sorted(facts):
        if name.startswith(_PREFIX):
            try:
                found += _records(facts[name])
            except (ValueError, TypeError, RecursionError) as error:
                raise ValueError(
                    f"gradewire.{name} is no calibration ({error}): fit it again or take it away with "
                    "gradewire calibrate --undo"
                ) from error
    return merge(found, _old(facts) if not found else ())


def is_calibration(name: str) -> bool:
    """Whether a parameter, by its short name, holds calibrations."""
    return name.startswith(_PREFIX) or name in _OLD_PARAMETERS


def _old(facts: Mapping[str, str]) -> Iterable[StoredCalibration]:
    """What descriptions before version 6 said of SMILE's default preset; nobody knows on what it was fitted."""
    if all(name in facts for name in _OLD_PARAMETERS):
        threshold, weight = (float(facts[name]) for name in _OLD_PARAMETERS)
        yield StoredCalibration(
            metric="smile",
            metric_version=1,
            model_digest=facts["digest"],
            origin="user",
            parameters=(("preset", "v1"), ("synthetic", "none")),
            threshold=threshold,
            sentence_weight=weight,
            fitted_on="unknown rows",
        )


def _record(calibration: StoredCalibration) -> dict[str, Any]:
    record: dict[str, Any] = {"format": FORMAT}
    record |= {name: getattr(calibration, name) for name in StoredCalibration.__dataclass_fields__}
    record |= {"parameters": dict(calibration.parameters), "figures": dict(calibration.figures)}
    kept = {name: value for name, value in record.items() if value not in (None, "", {})}
    return kept | ({"fit": json.loads(calibration.fit)} if calibration.fit else {})


def _read(record: Any) -> StoredCalibration:
    if not isinstance(record, dict):
        raise TypeError("a record is an object")
    values = dict(record)
    if (version := values.pop("format", None)) != FORMAT:
        raise ValueError(f"its format is {version!r}, this gradewire reads {FORMAT}")
    if unknown := sorted(set(values) - set(StoredCalibration.__dataclass_fields__)):
        raise ValueError(f"it has an unknown {unknown[0]!r}")
    for name in ("parameters", "figures"):
        entries = values.get(name, {})
        if not isinstance(entries, dict):
            raise TypeError(f"{name} is an object")
        values[name] = tuple(entries.items())
    fit = values.get("fit")
    values["fit"] = "" if fit is None else _dumped(fit)
    return StoredCalibration(**values)


@lru_cache(maxsize=16)
def _records(text: str) -> tuple[StoredCalibration, ...]:
    """The records of one parameter; remembered, for repositories are listed again and again and a fit is long."""
    records = json.loads(text)
    if not isinstance(records, list):
        raise TypeError("it is a list of records")
    return tuple(_read(record) for record in records)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_sha256(text: str) -> bool:
    return len(text) == _SHA256_CHARS and set(text) <= set("0123456789abcdef")
