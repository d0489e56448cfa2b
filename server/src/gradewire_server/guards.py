"""What watches over the server while it serves: memory in flight, a loop that is late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gradewire_server.rpc.receiving.memory_guard import MemoryGuard, watch_lateness
from gradewire_server.rpc.receiving.receiver import Receiver
from gradewire_server.rpc.telemetry import RpcTelemetry


@asynccontextmanager
async def guarded(
    port: int, receiver: Receiver, telemetry: RpcTelemetry, *, memory_limit_bytes: int
) -> AsyncIterator[MemoryGuard]:
    """Guards the server on `port` for as long as the context lasts; gives the guard of memory, to be told of models.

    Args:
        port: Of gRPC.
        receiver: Receives its messages.
        telemetry: Where the guards count.
        memory_limit_bytes: What the process may take.
    """
    memory = MemoryGuard(receiver, memory_limit_bytes, port, shed=telemetry.messages_shed.inc)
    memory.start()
    watching = asyncio.create_task(watch_lateness(telemetry.loop_late.observe))
    try:
        yield memory
    finally:
        watching.cancel()
        memory.close()
