"""The one judge that a server is configured for."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from gradewire_server.domain.ports import ModelStatus
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.remote.errors import RemoteError, late
from gradewire_server.judges.remote.judge import RemoteJudge, Server
from gradewire_server.judges.remote.observer import RemoteObserver
from gradewire_server.judges.source import Judge, JudgeUnavailableError
from gradewire_server.settings.judge import RemoteJudgeConfig

_RECIPE: Final = 1
"""Raised when other answers would come of the same server: what is sent, how labels are read."""
_OPEN_TIMEOUT_S: Final = 15.0
_RETRY_S: Final = 2.0


class RemoteSource:
    """See `JudgeSource`.

    Args:
        backend: Kind of server; a part of the digest.
        config: Where it is.
        observer: Told what happens.
        connect: Finds the server out, once per opened judge; raises RemoteError where it is of no use.
    """

    def __init__(
        self,
        backend: str,
        config: RemoteJudgeConfig,
        observer: RemoteObserver,
        connect: Callable[[], Awaitable[Server]],
    ) -> None:
        self._config = config
        self._observer = observer
        self._connect = connect
        self._status = remote_status(backend, config)

    def listed(self) -> Sequence[ModelStatus]:
        """See `JudgeSource.listed`."""
        return (self._status,)

    async def open(self, name: str) -> Judge:
        """See `JudgeSource.open`."""
        if name not in {"", self._config.model}:
            raise JudgeUnavailableError(
                Failure(
                    Status.MODEL_UNAVAILABLE,
                    f"the judge's server runs {self._config.model!r} and no other: see judge_remote_model",
                )
            )
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                server = await self._connect()
        except TimeoutError as error:
            raise JudgeUnavailableError(_later(late(_OPEN_TIMEOUT_S).failure)) from error
        except RemoteError as error:
            raise JudgeUnavailableError(_later(error.failure)) from error
        return RemoteJudge(replace(self._status, state="loaded"), server, self._config, self._observer)

    async def close(self) -> None:
        """See `JudgeSource.close`."""


def remote_status(backend: str, config: RemoteJudgeConfig) -> ModelStatus:
    """The public face of a model whose weights nobody here has seen."""
    asked = f"gradewire remote judge {_RECIPE}\0{backend}\0{config.model}\0{config.assistant_prefill}"
    return ModelStatus(
        name=config.model,
        digest=hashlib.sha256(asked.encode()).hexdigest(),
        state="built",
        message="",
        how_to_get="",
        is_default=False,
        dims=0,
        max_tokens=0,
        licence="",
        numeric_class="remote",
        kind="judge",
        remarks=(
            f"Runs on a server of its own (backend {backend}).",
            "Its scores are pinned by its name alone: what weights answer to that name is not known here.",
        ),
    )


def _later(failure: Failure) -> Failure:
    return failure if failure.status is not Status.UNAVAILABLE else replace(failure, retry_after_s=_RETRY_S)
