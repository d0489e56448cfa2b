"""Reaches each of the processes of a server that has several."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import grpc
from tests.support.servers.forked_process import modules_of
from tests.support.servers.server_process import ServerProcess

from gradewire_proto.v1 import models_pb2, models_pb2_grpc

_TRIES = 60


@contextmanager
def channels_by_process(
    address: str,
    token: str = "",
    *,
    count: int = 2,
    credentials: grpc.ChannelCredentials | None = None,
    options: Sequence[tuple[str, str | int]] = (),
) -> Iterator[Mapping[str, grpc.Channel]]:
    """A channel to each process, by what it calls itself (INDEX/COUNT), in that order."""
    found: dict[str, grpc.Channel] = {}
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with ExitStack() as stack:
        for number in range(_TRIES):
            own = (*options, ("grpc.use_local_subchannel_pool", 1), ("test.number", number))
            channel = stack.enter_context(
                grpc.insecure_channel(address, own)
                if credentials is None
                else grpc.secure_channel(address, credentials, own)
            )
            _, call = models_pb2_grpc.ModelsStub(channel).List.with_call(
                models_pb2.ListModelsRequest(), timeout=20, metadata=metadata
            )
            names = [str(value) for key, value in call.trailing_metadata() if key == "gradewire-process"]
            found.setdefault(names[0], channel)
            if len(found) == count:
                yield dict(sorted(found.items()))
                return
        raise AssertionError(f"of {count} processes only {sorted(found)} answer")


def process_ids(supervisor: int) -> list[int]:
    """Of the server processes that a supervisor runs, in the order of their start."""
    return [pid for pid, module in modules_of(supervisor) if module == "gradewire_server.server_child"]


def is_there(pid: int) -> bool:
    """Whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ready_processes(server: ServerProcess) -> int:
    """How many of its processes are ready, by its page of health."""
    return int(server.http("/healthz")[1]["processes"]["ready"])


def wait_until(holds: Callable[[], bool], timeout_s: float = 90.0) -> None:
    """Waits for a condition; fails where it does not hold in time."""
    give_up_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def shared_memory(supervisor: int) -> Path:
    """A path through which a test can damage the memory that a supervisor's processes share. The memory has no name."""
    for descriptor in Path(f"/proc/{supervisor}/fd").iterdir():
        with suppress(OSError):
            if "memfd:gradewire-shared" in str(descriptor.readlink()):
                return descriptor
    raise AssertionError("these processes share no memory")
