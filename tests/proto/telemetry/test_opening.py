"""A process whose OpenTelemetry is missing or too old serves on, and says what to do."""

import sys

import pytest

from gradewire_proto.telemetry.opening import providers_of
from gradewire_proto.telemetry.settings import TelemetrySettings

SETTINGS = TelemetrySettings(endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("missing", ["gradewire_proto.telemetry.providers", "opentelemetry.sdk._logs"])
def test_without_the_libraries_nothing_is_traced(
    missing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("gradewire_proto.telemetry.providers", "gradewire_proto.telemetry.exporters"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)

    assert providers_of(SETTINGS, "gradewire-test") is None

    (line,) = (record.getMessage() for record in caplog.records)
    assert "nothing is traced: pip install 'gradewire[otel]'" in line
    assert missing in line


def test_with_them_the_process_is_named() -> None:
    providers = providers_of(SETTINGS, "gradewire-test")
    assert providers is not None
    try:
        assert providers.traces.resource.attributes["service.name"] == "gradewire-test"
    finally:
        providers.close()
