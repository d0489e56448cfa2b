"""Calibrations as parameters of a model's description: one a metric, a JSON list of records.

What cannot be read is kept as it stands: the model goes without it, and a gradewire that can read it finds it again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from gradewire_models.catalog.calibration import StoredCalibration, dumped, merge, of_users, read_calibration
from gradewire_proto.conventions.metric_lines import current

FORMAT: Final = 1
_PREFIX: Final = "calibration."
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)
_REASON_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class UnreadableCalibration:
    """A parameter that holds calibrations in a form that this gradewire does not read.

    Attributes:
        metric: Name of the metric, which fails with this model until somebody does something about it.
        text: Its value.
        reason: What is wrong with it; one line, free of the model's place.
    """

    metric: str
    text: str
    reason: str

    @property
    def parameter(self) -> str:
        """Its short name in the description."""
        return f"{_PREFIX}{self.metric}"

    @property
    def told(self) -> str:
        """What is wrong and what to do; one line for people."""
        return (
            f"what was fitted for {self.metric} cannot be read (gradewire.{self.parameter}: {self.reason}): fit it "
            f"again, or take it away with gradewire calibrate --undo --model NAME --metric {self.metric}"
        )


@dataclass(frozen=True, slots=True)
class Described:
    """What a description says was fitted.

    Attributes:
        readable: By metric, version and parameters.
        unreadable: Parameters that are in no form that is read, by name.
    """

    readable: tuple[StoredCalibration, ...] = ()
    unreadable: tuple[UnreadableCalibration, ...] = ()


def to_parameters(
    calibrations: Sequence[StoredCalibration], unreadable: Iterable[UnreadableCalibration] = ()
) -> dict[str, str]:
    """Writes calibrations as parameters of a description, by short name; those `unreadable` stay as they are."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for each in merge(calibrations, ()):
        by_metric.setdefault(each.metric, []).append(_record(each))
    readable = {f"{_PREFIX}{metric}": dumped(records) for metric, records in by_metric.items()}
    return readable | {each.parameter: each.text for each in unreadable}


def calibrations_in(parameters: Mapping[str, str]) -> Described:
    """Reads what was fitted from a description's own parameters, given by their short names."""
    found: list[StoredCalibration] = []
    unreadable: list[UnreadableCalibration] = []
    for name in sorted(parameters):
        if is_calibration(name):
            try:
                found += _records(parameters[name])
            except _UNREADABLE as error:
                # Errors quote what they were given, and that may be a fit of megabytes.
                reason = " ".join(str(error)[:_REASON_CHARACTERS].split()) or type(error).__name__
                unreadable.append(UnreadableCalibration(current(name.removeprefix(_PREFIX)), parameters[name], reason))
    users = of_users(found)
    return Described(merge((each for each in found if each not in users), users), tuple(unreadable))


def is_calibration(name: str) -> bool:
    """Whether a parameter, by its short name, holds calibrations."""
    return name.startswith(_PREFIX)


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
    fit = values.get("fit")
    values["fit"] = "" if fit is None else dumped(fit)
    return read_calibration(values)


@lru_cache(maxsize=16)
def _records(text: str) -> tuple[StoredCalibration, ...]:
    """The records of one parameter; remembered, for repositories are listed again and again and a fit is long."""
    records = json.loads(text)
    if not isinstance(records, list):
        raise TypeError("it is a list of records")
    return tuple(_read(record) for record in records)
