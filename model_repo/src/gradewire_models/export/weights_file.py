"""Write a graph's weights into a file beside the graph, because an ONNX file can have at most 2 GiB."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import onnx
from onnx import TensorProto, numpy_helper

from gradewire_models.errors import BuildError, ExportError
from gradewire_models.repository.config import WEIGHTS_FILE
from gradewire_models.repository.digest import FileRecord

MAX_GRAPH_WEIGHT_BYTES: Final = 2_000_000_000
"""Weights of more bytes get a file of their own; the graph itself is small."""
LEAST_TENSOR_BYTES: Final = 1024
"""Smaller constants stay in the graph, where shapes are inferred from them."""
_ALIGNMENT: Final = 4096  # ONNX Runtime maps tensors at multiples of a page into memory
_CHUNK_BYTES: Final = 1 << 24


def is_external(tensor: TensorProto) -> bool:
    """Return True if a tensor's values are in another file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def take_out_weights(graph: onnx.ModelProto, source: Path, target: Path) -> FileRecord:
    """Move a graph's large constants into the file `WEIGHTS_FILE` in `target`, and return the file's record.

    Constants that are in other files already are copied from the directory `source`, in chunks, so the memory needed
    does not grow with the weights. Constants in nodes, which are small, return to the graph. Equal graphs give equal
    bytes.

    Raises:
        ExportError: A constant is outside `source`, or shorter than the graph says.
        OSError: A file is not readable or writable.
    """
    for node in graph.graph.node:
        for attribute in node.attribute:
            if is_external(attribute.t):
                _bring_in(attribute.t, source)
    digest, written = hashlib.sha256(), 0
    with (target / WEIGHTS_FILE).open("wb") as file:
        for tensor in graph.graph.initializer:
            if not is_external(tensor) and tensor.ByteSize() < LEAST_TENSOR_BYTES:
                continue
            padding = bytes(-written % _ALIGNMENT)
            digest.update(padding)
            file.write(padding)
            offset = written = written + len(padding)
            for chunk in _chunks(tensor, source):
                digest.update(chunk)
                file.write(chunk)
                written += len(chunk)
            _refer(tensor, offset, written - offset)
    return FileRecord(written, digest.hexdigest())


def _chunks(tensor: TensorProto, source: Path) -> Iterator[bytes]:
    if not is_external(tensor):
        values = numpy_helper.to_array(tensor)
        # ONNX's external data are little-endian, like the processors that ONNX Runtime supports.
        yield values.tobytes()
        return
    stored = {entry.key: entry.value for entry in tensor.external_data}
    path = source / stored["location"]
    if not path.resolve().is_relative_to(source.resolve()):
        raise ExportError(f"the exported graph has weights outside its folder: {stored['location']}")
    offset = int(stored.get("offset", "0"))
    left = int(stored["length"]) if "length" in stored else path.stat().st_size - offset
    with path.open("rb") as file:
        file.seek(offset)
        while left:
            chunk = file.read(min(left, _CHUNK_BYTES))
            if not chunk:
                raise ExportError(f"the exported weights of {tensor.name} end too early")
            left -= len(chunk)
            yield chunk


def _bring_in(tensor: TensorProto, source: Path) -> None:
    content = b"".join(_chunks(tensor, source))
    del tensor.external_data[:]
    tensor.data_location = TensorProto.DEFAULT
    tensor.raw_data = content


def _refer(tensor: TensorProto, offset: int, length: int) -> None:
    for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        tensor.ClearField(name)
    del tensor.external_data[:]
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", WEIGHTS_FILE), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)


def require_space(directory: Path, needed_bytes: int, name: str) -> None:
    """Compare the free space of a file system with the space that an export needs, before it starts.

    Raises:
        BuildError: There is less space.
    """
    free = shutil.disk_usage(directory).free
    if free < needed_bytes:
        raise BuildError(
            f"the export of {name} needs {needed_bytes / 1e9:.1f} GB of disk in {directory}, but only "
            f"{free / 1e9:.1f} GB are free. Free some space, or use another repository. Nothing was changed"
        )
