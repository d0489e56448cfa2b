"""A judge of this machine: prompts become tokens here, and tokens an answer; a worker process computes in between."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import A, JudgeReply, ModelStatus
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.local.chat import ChatTokenizer, FixedTooLongError, PromptTokens, PromptTooLongError
from gradewire_server.judges.local.labels import LabelsError
from gradewire_server.judges.local.run_loop import RunLoop
from gradewire_server.judges.local.work import Work
from gradewire_server.judges.stops import TextEnd
from gradewire_server.judges.worker.messages import RowResult

_NO_TOKENS: Final = Failure(Status.INVALID_PARAMETER, "max_tokens has to be at least 1")
_TOO_LATE: Final = Failure(Status.TIMEOUT, "the judge was not done by the deadline")


@dataclass(frozen=True, slots=True)
class _Tokenized:
    """A need as token ids; attributes as those of `Work`."""

    prompt: PromptTokens
    labels: tuple[int, ...] = ()
    max_tokens: int = 0
    ended: Callable[[Sequence[int]], bool] = bool

    @property
    def prompt_tokens(self) -> int:
        return len(self.prompt.fixed) + len(self.prompt.item)


class EmbeddedJudge(Judge):
    """A judge of this machine. Lives on the event loop it was made on.

    Args:
        status: How it is shown.
        tokenizer: Its tokenizer and chat template.
        runs: Computes; closed with this.
    """

    def __init__(self, status: ModelStatus, tokenizer: ChatTokenizer, runs: RunLoop) -> None:
        self._status = status
        self._tokenizer = tokenizer
        self._runs = runs
        # One thread: a megabyte of text keeps the loop free, and needs stay in the order in which they came.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tokenize-{status.name}")
        self._closed = False

    @property
    @override
    def status(self) -> ModelStatus:
        return self._status

    @property
    def waiting(self) -> int:
        """Needs that have not begun."""
        return self._runs.waiting

    @property
    def worker_pid(self) -> int | None:
        """The process that computes; None while there is none."""
        return self._runs.worker_pid

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        def tokenize() -> _Tokenized:
            labels = self._tokenizer.labels(need.prompt.opening, need.options)
            return _Tokenized(self._tokenizer.prompt(need.prompt, labels.shared), labels.tokens)

        def read(asked: _Tokenized, result: RowResult, _: Sequence[int]) -> Choice:
            return Choice(result.probabilities, result.mass, asked.prompt_tokens, asked.prompt.truncated)

        return await self._ask(tokenize, read, deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        if need.max_tokens < 1:
            return JudgeReply(_NO_TOKENS, AnswerSource.COMPUTED, Timing())
        end = TextEnd(self._tokenizer.text, self._tokenizer.ends, need.stop)

        def tokenize() -> _Tokenized:
            opening = self._tokenizer.opening(need.prompt.opening)
            prompt = self._tokenizer.prompt(need.prompt, opening, answer_tokens=need.max_tokens)
            return _Tokenized(prompt, max_tokens=need.max_tokens, ended=end.reached)

        def read(asked: _Tokenized, _: RowResult, written: Sequence[int]) -> Generated:
            text, complete = end.read(written)
            return Generated(text, complete, asked.prompt_tokens, len(written), asked.prompt.truncated)

        return await self._ask(tokenize, read, deadline_s)

    @override
    def trouble(self) -> str:
        return self._runs.trouble

    @override
    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._runs.close()
        self._thread.shutdown(wait=False)

    async def _ask(
        self,
        tokenize: Callable[[], _Tokenized],
        read: Callable[[_Tokenized, RowResult, Sequence[int]], A],
        deadline_s: float | None,
    ) -> JudgeReply[A]:
        timing = Timing()
        refusal = self._runs.refusal()
        if refusal is not None:
            return JudgeReply(refusal, AnswerSource.COMPUTED, timing)
        loop = asyncio.get_running_loop()
        work: Work | None = None
        try:
            async with asyncio.timeout_at(deadline_s):
                begin_s = loop.time()
                asked = await loop.run_in_executor(self._thread, tokenize)
                timing.tokenize_s = loop.time() - begin_s
                work = _work(asked, loop)
                result = await self._runs.compute(work)
        except (TimeoutError, PromptTooLongError, LabelsError) as error:
            return JudgeReply(_failure(error), AnswerSource.COMPUTED, timing)
        finally:
            if work is not None:
                timing.queue_s, timing.inference_s = work.queue_s, work.inference_s
        answer = result if isinstance(result, Failure) else read(asked, result, work.written)
        return JudgeReply(answer, AnswerSource.COMPUTED, timing)


def _work(asked: _Tokenized, loop: asyncio.AbstractEventLoop) -> Work:
    return Work(
        asked.prompt.fixed,
        asked.prompt.item,
        loop.create_future(),
        loop.time(),
        labels=asked.labels,
        max_tokens=asked.max_tokens,
        ended=asked.ended,
    )


def _failure(error: Exception) -> Failure:
    match error:
        case FixedTooLongError():
            return Failure(Status.INVALID_PARAMETER, f"prompt: {error}")
        case PromptTooLongError():
            return Failure(Status.INVALID_INPUT, str(error))
        case LabelsError():
            return Failure(Status.INVALID_PARAMETER, str(error))
        case _:
            return _TOO_LATE
