"""Settings of tracing for one process, and whether it is on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Protocol = Literal["auto", "grpc", "http/protobuf"]

DEFAULT_RATIO: Final = 0.1
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where traces go, and how many; OpenTelemetry's own variables (OTEL_…) say the rest.

    Attributes:
        endpoint: Base URL of a collector; empty: what OTEL_EXPORTER_OTLP_ENDPOINT says.
        protocol: Of the collector; "auto": what OTEL_EXPORTER_OTLP_PROTOCOL says, else grpc.
        sample_ratio: Share of the traces that begin here which are kept, 0 to 1, unless OTEL_TRACES_SAMPLER is set.
        events: Whether evaluation events are made of the results of sampled calls.
    """

    endpoint: str = ""
    protocol: Protocol = "auto"
    sample_ratio: float = DEFAULT_RATIO
    events: bool = True

    def is_on(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Whether anything is to be traced: somebody named a collector, and no standard variable says otherwise."""
        if _is_true(environment, "OTEL_SDK_DISABLED") or _is_none(environment, "OTEL_TRACES_EXPORTER"):
            return False
        return bool(self.endpoint or any(environment.get(name, "").strip() for name in _ENDPOINTS))

    def has_events(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Whether evaluation events are exported."""
        return self.events and not _is_none(environment, "OTEL_LOGS_EXPORTER")

    def protocol_of(self, signal: str, environment: Mapping[str, str] = os.environ) -> str:
        """The protocol for "TRACES" or "LOGS", as said; anything but the two known ones is for who opens it."""
        if self.protocol != "auto":
            return self.protocol
        named = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
        return next((found for name in named if (found := environment.get(name, "").strip())), "grpc")


def endpoint_problem(endpoint: str) -> str:
    """What is wrong with the address of a collector, for behind its setting's name; empty where nothing is."""
    if not endpoint.strip() or endpoint.strip().lower().startswith(("http://", "https://")):
        return ""
    return f"{endpoint!r} is no URL: write http://HOST:PORT, or https:// where the collector has a certificate"


def captures_content(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether texts of users may stand in events: the standard variable for it, off unless set to true."""
    return _is_true(environment, _CONTENT)


def _is_true(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() == "true"


def _is_none(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() == "none"
