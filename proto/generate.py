"""Generates the Python code of the wire format: `python proto/generate.py [OUTPUT_ROOT]` (default: proto/src).

protoc names Python modules after the path of the .proto file, which would put them into the client's package
`gradewire`; the generated
imports are therefore moved to `gradewire_proto`. The descriptors keep their public name, `gradewire/v1/…`.
"""

import re
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc

PROTO_ROOT = Path(__file__).parent
_IMPORT = re.compile(r"\bgradewire\.v1(?= import|\.\w+_pb2)")


def generate(output_root: Path) -> None:
    """Writes `gradewire_proto/v1/*_pb2*.py[i]` below `output_root`; raises RuntimeError where protoc fails."""
    sources = sorted(str(path.relative_to(PROTO_ROOT)) for path in PROTO_ROOT.glob("gradewire/v1/*.proto"))
    package = output_root / "gradewire_proto" / "v1"
    package.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        arguments = [
            "protoc",
            f"-I{PROTO_ROOT}",
            f"-I{files('grpc_tools') / '_proto'}",
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


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PROTO_ROOT / "src")
