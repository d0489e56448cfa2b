"""The OpenAPI document says of methods, messages, fields and enums what the protos' comments say."""

from gradewire_gateway.app import routes_of
from gradewire_gateway.decisions import MAX_OPTIONS, MAX_QUESTIONS
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.openapi import document
from gradewire_gateway.requests import TIMEOUT_HEADER
from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, UpstreamSettings
from gradewire_gateway.wire import all_methods
from gradewire_proto.descriptors import all_comments
from gradewire_proto.wire_rules import REQUEST_ID_KEY

DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]


def test_every_method_is_described() -> None:
    for method in all_methods():
        said = DOCUMENT["paths"][method.path]["post"]["description"]
        assert said == all_comments()[f"{method.service}.{method.name}"]


def test_a_field_is_described_beside_what_it_holds() -> None:
    items = SCHEMAS["ScoreRequest"]["properties"]["items"]
    assert items["type"] == "array"
    assert items["description"] == all_comments()["gradewire.v1.ScoreRequest.items"]
    assert SCHEMAS["Item"]["properties"]["group"]["description"] == all_comments()["gradewire.v1.Item.group"]


def test_an_enum_tells_its_values() -> None:
    said = SCHEMAS["VerdictStyle"]["description"]
    assert "VERDICT_STYLE_PLAIN: The judge writes only the verdict." in said
    assert "VERDICT_STYLE_REASONS: " in said


def test_what_has_no_comment_has_no_description() -> None:
    assert "gradewire.v1.ItemResult.id" not in all_comments()
    assert SCHEMAS["ItemResult"]["properties"]["id"] == {"type": "string", "default": ""}


def test_endpoints_are_those_of_the_code_with_its_bounds() -> None:
    bounds = SCHEMAS["SystemOneRequest"]["properties"]["questions"]
    assert (
        bounds["maxProperties"] == SCHEMAS["DecisionsRequest"]["properties"]["questions"]["maxItems"] == MAX_QUESTIONS
    )
    assert bounds["additionalProperties"]["properties"]["criteria"]["oneOf"][1]["maxItems"] == MAX_OPTIONS
    parameters = {each["name"] for each in DOCUMENT["components"]["parameters"].values()}
    assert parameters == {TIMEOUT_HEADER, REQUEST_ID_KEY}
    gateway = Gateway(GatewaySettings(upstream=UpstreamSettings(target="x"), listen=ListenSettings(), bounds=Bounds()))
    routes = {route.path for route in routes_of(gateway)}
    assert routes - set(DOCUMENT["paths"]) == {
        "/metrics",
        *(path for path in routes if path.startswith("/page/") and "." in path),
    }
    assert set(DOCUMENT["paths"]) <= routes


def test_without_the_page_its_endpoints_are_left_out() -> None:
    assert set(DOCUMENT["paths"]) - set(document(with_page=False)["paths"]) == {"/", "/page/access", "/page/report"}
