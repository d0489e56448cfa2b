"""Variables of OpenTelemetry that cannot be used are named, and nothing is traced in place of what they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradewire_proto.telemetry.environment import check_environment
from gradewire_proto.telemetry.providers import Service, open_providers
from gradewire_proto.telemetry.settings import TelemetrySettings

WRONG = {
    "OTEL_TRACES_SAMPLER": "sometimes",
    "OTEL_TRACES_SAMPLER_ARG": "7",
    "OTEL_BSP_SCHEDULE_DELAY": "soon",
    "OTEL_BLRP_MAX_QUEUE_SIZE": "0",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "nan",
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": "/nowhere/ca.pem",
    "OTEL_TRACES_EXPORTER": "console",
}


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^the environment variable {name} is '{value}': it takes "):
        check_environment({name: value})


def test_what_the_sdk_takes_is_right(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.touch()
    check_environment(
        {
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": "0.25",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_BLRP_MAX_QUEUE_SIZE": "",
            "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT": "1.5",
            "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate),
            "OTEL_TRACES_EXPORTER": "console, otlp",
        }
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_EXPORTER_OTLP_COMPRESSION", "zip"), ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "x"), *WRONG.items()],
)
def test_a_process_goes_on_and_says_why_it_traces_nothing(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(name, value)

    assert open_providers(TelemetrySettings(endpoint="http://127.0.0.1:9"), Service("gradewire-test", "1")) is None
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("nothing is traced: ")
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
    assert "nothing is traced: 'http/json' is no protocol" in done.stderr
    assert "No such option" in done.stderr
    assert "Traceback" not in done.stderr
