"""What a Triton server that was killed leaves behind: stub processes for a while, and shared memory for good."""

import os
import signal
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps POSIX shared memory
_SERVER = b"tritonserver"
_STUB = b"triton_python_backend_stub"


def stub_pids(shm_prefix: str) -> list[int]:
    """Processes of Triton's Python backend whose shared memory has names with this prefix."""
    return _owners(shm_prefix, _STUB)


def shared_memory(shm_prefix: str) -> list[Path]:
    """Files of shared memory whose names have this prefix."""
    return list(_SHARED_MEMORY.glob(f"{shm_prefix}*"))


def remove_leftovers(shm_prefix: str) -> None:
    """Kills a server that still runs with this prefix, and its stubs, and removes their shared memory."""
    for program in (_SERVER, _STUB):
        for pid in _owners(shm_prefix, program):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    for path in shared_memory(shm_prefix):
        path.unlink(missing_ok=True)


def _owners(shm_prefix: str, program: bytes) -> list[int]:
    # By their command lines, which hold the prefix: process ids that were noted earlier may be reused.
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, *arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or is another user's
            continue
        if name.rpartition(b"/")[2] == program and any(shm_prefix.encode() in argument for argument in arguments):
            found.append(int(entry.name))
    return found
