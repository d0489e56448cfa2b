"""Nothing that a released client relies on disappears from the wire format.

`released.json` is the shape at the last release (before the first one: of the first version that landed). A field
that goes has to be reserved. After a release: `python tests/proto/test_compatibility.py` writes the file anew.
"""

import json
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2, types_pb2

RELEASED = Path(__file__).with_name("released.json")
FILES = (types_pb2, scoring_pb2, references_pb2, models_pb2, judging_pb2)

Shape = dict[str, Any]


def shape_of(file: FileDescriptor) -> Shape:
    """Messages with their fields by number, enums with their values, methods with their types."""
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return {
        "messages": {
            message.name: {
                str(field.number): [field.name, field.type, field.type_name, field.label, field.proto3_optional]
                for field in message.field
            }
            for message in proto.message_type
        },
        "enums": {enum.name: {str(value.number): value.name for value in enum.value} for enum in proto.enum_type},
        "methods": {
            f"{service.name}.{method.name}": [
                method.input_type,
                method.output_type,
                method.client_streaming,
                method.server_streaming,
            ]
            for service in proto.service
            for method in service.method
        },
    }


def current_shape() -> dict[str, Shape]:
    """The shape of every file of the package."""
    return {module.DESCRIPTOR.name: shape_of(module.DESCRIPTOR) for module in FILES}


def is_reserved(message: str, number: int) -> bool:
    """Whether a message has set a field number aside."""
    for module in FILES:
        if message in module.DESCRIPTOR.message_types_by_name:
            proto = descriptor_pb2.DescriptorProto()
            module.DESCRIPTOR.message_types_by_name[message].CopyToProto(proto)
            return any(span.start <= number < span.end for span in proto.reserved_range)
    return False


def breaking_changes(released: dict[str, Shape], current: dict[str, Shape]) -> list[str]:
    """What a client of the released shape would trip over."""
    found = []
    for file, old in released.items():
        new = current.get(file, {"messages": {}, "enums": {}, "methods": {}})
        for message, fields in old["messages"].items():
            for number, field in fields.items():
                now = new["messages"].get(message, {}).get(number)
                if now != field and not (now is None and is_reserved(message, int(number))):
                    found.append(f"{message}.{field[0]} = {number} was {field}, is {now}")
        for kind in ("enums", "methods"):
            for name, value in old[kind].items():
                now = new[kind].get(name)
                gone = now is None or (kind == "enums" and not value.items() <= now.items())
                if gone or (kind == "methods" and now != value):
                    found.append(f"{name} was {value}, is {now}")
    return found


def test_nothing_released_is_gone() -> None:
    assert breaking_changes(json.loads(RELEASED.read_text()), current_shape()) == []


def test_the_check_sees_a_renumbered_field_and_a_lost_method() -> None:
    released = current_shape()
    changed = json.loads(json.dumps(released))
    item = changed["gradewire/v1/types.proto"]["messages"]["Item"]
    item["99"] = item.pop("4")
    del changed["gradewire/v1/scoring.proto"]["methods"]["Scoring.Score"]

    found = breaking_changes(released, changed)

    assert len(found) == 2
    assert "Item.prediction" in found[0]
    assert "Scoring.Score" in found[1]


if __name__ == "__main__":
    RELEASED.write_text(json.dumps(current_shape(), indent=1, sort_keys=True) + "\n")
