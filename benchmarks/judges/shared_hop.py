"""Measure the CPU time for a question to a judge in a different process.

The program calls an immediately answering judge directly and through the judge host's socket, in turns. Both ends of
the socket are in this process. Needs no model.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from gradewire_server.domain.items import Timing
from gradewire_server.domain.judge import Choice, Choose, Generated, JudgeAnswer, JudgeNeed, JudgePrompt, Role, Turn
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judge_host import JudgeHost
from gradewire_server.judges.backend import Judge, JudgeBackend
from gradewire_server.judges.shared import SharedJudges

_STATUS: Final = ModelStatus("at-once", "0" * 64, "loaded", kind="judge")
_AT_A_TIME: Final = 64
"""Number of concurrent questions, like in a request."""


class _AtOnce(Judge):
    @property
    @override
    def status(self) -> ModelStatus:
        return _STATUS

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        answer: JudgeAnswer = Generated("", complete=True, prompt_tokens=1, generated_tokens=0)
        if isinstance(need, Choose):
            count = len(need.options)
            answer = Choice((1 / count,) * count, 1.0, 1)
        return JudgeReply(answer, AnswerSource.COMPUTED, Timing())

    @override
    def trouble(self) -> str:
        return ""

    @override
    async def close(self) -> None:
        pass


class _Judges(JudgeBackend):
    @override
    def listed(self) -> Sequence[ModelStatus]:
        return (_STATUS,)

    @override
    async def open(self, name: str) -> Judge:
        return _AtOnce()

    @override
    async def close(self) -> None:
        pass


def _question(number: int, characters: int) -> Choose:
    fixed = (Turn(Role.SYSTEM, "Rate it. " * 30),)
    return Choose("", JudgePrompt(fixed, "Answer: ", f"{number} " + "a" * characters, "", "Rating:"), ("1", "2", "3"))


async def _cpu_us(judge: Judge, questions: int, characters: int) -> float:
    began_s = time.process_time()
    for first in range(0, questions, _AT_A_TIME):
        asked = (_question(number, characters) for number in range(first, first + _AT_A_TIME))
        await asyncio.gather(*(judge.choose(each) for each in asked))
    return (time.process_time() - began_s) * 1e6 / questions


async def measure(questions: int, rounds: int, characters: int) -> tuple[float, float]:
    """Return the minimum CPU microseconds per question over all rounds, directly and through the host."""
    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{Path(directory) / 'judges'}"
        host = JudgeHost(_Judges(), max_queue_items=4096)
        await host.start(address)
        process = SharedJudges(address, _Judges())
        shared, alone = await process.open(_STATUS.name), _AtOnce()
        await _cpu_us(shared, _AT_A_TIME, characters)
        found = [
            (await _cpu_us(alone, questions, characters), await _cpu_us(shared, questions, characters))
            for _ in range(rounds)
        ]
        await process.close()
        await host.stop()
    return min(direct for direct, _ in found), min(hop for _, hop in found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=2048, help="questions per round (default: 2048)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the minimum counts (default: 5)")
    given = parser.parse_args()
    print("| characters of the answer | asked directly, CPU µs | through the judge host, both ends, CPU µs |")
    print("|---:|---:|---:|")
    for characters in (20, 2000):
        direct, hop = asyncio.run(measure(given.questions, given.rounds, characters))
        print(f"| {characters} | {direct:.0f} | {hop:.0f} |")
    print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
