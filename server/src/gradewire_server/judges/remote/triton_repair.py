"""Repair of a built judge whose process in Triton has died. Triton does not start the process again by itself."""

import asyncio
import contextvars
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

from gradewire_server.triton import Fault, TritonClient, TritonError

_log = logging.getLogger(__name__)

_SPREAD_S: Final = 1.0
_REPAIR_AGAIN_S: Final = 30.0


class JudgeRepair:
    """Loads a judge again in Triton, in the background. For one event loop only.

    Args:
        check: Function that asks the judge a short question, and raises TritonError if there is no answer.
    """

    def __init__(self, client: TritonClient, model: str, check: Callable[[], Awaitable[None]]) -> None:
        self._client = client
        self._model = model
        self._check = check
        self._task: asyncio.Task[None] | None = None
        self._allowed = True
        self._unloaded = False
        self._not_before_s = -math.inf

    @property
    def running(self) -> bool:
        """True while the judge is being loaded."""
        return self._task is not None and not self._task.done()

    def failed(self) -> None:
        """Repair the judge, because it cannot compute although Triton reports it as ready."""
        if self._allowed and not self.running and time.monotonic() >= self._not_before_s:
            self._task = asyncio.create_task(self._repair(), context=contextvars.Context())

    def not_ready(self) -> None:
        """Load the judge if an earlier repair has only unloaded it."""
        if self._unloaded:
            self.failed()

    async def close(self) -> None:
        """Wait for the end of a repair, because a judge that is only unloaded would not come back."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _repair(self) -> None:
        # Servers that share the Triton wait for different times, and then look whether it still has to be done.
        await asyncio.sleep(random.uniform(0, _SPREAD_S))  # noqa: S311 - no secret
        self._not_before_s = time.monotonic() + _REPAIR_AGAIN_S
        try:
            if not self._unloaded:
                if not await self._is_broken():
                    return
                await self._client.unload(self._model)
                self._unloaded = True
            await self._client.load(self._model)
        except TritonError as error:
            self._allowed = "not allowed" not in str(error)
            _log.warning("judge %s: cannot be loaded again in Triton: %s", self._model, error)
            return
        self._unloaded = False
        _log.warning("judge %s: its process in Triton had died, so it was loaded again", self._model)

    async def _is_broken(self) -> bool:
        try:
            await self._check()
        except TritonError as error:
            return error.kind is Fault.FAILED
        return False
