"""Calls of judges: one for each need, so that the programs that wait for it go on as soon as it is answered."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from typing_extensions import override

from gradewire_proto.conventions.spans import Span, Value
from gradewire_proto.conventions.telemetry_names import (
    ANSWERED_FROM,
    CHAT,
    INPUT_TOKENS,
    JUDGE,
    OPERATION,
    OUTPUT_TOKENS,
    REQUEST_MODEL,
)
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, Ports
from gradewire_server.domain.result import Failure
from gradewire_server.scoring.port_call import AnyRun, PortCall, Positions, tell_timing

JudgeNeed: TypeAlias = Choose | Generate


class JudgeCall(PortCall[JudgeNeed]):
    """One need, and all programs of a request that have it."""

    span_name = JUDGE
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

    @override
    def asked(self) -> dict[str, Value]:
        return judge_attributes(self.model)

    @override
    def tell(self, span: Span) -> None:
        tell_judge_reply(span, self._reply)

    def _answer(self, positions: Positions) -> Choice | Generated | Failure:
        del positions
        answer: Choice | Generated | Failure = self._reply.answer
        return answer

    @override
    def deliver(self) -> Iterator[AnyRun]:
        # Who is paid for an answer must be told how often it was given: the others joined the first.
        source = self._reply.source
        for run, asks in self._by_run():
            counts = [0] * len(AnswerSource)
            counts[source] = 1
            run.cost.add_sources(counts)
            run.cost.add_timing(self._reply.timing)
            yield from self._settle(run, [(slot, self._answer(positions)) for _, slot, positions in asks])
            source = AnswerSource.JOINED if source is AnswerSource.COMPUTED else source


def judge_attributes(model: str) -> dict[str, Value]:
    """Of the span of a judge's call; `model` is NAME or NAME@DIGEST, empty for the default one."""
    name = model.partition("@")[0]
    return {OPERATION: CHAT, REQUEST_MODEL: name} if name else {OPERATION: CHAT}


def tell_judge_reply(span: Span, reply: JudgeReply[Any]) -> None:
    """Sets where the answer came from and what it took; never what was asked or said."""
    answer = reply.answer
    if isinstance(answer, Failure):
        span.fail(answer.status.name)
        return
    span.set(f"{ANSWERED_FROM}.{reply.source.name.lower()}", 1)
    for name, tokens in ((INPUT_TOKENS, answer.prompt_tokens), (OUTPUT_TOKENS, answer.generated_tokens)):
        if tokens is not None:
            span.set(name, tokens)
    tell_timing(span, reply.timing)
