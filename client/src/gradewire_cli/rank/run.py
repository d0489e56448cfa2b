"""Run `gradewire rank`: judge the pairs of each question, and write a line for each question."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from collections import Counter, deque
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire.options import CompareOptions, lists_answers
from gradewire.pairs import encode_pair
from gradewire.ranking import RankingCost, count_verdicts
from gradewire.results import Status
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.problems import InputError, named_errors, tell
from gradewire_cli.results.journal import (
    Journal,
    identity_differences,
    refuse_existing,
    refuse_other_run,
    whole_lines,
)
from gradewire_cli.results.progress import progress
from gradewire_cli.results.resumable_output import encode_row
from gradewire_cli.rows.formats import printable
from gradewire_cli.scoring.choosers import JudgeChooser
from gradewire_cli.scoring.judge_work import NOTHING_SENT, JudgeWork, cost_lines
from gradewire_cli.scoring.plan import judge_name, judge_notes, runs_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire.async_api import AsyncClient
    from gradewire.metrics import Compare
    from gradewire.pairs import Comparison, Pair
    from gradewire.ranking import Ranking
    from gradewire.transport import Transport
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.options.judge import JudgePrices
    from gradewire_cli.rank.reading import Question, QuestionReader
    from gradewire_cli.rows.input_file import InputFile


_RETRIED: Final = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})
# Larger than any pair that a judge accepts.
_MAX_PAIR_BYTES: Final = 16 * 1024 * 1024
_KINDS: Final = {"index": int, "digest": str, "answers": list, "by": str, "status": str, "pair_statuses": dict}
Key = tuple[int, str]


@dataclass(slots=True)
class _Open:
    """A question whose comparisons are not all there, with the comparisons by their position."""

    question: Question
    first: int
    found: dict[int, Comparison] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.found) == self.question.plan.count

    def ranked(self, by: str) -> tuple[dict[str, Any], RankingCost]:
        comparisons = [self.found[place] for place in range(len(self.found))]
        ranking = self.question.plan.ranking(comparisons)
        return line_of(self.question, ranking, comparisons, by), ranking.cost


@dataclass(slots=True)
class _Lines:
    """The output: a line for each question, in input order at the end.

    Attributes:
        journal: The output file, or None for standard output.
        known: Lines of earlier runs that need no retry.
    """

    journal: Journal | None
    by: str
    known: dict[Key, dict[str, Any]] = field(default_factory=dict)
    _in_file: list[Key] = field(default_factory=list)
    _kept: dict[Key, bytes] | None = None

    def open(self, *, resume: bool) -> None:
        """Start or continue the file.

        Raises:
            InputError: The file is not from this command, or from another judge. Nothing was changed.
        """
        if self.journal is None:
            return
        end = 0
        path = self.journal.path
        if resume and path.exists():
            self._kept = {}
            with named_errors(path), path.open("rb") as stream:
                for number, line_end, text in whole_lines(stream):
                    self._read(path, number, text)
                    end = line_end
        self.journal.begin(end)

    def _read(self, path: Path, number: int, text: bytes) -> None:
        line = finished_line(text)
        if line is None:
            raise InputError(f"{path}: line {number} is not from gradewire rank. Use another --out")
        refuse_other_run(path, identity_differences(line, {"by": self.by}))
        key = line["index"], line["digest"]
        self._in_file.append(key)
        self.known.pop(key, None)
        if _RETRIED.isdisjoint(line["pair_statuses"]):
            self.known[key] = line

    def take(self, question: Question, line: Mapping[str, Any], *, new: bool) -> None:
        """Write a line, unless an earlier run has written it."""
        key, encoded = (question.index, question.digest), encode_row(line)
        if self._kept is not None:
            self._kept[key] = encoded
        if self.journal is None:
            sys.stdout.buffer.write(encoded)
            sys.stdout.buffer.flush()
        elif new:
            self.journal.write(encoded)
            self._in_file.append(key)

    def finish(self) -> None:
        """Put the lines in input order, drop lines of other rows, and make the file durable."""
        if self.journal is None:
            return
        if self._kept is not None and self._in_file != (ordered := sorted(self._kept)):
            self.journal.replace(self._kept[key] for key in ordered)
        self.journal.finish()


@dataclass(slots=True, kw_only=True)
class RankJob:
    """A run of the command.

    Attributes:
        statuses: Number of answers by status.
        cost: The work of this run.
        questions: Number of questions, also from earlier runs.
        kept: Number of questions from earlier runs.
    """

    source: InputFile
    reader: QuestionReader
    by: Compare
    connection: ConnectionOptions
    prices: JudgePrices
    out: Path | None = None
    resume: bool = False
    overwrite: bool = False
    quiet: bool = False
    statuses: Counter[str] = field(default_factory=Counter)
    cost: RankingCost = field(default_factory=RankingCost)
    questions: int = 0
    kept: int = 0
    refused: int = 0

    async def run(self, transport: Transport | None) -> None:
        """Rank the questions, and write or print their lines."""
        with Journal(self.out) if self.out else contextlib.nullcontext() as journal:
            if not (self.resume or self.overwrite):
                refuse_existing(self.out)
            questions = self._questions()
            async with self.connection.open(transport) as client:
                tell(judge_notes(await client.models(), {judge_name(self.by)}))
                options = CompareOptions(deadline_s=self.connection.deadline_s)
                chooser = await JudgeChooser.open(client, self.by, self.by.name, **options)
                await self._rank(client, chooser.line, questions, journal)

    def _questions(self) -> Iterator[Question]:
        """Return the questions. Read the first one now, because a judge need not be asked about a wrong file."""
        questions = self.reader.read(self.source.name, self.source.records())
        first = next(questions, None)
        return itertools.chain(() if first is None else (first,), questions)

    async def _rank(self, client: AsyncClient, by: str, questions: Iterable[Question], journal: Journal | None) -> None:
        lines = _Lines(journal, by)
        lines.open(resume=self.resume)
        waiting: deque[_Open] = deque()

        def take(question: Question, line: Mapping[str, Any], cost: RankingCost | None) -> None:
            lines.take(question, line, new=cost is not None)
            self._count(line, cost)
            shown(self.questions, "")

        def take_complete(done: _Open) -> None:
            take(done.question, *done.ranked(by))

        with progress("ranking", None, quiet=self.quiet, rows_on_stdout=journal is None) as shown:
            pairs = self._pairs(questions, waiting, lines.known, take)
            async with aclosing(
                client.compare_stream(pairs, self.by, deadline_s=self.connection.deadline_s)
            ) as comparisons:
                async for comparison in comparisons:
                    _add(waiting, comparison)
                    while waiting and waiting[0].is_complete:
                        take_complete(waiting.popleft())
            while waiting:
                take_complete(waiting.popleft())
        lines.finish()

    @staticmethod
    def _pairs(
        questions: Iterable[Question], waiting: deque[_Open], known: Mapping[Key, Mapping[str, Any]], take: Any
    ) -> Iterator[Pair]:
        sent = 0
        for question in questions:
            if (line := known.get((question.index, question.digest))) is not None:
                take(question, line, None)
                continue
            waiting.append(_Open(question, sent))
            sent += question.plan.count
            yield from question.plan.pairs

    def _count(self, line: Mapping[str, Any], cost: RankingCost | None) -> None:
        """Count a line. `cost` is None for a line from an earlier run."""
        self.questions += 1
        self.kept += cost is None
        self.refused += line["status"] != Status.OK
        self.statuses.update(each["status"] for each in line["answers"])
        if not line["answers"]:
            self.statuses[line["status"]] += 1
        self.cost += cost or RankingCost()

    def report(self) -> list[str]:
        """Return sentences on the questions, the answers and the cost."""
        scored = self.statuses[Status.OK]
        others = {status: number for status, number in sorted(self.statuses.items()) if status != Status.OK}
        listed = ", ".join(f"{number} {status}" for status, number in others.items())
        earlier = f", {self.kept} of them from earlier runs" if self.kept else ""
        cost = self.cost
        with_score = "1 answer has" if scored == 1 else f"{scored} answers have"
        verdicts = _counted(cost.verdicts + cost.cached_verdicts, "verdict")
        cached = f", {cost.cached_verdicts} of them from a cache" if cost.cached_verdicts else ""
        tokens = f", {cost.prompt_tokens} tokens read and {cost.generated_tokens} written" if cost.prompt_tokens else ""
        lines = [
            f"ranked {self.questions - self.refused} of {_counted(self.questions, 'question')}{earlier}",
            f"{with_score} a score" + (f"; without a score: {listed}" if listed else ""),
            f"compared {_counted(cost.pairs, self._noun)} with {verdicts}{cached}{tokens}",
        ]
        price = self.prices.price(cost.prompt_tokens, cost.generated_tokens)
        return [*lines, *([f"price {price:.4g}"] if price is not None and cost.prompt_tokens else [])]

    @property
    def _noun(self) -> str:
        return "list" if lists_answers(self.by) else "pair"

    async def estimate(self, transport: Transport | None) -> None:
        """Print the calls, tokens and price of a run, using nothing from the server except its list of models."""
        prompts = server_module("gradewire_cli.server_prompts")
        questions = self._questions()
        async with self.connection.open(transport) as client:
            listed = await client.models()
        elsewhere, name = runs_elsewhere(listed, self.by), judge_name(self.by)
        judge_server = self.connection.judge_server
        meter = prompts.judge_meter(
            name, elsewhere=elsewhere, settings={} if judge_server is None else judge_server.settings()
        )
        bounded = not elsewhere or self.connection.server is None
        view = prompts.prompt_viewer(self.by.to_spec())
        work = JudgeWork(name, view, meter, elsewhere, bounded, noun=f"{self._noun}s")
        known: set[int] = set()
        for question in questions:
            self.questions += 1
            self.refused += question.plan.refusal is not None
            for index, pair in enumerate(question.plan.pairs):
                message = encode_pair(index, pair, max_bytes=_MAX_PAIR_BYTES)
                work.add(message, known)  # type: ignore[arg-type] # the plan's texts can be encoded, and pictures are not sent
        click.echo(f"{self.questions - self.refused} of {self.questions} questions can be ranked")
        click.echo(printable(f"{self.by.name}: {work.text()}"))
        for line in cost_lines([work], self.prices):
            click.echo(printable(line))
        click.echo(NOTHING_SENT)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _add(waiting: Iterable[_Open], comparison: Comparison) -> None:
    for each in waiting:
        place = comparison.index - each.first
        if 0 <= place < each.question.plan.count:
            each.found[place] = comparison
            return


def finished_line(text: bytes) -> dict[str, Any] | None:
    """Return a line of an earlier run, or None if this command did not write it."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or any(type(line.get(name)) is not kind for name, kind in _KINDS.items()):
        return None
    answers = line["answers"]
    return line if all(isinstance(each, dict) and isinstance(each.get("status"), str) for each in answers) else None


def line_of(question: Question, ranking: Ranking, comparisons: Sequence[Comparison], by: str) -> dict[str, Any]:
    """Return a question's output line. Its verdicts and tokens are the same if they come from a cache."""
    texts = [{"answer": text} for text in question.answers] or [{} for _ in ranking.answers]
    ids = [{"id": each} for each in question.ids] or [{} for _ in texts]
    answers = [
        {**identifier, **text, **ranked.to_dict()}
        for identifier, text, ranked in zip(ids, texts, ranking.answers, strict=True)
    ]
    given = question.plan.given
    group = {"group": given.group} if given is not None and given.group else {}
    return {
        "id": ranking.id,
        "index": question.index,
        "status": str(ranking.status),
        **({"message": ranking.message} if ranking.message else {}),
        **group,
        "question": given.question if given is not None else "",
        "answers": answers,
        "order": ranking.order,
        "pairs": len(comparisons),
        "pair_statuses": dict(Counter(str(comparison.status) for comparison in comparisons)),
        "verdicts": sum(map(count_verdicts, comparisons)),
        "prompt_tokens": sum(comparison.prompt_tokens for comparison in comparisons),
        "generated_tokens": sum(comparison.generated_tokens for comparison in comparisons),
        "by": by,
        "digest": question.digest,
    }
