"""The OpenAPI document says of methods, messages, fields and enums what the protos' comments say."""

from gradewire_gateway.openapi import document
from gradewire_gateway.wire import all_methods
from gradewire_proto.descriptors import all_comments

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
    assert "VERDICT_STYLE_PLAIN: The verdict alone." in said
    assert "VERDICT_STYLE_REASONS: " in said


def test_what_has_no_comment_has_no_description() -> None:
    assert "gradewire.v1.ItemResult.id" not in all_comments()
    assert SCHEMAS["ItemResult"]["properties"]["id"] == {"type": "string", "default": ""}
