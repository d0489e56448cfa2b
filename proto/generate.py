"""Generates the Python code of the wire format: `python proto/generate.py [OUTPUT_ROOT]` (default: proto/src).

protoc names Python modules after the path of the .proto file, which would put them into the client's package
`gradewire`; the generated
imports are therefore moved to `gradewire_proto`. The descriptors keep their public name, `gradewire/v1/…`.

Descriptors have no comments, so those of the protos are written beside the code, for the OpenAPI document.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

PROTO_ROOT = Path(__file__).parent
_IMPORT = re.compile(r"\bgradewire\.v1(?= import|\.\w+_pb2)")


def generate(output_root: Path) -> None:
    """Writes `gradewire_proto/v1/*_pb2*.py[i]` and `comments.json` below `output_root`.

    Raises:
        RuntimeError: protoc fails.
    """
    sources = sorted(str(path.relative_to(PROTO_ROOT)) for path in PROTO_ROOT.glob("gradewire/v1/*.proto"))
    package = output_root / "gradewire_proto" / "v1"
    package.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        arguments = [
            "protoc",
            f"-I{PROTO_ROOT}",
            f"-I{files('grpc_tools') / '_proto'}",
            "--include_source_info",
            f"--descriptor_set_out={scratch}/descriptors",
            f"--python_out={scratch}",
            f"--grpc_python_out={scratch}",
            f"--mypy_out=quiet:{scratch}",
            f"--mypy_grpc_out=quiet:{scratch}",
            *sources,
        ]
        if protoc.main(arguments) != 0:
            raise RuntimeError("protoc failed: see the messages above")
        for made in sorted(Path(scratch, "gradewire", "v1").iterdir()):
            (package / made.name).write_text(_IMPORT.sub("gradewire_proto.v1", made.read_text()))
        descriptors = FileDescriptorSet.FromString(Path(scratch, "descriptors").read_bytes())
    comments = dict(sorted(comment for file in descriptors.file for comment in _comments(file)))
    (package / "comments.json").write_text(json.dumps(comments, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _comments(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """Full names of a file's services, methods, messages, fields, enums and values, with the comments above them."""
    for location in file.source_code_info.location:
        text = " ".join(location.leading_comments.split())
        if text and len(location.path) % 2 == 0:  # others stand above what has no name: reserved numbers
            element, names = file, [file.package]
            # Numbers of fields and positions in them take turns.
            for number, position in zip(location.path[::2], location.path[1::2], strict=True):
                element = getattr(element, element.DESCRIPTOR.fields_by_number[number].name)[position]
                names.append(element.name)
            yield ".".join(names), text


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PROTO_ROOT / "src")
