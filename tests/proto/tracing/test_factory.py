"""A process whose OpenTelemetry is missing or too old serves on, and says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradewire_proto.tracing.factory import open_tracing
from gradewire_proto.tracing.settings import TracingSettings

SETTINGS = TracingSettings(endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("missing", ["gradewire_proto.tracing.sdk", "opentelemetry.sdk._logs"])
def test_without_the_libraries_nothing_is_traced(
    missing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "gradewire_proto.tracing.sdk", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)

    assert open_tracing(SETTINGS, "gradewire-test") is None

    (line,) = (record.getMessage() for record in caplog.records)
    assert "Run: pip install 'gradewire[otel]'" in line
    assert missing in line


def test_with_them_the_process_is_named() -> None:
    tracing = open_tracing(SETTINGS, "gradewire-test")
    assert tracing is not None
    try:
        assert tracing.traces.resource.attributes["service.name"] == "gradewire-test"
    finally:
        tracing.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "x"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
    ],
)
def test_a_process_goes_on_and_says_why_it_traces_nothing(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(name, value)

    assert open_tracing(SETTINGS, "gradewire-test") is None
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("no tracing: ")
    assert name in line


def test_a_command_goes_on_with_variables_that_are_meant_for_others() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("gradewire"), "score", "--no-such-option"],
        env=os.environ
        | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "no tracing: 'http/json' is not a collector's protocol" in done.stderr
    assert "No such option" in done.stderr
    assert "Traceback" not in done.stderr
