"""Tracing settings of a process, and a check of OpenTelemetry's environment variables."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SAMPLERS: Final = (
    "always_on",
    "always_off",
    "parentbased_always_on",
    "parentbased_always_off",
    "traceidratio",
    "parentbased_traceidratio",
)
_VALUES: Final = (
    ("OTEL_TRACES_SAMPLER", f"(?i:{'|'.join(_SAMPLERS)})", f"one of {', '.join(_SAMPLERS)}"),
    ("OTEL_TRACES_SAMPLER_ARG", r"0*1(\.0*)?|0*(\.\d+|0\.?)|\d(\.\d*)?e-\d+", "a share from 0 to 1"),
    (
        "OTEL_(BSP|BLRP)_(SCHEDULE_DELAY|MAX_QUEUE_SIZE|MAX_EXPORT_BATCH_SIZE|EXPORT_TIMEOUT)",
        r"0*[1-9]\d*",
        "a whole number, 1 or more",
    ),
    ("OTEL_EXPORTER_OTLP_((TRACES|LOGS)_)?TIMEOUT", r"(?=.*[1-9])(\d+\.?\d*|\.\d+)", "seconds, more than 0"),
    (
        "OTEL_(TRACES|LOGS)_EXPORTER",
        r"(?i:(.*,)?\s*(otlp|none)\s*(,.*)?)",
        "otlp or none, the only supported exporters",
    ),
)
"""Patterns for names of OpenTelemetry's variables and for their values, and descriptions of the values."""
_FILES: Final = "OTEL_EXPORTER_OTLP_((TRACES|LOGS)_)?(CERTIFICATE|CLIENT_KEY|CLIENT_CERTIFICATE)"


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """The collector for traces and the sampled share. OpenTelemetry's variables set all other options.

    Attributes:
        endpoint: Base URL of a collector. If empty, OTEL_EXPORTER_OTLP_ENDPOINT applies.
        sample_ratio: Share of traces to keep, 0 to 1, if the traces start here. OTEL_TRACES_SAMPLER and
            OTEL_TRACES_SAMPLER_ARG override this setting.
    """

    endpoint: str = ""
    sample_ratio: float = 0.1

    def is_on(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Return True if a collector is set and no standard variable turns tracing off."""
        if _is_set(environment, "OTEL_SDK_DISABLED", "true") or _is_set(environment, "OTEL_TRACES_EXPORTER", "none"):
            return False
        return bool(self.endpoint or any(environment.get(name, "").strip() for name in _ENDPOINTS))


def has_events(environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if evaluation events are exported."""
    return not _is_set(environment, "OTEL_LOGS_EXPORTER", "none")


def protocol_of(signal: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the protocol that OpenTelemetry's variables set for "TRACES" or "LOGS", even if it is not supported."""
    names = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    return next((found for name in names if (found := environment.get(name, "").strip())), "grpc")


def endpoint_problem(endpoint: str) -> str:
    """Return a message about an invalid collector address, to follow the setting's name; "" if the address is valid."""
    if not endpoint.strip() or endpoint.strip().lower().startswith(("http://", "https://")):
        return ""
    return f"{endpoint!r} is not a URL: use http://HOST:PORT, or https:// if the collector has a certificate"


def captures_content(environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if OpenTelemetry's variables allow users' texts in events."""
    return _is_set(environment, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")


def check_environment(environment: Mapping[str, str]) -> None:
    """Check OpenTelemetry's variables, because its SDK would silently ignore some wrong values.

    Raises:
        ValueError: A variable has a wrong value. The message names the variable and the allowed values.
    """
    for name, given in environment.items():
        if not name.startswith("OTEL_") or not (value := given.strip()):
            continue
        wrong = [
            takes for names, values, takes in _VALUES if re.fullmatch(names, name) and not re.fullmatch(values, value)
        ]
        if re.fullmatch(_FILES, name) and not Path(value).is_file():
            wrong = ["the path of an existing file"]
        if wrong:
            raise ValueError(f"environment variable {name} is {value!r}; allowed: {wrong[0]}")


def _is_set(environment: Mapping[str, str], name: str, value: str) -> bool:
    return environment.get(name, "").strip().lower() == value
