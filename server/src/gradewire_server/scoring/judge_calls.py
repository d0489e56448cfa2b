"""Calls of judges: one for each need, so that the programs that wait for it go on as soon as it is answered."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.ports import JudgeReply, Ports
from gradewire_server.domain.result import Failure, Timing
from gradewire_server.scoring.calls import PortCall, Positions

JudgeNeed: TypeAlias = Choose | Generate


class JudgeCall(PortCall[JudgeNeed]):
    """One need, and all programs of a request that have it."""

    _reply: JudgeReply[Any]

    def __init__(self, need: JudgeNeed) -> None:
        super().__init__(need.model)
        self.need = need

    @override
    async def ask(self, ports: Ports, *, deadline_s: float | None) -> None:
        if isinstance(self.need, Choose):
            self._reply = await ports.judges.choose(self.need, deadline_s=deadline_s)
        else:
            self._reply = await ports.judges.generate(self.need, deadline_s=deadline_s)

    def _answer(self, positions: Positions) -> Choice | Generated | Failure:
        del positions
        answer: Choice | Generated | Failure = self._reply.answer
        return answer

    def _bill(self) -> tuple[NDArray[np.uint8], Timing]:
        return np.array([self._reply.source], np.uint8), self._reply.timing
