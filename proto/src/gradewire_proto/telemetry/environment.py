"""OpenTelemetry's variables whose wrong values the SDK would replace by others, or fail on without naming them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from opentelemetry.sdk.environment_variables import OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG

_SAMPLERS: Final = (
    "always_on",
    "always_off",
    "parentbased_always_on",
    "parentbased_always_off",
    "traceidratio",
    "parentbased_traceidratio",
)
_SIGNALS: Final = ("", "TRACES_", "LOGS_")
_QUEUE: Final = ("SCHEDULE_DELAY", "MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE", "EXPORT_TIMEOUT")
_OTLP: Final = "OTEL_EXPORTER_OTLP_"


def check_environment(environment: Mapping[str, str]) -> None:
    """Looks at the variables that tracing reads; those that are not set, or empty, are right.

    Raises:
        ValueError: One cannot be used; the message names it and says what it takes.
    """
    for name, (is_right, takes) in _RULES.items():
        value = environment.get(name, "").strip()
        if value and not is_right(value):
            raise ValueError(f"the environment variable {name} is {value!r}: it takes {takes}")


def _is_count(value: str) -> bool:
    return value.isascii() and value.isdecimal() and int(value) > 0


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")


def _is_time(value: str) -> bool:
    return 0 < _number(value) < float("inf")


def _is_share(value: str) -> bool:
    return 0 <= _number(value) <= 1


def _is_ours(value: str) -> bool:
    return not {"otlp", "none"}.isdisjoint(each.strip().lower() for each in value.split(","))


_Rule = tuple[Callable[[str], bool], str]
_RULES: Final[dict[str, _Rule]] = {
    OTEL_TRACES_SAMPLER: (lambda value: value.lower() in _SAMPLERS, f"one of {', '.join(_SAMPLERS)}"),
    OTEL_TRACES_SAMPLER_ARG: (_is_share, "a share from 0 to 1"),
    **{
        f"OTEL_{prefix}_{name}": (_is_count, "a whole number, 1 or more")
        for prefix in ("BSP", "BLRP")
        for name in _QUEUE
    },
    **{f"{_OTLP}{signal}TIMEOUT": (_is_time, "seconds, more than 0") for signal in _SIGNALS},
    **{
        f"OTEL_{signal}EXPORTER": (_is_ours, "otlp or none, for there is no other exporter here")
        for signal in _SIGNALS
        if signal
    },
    **{
        f"{_OTLP}{signal}{name}": (lambda value: Path(value).is_file(), "the path of a file that is there")
        for signal in _SIGNALS
        for name in ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")
    },
}
