"""The OpenAPI document keeps its word: requests drawn from it, good and bad ones, get the answers that it names."""

import json
from typing import Any

import httpx2
import hypothesis
import pytest
import schemathesis
from schemathesis import checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi import checks as openapi
from tests.support.examples import example_count
from tests.support.servers.server_process import ServerProcess

from gradewire_gateway.openapi import document

FEW_METRICS = ("smile", "exactMatch", "lave", "correctness", "compare", "version")
"""Metrics of which few requests are drawn: with all of them, three requests take twenty seconds to draw."""


def without_headers(*metrics: str) -> dict[str, Any]:
    """The document without the headers of calls: one that HTTP does not know is no fault, and a deadline may pass.

    If `metrics` are given, it has no others.
    """
    shown = document()
    properties = shown["components"]["schemas"]["MetricSpec"]["properties"]
    for name in metrics and properties.keys() - set(metrics):
        del properties[name]
    for methods in shown["paths"].values():
        for operation in methods.values():
            operation.pop("parameters", None)
    return shown


LABELS = [f"{method.upper()} {path}" for path, methods in without_headers()["paths"].items() for method in methods]
CHECKS: list[Any] = [
    checks.not_a_server_error,
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_schema_conformance,
    openapi.unsupported_method,
]
"""All but those that compare what is accepted with the schema: the server knows more rules than a schema can say, and
the JSON form of protobuf takes null for what is left out, and numbers as texts, which the document does not show."""
HEADERS = {"authorization": "Bearer right"}


@schemathesis.serializer("application/x-ndjson")
def lines(_context: Any, value: Any) -> bytes:
    """A body of one line, which need not be JSON."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def drawn(count: int) -> hypothesis.settings:
    """Return settings of a test of so many examples, of any speed."""
    return hypothesis.settings(max_examples=count, suppress_health_check=list(hypothesis.HealthCheck))


def check(case: Any, server: ServerProcess) -> None:
    case.call_and_validate(base_url=server.api, headers=HEADERS, checks=CHECKS, timeout=30)


def operations_of(shown: dict[str, Any]) -> dict[str, Any]:
    """All operations of a document, by label."""
    found = [each.ok() for each in schemathesis.openapi.from_dict(shown).get_all_operations()]
    return {each.label: each for each in found}


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    """All operations of the document, with few metrics."""
    return operations_of(without_headers(*FEW_METRICS))


@pytest.fixture(scope="module")
def whole_operations() -> dict[str, Any]:
    """All operations of the document."""
    return operations_of(without_headers())


def check_drawn(operation: Any, settings: hypothesis.settings, server: ServerProcess) -> None:
    """Check an operation as `schema.parametrize()` does, which draws at collection: 5 s in every worker of a run."""

    @settings
    def drawn_case(case: Any, server: ServerProcess) -> None:
        check(case, server)

    drawing = build_operation_test(
        config=operation.schema.config,
        operation=operation,
        test_func=drawn_case,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=make_constants_value_source(operation.schema)),
    )
    drawing(server=server)


def test_all_operations_are_drawn(operations: dict[str, Any]) -> None:
    assert sorted(operations) == sorted(LABELS)


@pytest.mark.parametrize("label", LABELS)
def test_drawn_requests_are_answered_as_it_says(
    label: str, operations: dict[str, Any], http_server: ServerProcess
) -> None:
    check_drawn(operations[label], drawn(example_count(3)), http_server)


@pytest.mark.hostile
@pytest.mark.timeout(900)
@pytest.mark.parametrize("label", LABELS)
def test_many_drawn_requests_are_answered_as_it_says(
    label: str, whole_operations: dict[str, Any], http_server: ServerProcess
) -> None:
    check_drawn(whole_operations[label], drawn(100), http_server)


def test_the_gateway_shows_it(http_server: ServerProcess) -> None:
    shown = httpx2.get(f"{http_server.api}/openapi.json", trust_env=False).json()
    assert shown == json.loads(json.dumps(document()))
