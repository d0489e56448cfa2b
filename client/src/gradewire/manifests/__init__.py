"""What a run was made from, with and by, in a JSON file beside its output.

clock = RunClock()
…
run = RunManifest(
    command="bench load",
    versions=versions(server_version),
    place="127.0.0.1:50051",
    metrics={"smile": "smile:v1/1?model=…"},
    inputs=[file_digest(path)],
    parameters={"rate": 200.0},
    counts=RunCounts(rows=1000, failed=3, statuses={"smile": {"OK": 997, "TIMEOUT": 3}}),
    times=clock.times(),
    machine=clock.machine(),
)
write_manifest(manifest_path(output), run)
read_manifest(manifest_path(output)).counts.failed
"""

from gradewire.manifests.document import (
    FORMAT,
    ManifestError,
    decode_manifest,
    encode_manifest,
    read_manifest,
    write_manifest,
)
from gradewire.manifests.machine import RunClock
from gradewire.manifests.manifest import Cost, InputDigest, Machine, RunCounts, RunManifest, RunTimes, Versions
from gradewire.manifests.sources import file_digest, manifest_path, pinned_names, versions

__all__ = [
    "FORMAT",
    "Cost",
    "InputDigest",
    "Machine",
    "ManifestError",
    "RunClock",
    "RunCounts",
    "RunManifest",
    "RunTimes",
    "Versions",
    "decode_manifest",
    "encode_manifest",
    "file_digest",
    "manifest_path",
    "pinned_names",
    "read_manifest",
    "versions",
    "write_manifest",
]
