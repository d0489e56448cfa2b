"""The process that runs the judges of all server processes, seen from the supervisor."""

from typing import ClassVar

from typing_extensions import override

from gradewire_server.processes.member import Place
from gradewire_server.processes.server_process import ServerProcess


class JudgeHostProcess(ServerProcess):
    """It beats, counts and ends as server processes do, and takes no calls of callers."""

    MODULE: ClassVar[str] = "gradewire_server.judge_host"

    @override
    @classmethod
    def name_of(cls, place: Place) -> str:
        return "the judge host"

    @override
    async def leave(self, timeout_s: float) -> None:
        """As `stop`: it has no callers that could be sent to another one."""
        await self.stop(timeout_s)
