"""Generate Python code from model_config.proto: `python model_repo/generate.py [OUTPUT_ROOT]` (default: src)."""

import sys
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent


def generate(output_root: Path) -> None:
    """Write `_model_config_pb2.py` and its `.pyi` below `output_root`.

    Raises:
        RuntimeError: protoc fails.
    """
    package = output_root / "gradewire_models" / "repository"
    package.mkdir(parents=True, exist_ok=True)
    # protoc names a module after its file. The mapped path adds the underscore of a private module.
    source = f"-I_model_config.proto={ROOT / 'model_config.proto'}"
    outputs = [f"--python_out={package}", f"--mypy_out=quiet:{package}"]
    if protoc.main(["protoc", source, *outputs, "_model_config.proto"]) != 0:
        raise RuntimeError("protoc failed: see the messages above")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src")
