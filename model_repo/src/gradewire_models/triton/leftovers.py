"""What a Triton server that was killed leaves behind: stub processes for a while, and shared memory for good."""

import os
import signal
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps POSIX shared memory
_STUB = "triton_python_backend_stub"


def stub_pids(shm_prefix: str) -> list[int]:
    """Processes of the Python backend whose shared memory has names of that beginning."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
        if arguments[0].endswith(_STUB.encode()) and any(part.startswith(shm_prefix.encode()) for part in arguments):
            found.append(int(entry.name))
    return found


def remove_leftovers(shm_prefix: str) -> list[str]:
    """Ends such processes and removes such shared memory; the server that owned them must be gone.

    Returns:
        Names of what was removed from shared memory.
    """
    for pid in stub_pids(shm_prefix):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    removed = []
    for path in _SHARED_MEMORY.glob(f"{shm_prefix}*"):
        path.unlink(missing_ok=True)
        removed.append(path.name)
    return removed
