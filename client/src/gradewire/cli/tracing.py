"""A trace of a command that scores, where OpenTelemetry's own variables name a collector."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gradewire_proto.telemetry.opening import providers_of
from gradewire_proto.telemetry.settings import TelemetrySettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TRACED: Final = frozenset({"compare", "leaderboard", "prepare", "score"})


@contextmanager
def traced_command(arguments: Sequence[str]) -> Iterator[None]:
    """The span of a command, within which its calls are traced; without a collector nothing is loaded for it.

    Args:
        arguments: Of the command line, without the program's name.
    """
    command = next((text for text in arguments if not text.startswith("-")), "")
    # One run is one trace, which somebody asked for: all of it is kept.
    settings = TelemetrySettings(sample_ratio=1.0)
    if command not in _TRACED or not settings.is_on() or find_spec("opentelemetry") is None:
        yield
        return
    if find_spec("opentelemetry.sdk") is None:
        yield
        return
    from opentelemetry import trace  # noqa: PLC0415 - see the docstring
    from opentelemetry._logs import set_logger_provider  # noqa: PLC0415 - as above

    providers = providers_of(settings, "gradewire", draws_ids=True)
    if providers is None:
        yield
        return
    trace.set_tracer_provider(providers.traces)
    if providers.logs is not None:
        set_logger_provider(providers.logs)
    try:
        with providers.tracer.start_as_current_span(f"gradewire {command} (command)"):
            yield
    finally:
        providers.close()
