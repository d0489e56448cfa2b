"""Generate the code of the wire format: `python proto/generate.py [ROOT]` (default: this checkout).

protoc would place the Python modules in the client's package `gradewire`. This script moves the generated imports to
`gradewire_proto`. Descriptors keep their public name, `gradewire/v1/…`.

Descriptors have no comments, so `comments.json` contains the protos' comments, for the OpenAPI document. The comments
in types.proto also become the types and descriptions of metrics, choices and parts, and the tables in
docs/reference/metrics.md.
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
from metric_code import Types, choices_module, metrics_module, parameters_module, parts_module, with_tables

PROTO_ROOT = Path(__file__).parent
_PACKAGE = Path("proto/src/gradewire_proto")
_IMPORT = re.compile(r"\bgradewire\.v1(?= import|\.\w+_pb2)")


def generate(root: Path) -> None:
    """Write all generated files of the checkout at `root`, and replace the tables in docs/reference/metrics.md.

    Raises:
        RuntimeError: protoc failed.
        ValueError: A comment of types.proto lacks a required line, or the page lacks a table's markers.
    """
    for name, text in generated(root / "docs/reference/metrics.md").items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")


def generated(page: Path) -> dict[str, str]:
    """Return the text of each generated file by its path in the checkout; raise the same errors as `generate`."""
    made, descriptors = run_protoc()
    raw = {name: text for file in descriptors.file for name, text in comments_of(file)}
    comments = {name: " ".join(raw[name].split()) for name in sorted(raw)}
    types = Types(types_proto(descriptors), raw)
    return {
        **{str(_PACKAGE / "v1" / name): _IMPORT.sub("gradewire_proto.v1", text) for name, text in made.items()},
        str(_PACKAGE / "v1/comments.json"): json.dumps(comments, ensure_ascii=False, indent=1) + "\n",
        str(_PACKAGE / "choices.py"): choices_module(types),
        str(_PACKAGE / "metric_parameters.py"): parameters_module(types),
        str(_PACKAGE / "parts.py"): parts_module(types),
        "client/src/gradewire/metrics/generated.py": metrics_module(types),
        "docs/reference/metrics.md": with_tables(page.read_text("utf-8"), types),
    }


def types_proto(descriptors: FileDescriptorSet) -> FileDescriptorProto:
    """Return the descriptor of types.proto, which defines the metrics."""
    return next(file for file in descriptors.file if file.name.endswith("/types.proto"))


def run_protoc() -> tuple[dict[str, str], FileDescriptorSet]:
    """Return the generated Python code by file name, and the descriptors with their comments.

    Raises:
        RuntimeError: protoc failed.
    """
    sources = sorted(str(path.relative_to(PROTO_ROOT)) for path in PROTO_ROOT.glob("gradewire/v1/*.proto"))
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
        made = {path.name: path.read_text() for path in sorted(Path(scratch, "gradewire", "v1").iterdir())}
        return made, FileDescriptorSet.FromString(Path(scratch, "descriptors").read_bytes())


def comments_of(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """Yield each named element of a file (service, method, message, field, enum, value) with the comment above it."""
    for location in file.source_code_info.location:
        text = location.leading_comments
        if text.strip() and len(location.path) % 2 == 0:  # reserved numbers have an odd path
            element, names = file, [file.package]
            # A path alternates between a field number and an index into that field.
            for number, position in zip(location.path[::2], location.path[1::2], strict=True):
                element = getattr(element, element.DESCRIPTOR.fields_by_number[number].name)[position]
                names.append(element.name)
            yield ".".join(names), text


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PROTO_ROOT.parent)
