"""When the client traces: where the application has loaded an OpenTelemetry that has what is needed."""

from collections.abc import Iterator

import pytest
from opentelemetry import _logs, trace

from gradewire import Client, _tracing
from gradewire.testing import StubTransport, echo_scores

assert trace  # what the application has loaded


@pytest.fixture(autouse=True)
def looked_at_once_more() -> Iterator[None]:
    _tracing._is_usable.cache_clear()
    yield
    _tracing._is_usable.cache_clear()


def scored() -> float | None:
    with Client(transport=StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))) as client:
        return (
            client.score([{"references": ["cat"], "prediction": "cat"}], "exact_match")[0].scores["exact_match"].score
        )


def test_an_application_with_an_older_opentelemetry_is_served_untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (_logs.Logger, _logs.NoOpLogger, _logs._internal.ProxyLogger):
        monkeypatch.delattr(kind, "enabled")

    assert scored() == 1.0
    assert _tracing.call_trace("call") is _tracing.stream_trace("stream") is _tracing.engine_trace()


def test_one_that_is_new_enough_is_used() -> None:
    assert scored() == 1.0
    with _tracing.call_trace("call") as call:
        assert call is not _tracing.UNTRACED
