"""The way to `Providers` for processes in which OpenTelemetry may be missing, or older than ours."""

import logging
from importlib.metadata import version
from typing import TYPE_CHECKING

from gradewire_proto.telemetry.settings import TelemetrySettings

if TYPE_CHECKING:
    from gradewire_proto.telemetry.providers import Providers

_log = logging.getLogger(__name__)


def providers_of(settings: TelemetrySettings, service: str, *, draws_ids: bool = False) -> "Providers | None":
    """The providers of a process; None, with a line in the log, where nothing can be traced.

    Args:
        settings: Whose `is_on` was asked before.
        service: Names the process in traces, unless the environment does.
        draws_ids: As `Providers`.
    """
    try:
        # It brings OpenTelemetry's SDK, which a process that traces nothing does not load.
        from gradewire_proto.telemetry.providers import Service, open_providers  # noqa: PLC0415
    except ImportError as error:
        _log.warning(
            "a collector is named, and nothing is traced: pip install 'gradewire[otel]' "
            "(OpenTelemetry's libraries are missing or too old: %s)",
            error,
        )
        return None
    return open_providers(settings, Service(service, version("gradewire")), draws_ids=draws_ids)
