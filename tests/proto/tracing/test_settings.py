"""Whether anything is traced: by the settings, and by OpenTelemetry's own variables, of which a wrong one is named."""

from pathlib import Path

import pytest

from gradewire_proto.tracing.settings import (
    TracingSettings,
    captures_content,
    check_environment,
    has_events,
    protocol_of,
)

HERE = TracingSettings(endpoint="http://127.0.0.1:4317")


@pytest.mark.parametrize(
    ("settings", "environment", "said"),
    [
        (TracingSettings(), {}, False),
        (HERE, {}, True),
        (TracingSettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, True),
        (TracingSettings(), {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4317"}, True),
        (TracingSettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        (TracingSettings(), {"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, False),
        (HERE, {"OTEL_SDK_DISABLED": "TRUE"}, False),
        (HERE, {"OTEL_TRACES_EXPORTER": "none"}, False),
        (HERE, {"OTEL_TRACES_EXPORTER": "otlp"}, True),
    ],
)
def test_it_is_on_where_a_collector_is_named(
    settings: TracingSettings, environment: dict[str, str], said: object
) -> None:
    assert settings.is_on(environment) is said


def test_events_can_be_left_out() -> None:
    assert has_events({})
    assert not has_events({"OTEL_LOGS_EXPORTER": "none"})


def test_the_protocol_is_that_of_the_signal_then_of_all_then_grpc() -> None:
    named = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "grpc"}

    assert protocol_of("TRACES", {}) == "grpc"
    assert protocol_of("TRACES", named) == "http/protobuf"
    assert protocol_of("LOGS", named) == "grpc"


def test_texts_are_let_through_by_the_standard_variable_alone() -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert [captures_content({name: value}) for value in ("true", "false", "")] == [True, False, False]


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
    with pytest.raises(ValueError, match=f"^environment variable {name} is '{value}'; allowed: "):
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
