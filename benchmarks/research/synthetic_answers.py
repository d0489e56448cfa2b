"""How well a judge writes synthetic answers, and what one costs.

Counts references by how their sentence came about (first try, second try, none), and the CPU seconds of the judge's
worker for each. References are drawn by question (the first two of each); the same ones for the same --seed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.processes import cpu_s
from benchmarks.common.rows import DEFAULT_DATA, read_rows

from gradewire_models.judges import default_judge, default_judge_repository
from gradewire_server.domain.items import Failure
from gradewire_server.domain.judge import Generate
from gradewire_server.judges.local.backend import EmbeddedJudges
from gradewire_server.metrics.prompts import PACKAGE_PROMPTS, read_prompt
from gradewire_server.scoring.prepare import SENTENCES_AT_ONCE
from gradewire_server.scoring.synthetic import SyntheticAnswer, WritingSettings, write_sentence
from gradewire_server.settings.judge import EmbeddedJudgeConfig

if TYPE_CHECKING:
    from gradewire_server.judges.backend import ModelRun
    from gradewire_server.judges.local.judge import EmbeddedJudge

REFERENCES_PER_QUESTION = 2


@dataclass(slots=True)
class Tokens:
    """Implements JudgeObserver: sums of all runs."""

    prefill: int = 0
    decode: int = 0

    def ran(self, run: ModelRun) -> None:
        """Adds a run."""
        self.prefill += run.prefill_tokens
        self.decode += run.decode_tokens

    def restarted(self) -> None:
        """A lost worker ends the benchmark: its figures would be wrong."""
        raise RuntimeError("the worker was lost")


@dataclass(slots=True)
class Attempt:
    """A reference, the sentence that replaces it, and all that the judge said."""

    question: str
    reference: str
    said: list[str] = field(default_factory=list)
    written: SyntheticAnswer = field(default_factory=lambda: SyntheticAnswer(""))

    @property
    def kind(self) -> str:
        """How the sentence came about, as the table names it."""
        if self.written.fault:
            return "fallback"
        return ("stands for itself", "first try", "second try")[self.written.tries]


def draw(path: Path, count: int, seed: int) -> list[Attempt]:
    """The first references of questions in a random order."""
    by_question = {(row["dataset"], row["question"]): row["references"] for row in read_rows(path)}
    questions = sorted(by_question)
    random.Random(seed).shuffle(questions)  # noqa: S311 - a sample, not a secret
    drawn = [
        Attempt(question, reference)
        for dataset, question in questions
        for reference in by_question[dataset, question][:REFERENCES_PER_QUESTION]
    ]
    return drawn[:count]


async def write(judge: EmbeddedJudge, writing: WritingSettings, attempt: Attempt, room: asyncio.Semaphore) -> None:
    """Has the judge write the sentence of one reference."""
    program = write_sentence(attempt.question, attempt.reference, writing)
    answers: Any = None
    async with room:
        while True:
            try:
                (need,) = program.send(answers)
            except StopIteration as stop:
                attempt.written = stop.value
                return
            assert isinstance(need, Generate)
            answer = (await judge.generate(need, deadline_s=None)).answer
            if isinstance(answer, Failure):
                raise SystemExit(f"{attempt.reference}: {answer.message}")
            attempt.said.append(answer.text)
            answers = (answer,)


async def main() -> None:
    """Writes all, then prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default=default_judge().name)
    parser.add_argument("--repository", type=Path, default=default_judge_repository())
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--references", type=int, default=240)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--prompt", type=Path, help="default: the package's")
    parser.add_argument(
        "--show", type=int, default=0, help="first tries to print, beside all second tries and fallbacks"
    )
    arguments = parser.parse_args()
    prompt = read_prompt(arguments.prompt.read_bytes()) if arguments.prompt else PACKAGE_PROMPTS.find("synthetic", "")
    drawn = draw(arguments.data, arguments.references, arguments.seed)
    tokens = Tokens()
    judge = await EmbeddedJudges(EmbeddedJudgeConfig(arguments.repository), tokens).open(arguments.judge)
    writing, room = WritingSettings(arguments.judge, prompt), asyncio.Semaphore(SENTENCES_AT_ONCE)
    # The kept state of the fixed turns serves all that follow: it is computed before the clock starts.
    await write(judge, writing, Attempt("Who waits?", "the reader"), room)
    assert judge.worker_pid is not None, "the judge has no process"
    load, began_s, before_s = os.getloadavg()[0], time.monotonic(), cpu_s(judge.worker_pid)
    start = (tokens.prefill, tokens.decode)
    await asyncio.gather(*(write(judge, writing, attempt, room) for attempt in drawn))
    wall_s, spent_s = time.monotonic() - began_s, cpu_s(judge.worker_pid) - before_s
    await judge.close()
    shares = Counter(attempt.kind for attempt in drawn)
    print(f"{judge.status.name}, {prompt.title}@{prompt.digest[:12]}, {len(drawn)} references, seed {arguments.seed}")
    for kind, count in shares.most_common():
        print(f"  {kind:18} {count:4}  {count / len(drawn):6.1%}")
    asked = sum(len(attempt.said) for attempt in drawn)
    print(
        f"  {asked} sentences asked for: {spent_s / asked:.2f} CPU s and {wall_s / asked:.2f} s each, "
        f"{(tokens.prefill - start[0]) / asked:.0f} tokens read and {(tokens.decode - start[1]) / asked:.0f} written; "
        f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
    )
    firsts = [attempt for attempt in drawn if attempt.kind == "first try"][: arguments.show]
    for each in (*firsts, *(attempt for attempt in drawn if attempt.kind in {"second try", "fallback"})):
        print(f"{each.kind}: {each.question} | {each.reference} | {each.said} | {each.written.text}")


if __name__ == "__main__":
    asyncio.run(main())
