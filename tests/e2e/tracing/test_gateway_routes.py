"""Traces of what the gateway answers beside the methods: the page, and posts for rewards."""

import json
import secrets
import urllib.request

from tests.support.servers.otlp_receiver import OtlpReceiver
from tests.support.servers.server_process import ServerProcess

CALLER = "b7ad6b7169203331"


def ask(server: ServerProcess, path: str, trace_id: str, body: object = None) -> bytes:
    headers = {"traceparent": f"00-{trace_id}-{CALLER}-01", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.api}{path}", data, headers)  # noqa: S310 - our own servers
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - our own servers
        said: bytes = reply.read()
        return said


def test_the_page_has_routes_and_its_questions_to_the_server_are_parts_of_its_trace(
    traced_server: ServerProcess, receiver: OtlpReceiver
) -> None:
    trace_id = secrets.token_hex(16)

    ask(traced_server, "/page/main.js", trace_id)
    ask(traced_server, "/page/access", trace_id)

    spans = receiver.trace_with(trace_id, "GET /page/main.js", "GET /page/access", "gradewire.v1.Models/List")
    listed = receiver.spans_named(trace_id, "gradewire.v1.Models/List", 2)
    by_kind = {span.kind: span for span in listed}
    assert by_kind["SERVER"].parent_id == by_kind["CLIENT"].span_id
    assert by_kind["CLIENT"].parent_id == spans["GET /page/access"].span_id
    assert spans["GET /page/main.js"].attributes["http.route"] == "/page/main.js"


def test_a_post_for_rewards_is_a_span_of_the_gateway_and_the_shared_call_is_no_part_of_it(
    traced_server: ServerProcess, receiver: OtlpReceiver
) -> None:
    trace_id, later = secrets.token_hex(16), secrets.token_hex(16)
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "the cat"}]}
    post = {
        "responses_create_params": {"input": [{"role": "user", "content": "what?"}]},
        "response": {"id": "r", "output": [said]},
        "expected_answer": "the cat",
    }

    assert json.loads(ask(traced_server, "/verify", trace_id, post))["reward"] > 0.9
    ask(traced_server, "/page/access", later)

    (span,) = receiver.spans_named(trace_id, "POST /verify", 1)
    assert (span.service, span.parent_id, span.failed) == ("gradewire-gateway", CALLER, False)
    receiver.spans_named(later, "gradewire.v1.Models/List", 2)
    assert [each.name for each in receiver.spans if each.trace_id == trace_id] == ["POST /verify"]
    assert not [event for event in receiver.events if event.trace_id == trace_id]
