"""Whether anything is traced: by the settings, and by OpenTelemetry's own variables."""

import pytest

from gradewire_proto.telemetry.settings import TelemetrySettings, captures_content

HERE = TelemetrySettings(endpoint="http://127.0.0.1:4317")


@pytest.mark.parametrize(
    ("settings", "environment", "said"),
    [
        (TelemetrySettings(), {}, False),
        (HERE, {}, True),
        (TelemetrySettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, True),
        (TelemetrySettings(), {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4317"}, True),
        (TelemetrySettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        (TelemetrySettings(), {"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, False),
        (HERE, {"OTEL_SDK_DISABLED": "TRUE"}, False),
        (HERE, {"OTEL_TRACES_EXPORTER": "none"}, False),
        (HERE, {"OTEL_TRACES_EXPORTER": "otlp"}, True),
    ],
)
def test_it_is_on_where_a_collector_is_named(
    settings: TelemetrySettings, environment: dict[str, str], said: object
) -> None:
    assert settings.is_on(environment) is said


def test_events_can_be_left_out_by_either() -> None:
    assert HERE.has_events({})
    assert not HERE.has_events({"OTEL_LOGS_EXPORTER": "none"})
    assert not TelemetrySettings(endpoint="http://c", events=False).has_events({})


def test_the_protocol_is_that_of_the_signal_then_of_all_then_grpc() -> None:
    named = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "grpc"}

    assert HERE.protocol_of("TRACES", {}) == "grpc"
    assert HERE.protocol_of("TRACES", named) == "http/protobuf"
    assert HERE.protocol_of("LOGS", named) == "grpc"
    assert TelemetrySettings(protocol="http/protobuf").protocol_of("LOGS", named) == "http/protobuf"


def test_texts_are_let_through_by_the_standard_variable_alone() -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert [captures_content({name: value}) for value in ("true", "false", "")] == [True, False, False]
