"""Restarts all processes one after the other; a further request starts over."""

import asyncio
import logging

from gradewire_server.processes.slot import LOAD_S, RestartError, Slot
from gradewire_server.processes.whole import Whole

_log = logging.getLogger(__name__)


async def restart_whenever(wanted: asyncio.Event, whole: Whole) -> None:
    """Restarts all processes whenever `wanted` is set, until cancelled; a restart under way ends for the next one."""
    under_way: asyncio.Task[None] | None = None
    try:
        while True:
            await wanted.wait()
            wanted.clear()
            if under_way is not None and not under_way.done():
                _log.info("a restart is asked for again: the one under way ends here, and another one begins")
                await _cancelled(under_way)
            under_way = asyncio.create_task(_restart(whole))
    finally:
        if under_way is not None:
            await _cancelled(under_way)


async def restart_all(whole: Whole) -> None:
    """Restarts all, each while all others serve; ends where one does not come up.

    Those that do not serve, or lack something, come first: an earlier restart may have ended at one that only another
    one can mend, and it would be waited for.
    """
    _log.info("restarting %d processes, one after the other", len(whole.slots))
    servers = sorted(whole.slots, key=lambda slot: (slot.serves, slot.ready))
    for slot in servers if whole.judge_host is None else (*servers, whole.judge_host):
        try:
            await _until_others_serve(slot, whole)
            await slot.restart()
        except RestartError as error:
            _log.error(
                "the restart ends here, and the other processes go on as they are: %s. "
                "Mend what it names and send SIGHUP again",
                error,
            )
            return
        _log.info("%s was restarted", slot.name)
    _log.info("restarted %d processes", len(whole.slots))


async def _until_others_serve(slot: Slot, whole: Whole) -> None:
    """Does not wait where the process serves nobody, and so leaves nobody to the others."""
    while slot.serves and (away := [other for other in whole.slots if other is not slot and not other.serves]):
        await away[0].until_serving(LOAD_S)


async def _restart(whole: Whole) -> None:
    try:
        await restart_all(whole)
    except Exception:  # noqa: BLE001 - the server goes on, and the next restart may end well
        _log.exception("the restart ended by a defect: report it")


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))
