"""The backend `embedded` of one of several server processes: its judges run in the judge host."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from typing_extensions import override

from gradewire_server.concurrency.single_flight import SingleFlight
from gradewire_server.domain.caller import asking
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.domain.result import Failure, Timing
from gradewire_server.judges.backend import Judge, JudgeBackend, JudgeUnavailableError
from gradewire_server.judges.shared.client import AWAY_S, HostClient
from gradewire_server.judges.shared.messages import Asked, HostState


class SharedJudge(Judge):
    """A judge that the host has opened. Unlike others it looks at `need.model`: a digest in it is asked for.

    Args:
        status: How it is shown.
        host: Where it runs.
    """

    def __init__(self, status: ModelStatus, host: HostClient) -> None:
        self._status = status
        self._host = host

    @property
    @override
    def status(self) -> ModelStatus:
        return self._status

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        return await self._ask(need, deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        return await self._ask(need, deadline_s)

    @override
    def trouble(self) -> str:
        return self._host.trouble(self._status.name)

    @override
    async def close(self) -> None:
        pass  # it is the host's, and its calls end with the way to the host

    def renew(self, status: ModelStatus) -> None:
        """Takes the status of the judge that the host has now: a new host may have found other files."""
        self._status = status

    async def _ask(self, need: Choose | Generate, deadline_s: float | None) -> JudgeReply[Any]:
        # By digest: verdicts of another judge of the name must not be kept as this one's. That of the need comes first:
        # since it was planned, and looked for in the caches, another judge may have come.
        model = f"{self._status.name}@{need.model.partition('@')[2] or self._status.digest}"
        answered = await self._host.ask(Asked(replace(need, model=model), deadline_s, asking()))
        return JudgeReply(answered.answer, answered.source, answered.timing or Timing())


class SharedJudges(JudgeBackend):
    """Judges of the host.

    Args:
        address: Of the host, ``unix:PATH``.
        files: The backend that the host has, to list what is built; nothing of it is opened here.
        away_s: How long a question waits for a host that is not there.
    """

    def __init__(self, address: str, files: JudgeBackend, *, away_s: float = AWAY_S) -> None:
        self._files = files
        self._opened: dict[str, SharedJudge] = {}
        self._opening: SingleFlight[str, ModelStatus | Failure] = SingleFlight()
        self._host = HostClient(address, self._found, self._told, away_s=away_s)

    @override
    def listed(self) -> Sequence[ModelStatus]:
        loaded = {} if self._host.state is None else self._host.state.loaded
        return [loaded.get(status.name, status) for status in self._files.listed()]

    @override
    async def open(self, name: str) -> SharedJudge:
        status = await self._host.open(name)
        if isinstance(status, Failure):
            raise JudgeUnavailableError(status)
        judge = self._opened[name] = SharedJudge(status, self._host)
        return judge

    @override
    async def close(self) -> None:
        await self._opening.cancel()
        await self._host.close()
        await self._files.close()

    def _found(self) -> None:
        """Has a new host open what the one before it had."""
        for name in self._opened:
            if name not in self._opening:
                self._opening.begin(name, partial(self._host.open, name))

    def _told(self, state: HostState) -> None:
        """Takes what the host has loaded: at the request of any process, perhaps after failed attempts."""
        for name, status in state.loaded.items():
            if name in self._opened:
                self._opened[name].renew(status)
