"""A backend with one judge: the model that a server of its own runs."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from gradewire_server.domain.ports import ModelStatus
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.backend import Judge, JudgeBackend, JudgeUnavailableError
from gradewire_server.judges.observers import RemoteJudgeObserver
from gradewire_server.judges.remote.errors import MODEL_SETTING, RemoteError, late
from gradewire_server.judges.remote.judge import RemoteJudge
from gradewire_server.judges.remote.server import Server
from gradewire_server.settings.judge import RemoteJudgeConfig

_RECIPE: Final = 1
"""Part of the digest; raised when what is sent, or how labels are read, changes the answers of the same server."""
_OPEN_TIMEOUT_S: Final = 15.0
_RETRY_S: Final = 2.0


class RemoteBackend(JudgeBackend):
    """One judge, on one server.

    Args:
        backend: Kind of server; a part of the digest.
        config: Where it is.
        observer: Hears of the requests.
        make_server: Awaited once per opened judge.
        remarks: What is to be known of this kind of judge, beside what holds for all.
    """

    def __init__(
        self,
        backend: str,
        config: RemoteJudgeConfig,
        observer: RemoteJudgeObserver,
        make_server: Callable[[], Awaitable[Server]],
        *,
        remarks: tuple[str, ...] = (),
    ) -> None:
        self._config = config
        self._observer = observer
        self._make_server = make_server
        status = remote_status(backend, config)
        self._status = replace(status, remarks=(*status.remarks, *remarks))

    @override
    def listed(self) -> Sequence[ModelStatus]:
        return (self._status,)

    @override
    async def open(self, name: str) -> Judge:
        if name not in {"", self._config.model}:
            raise JudgeUnavailableError(
                Failure(
                    Status.MODEL_UNAVAILABLE,
                    f"the judge's server runs {self._config.model!r} and no other: see {MODEL_SETTING}",
                )
            )
        server = await self._make_server()
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                await _found_out(server)
        except TimeoutError as error:
            raise JudgeUnavailableError(_later(late(self._config.url, _OPEN_TIMEOUT_S).failure)) from error
        except RemoteError as error:
            raise JudgeUnavailableError(_later(error.failure)) from error
        return RemoteJudge(replace(self._status, state="loaded"), server, self._config, self._observer)

    @override
    async def close(self) -> None:
        pass  # each judge closes its own server


async def _found_out(server: Server) -> None:
    try:
        await server.find_out()
    except BaseException:
        await server.close()
        raise


def remote_status(backend: str, config: RemoteJudgeConfig) -> ModelStatus:
    """How a model is shown whose weights nobody here has seen."""
    asked = f"gradewire remote judge {_RECIPE}\0{backend}\0{config.model}\0{config.assistant_prefill}"
    thinks: tuple[str, ...] = ()
    if config.reasoning_tokens:
        asked += f"\0thinks {config.reasoning_tokens}"
        thinks = (f"It may think for {config.reasoning_tokens} tokens before each answer (judge_reasoning_tokens).",)
    return ModelStatus(
        name=config.model,
        digest=hashlib.sha256(asked.encode()).hexdigest(),
        state="built",
        precision="remote",
        kind="judge",
        sees_images=config.sees_images == "yes",
        remarks=(
            f"Runs on a server of its own (backend {backend}).",
            "Its scores are pinned by its name alone: what weights answer to that name is not known here.",
            *thinks,
        ),
    )


def _later(failure: Failure) -> Failure:
    return failure if failure.status is not Status.UNAVAILABLE else replace(failure, retry_after_s=_RETRY_S)
