"""Verdicts on pairs of answers: those of earlier runs from a file, the others from a chooser, kept as they come.

A run that goes on adds to the file, so that a kill at any moment leaves every pair that was judged.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from gradewire.cli.choosing.pairs import Choice
from gradewire.cli.output.journal import files_of, identity_differences, refuse_other_run, whole_lines
from gradewire.cli.output.result_rows import encode_row
from gradewire.cli.problems import InputError, named_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire.cli.choosing.choosers import Chooser, Chosen
    from gradewire.cli.choosing.pairs import AnswerPair
    from gradewire.cli.output.journal import Journal

_NEEDED = ("digest", "winner", "status", "by")


@dataclass(slots=True)
class PairEngine:
    """A chooser with the file of what it has said.

    Attributes:
        chooser: Asked for what the file does not know.
        journal: The file, a line for each pair; None keeps none.
        digest: Tells pairs apart; it stands in every line.
        take: Given the number, from 1, and the content of every line that stands: those of earlier runs, then new ones.
        judged: Pairs of the last call of `judge` that have a choice by now.
    """

    chooser: Chooser
    journal: Journal | None = None
    digest: Callable[[AnswerPair], str] = attrgetter("digest")
    take: Callable[[int, Mapping[str, Any]], object] = lambda _, __: None
    judged: int = 0
    _known: dict[str, Choice] = field(default_factory=dict)
    _digests: list[str] = field(default_factory=list)
    _goes_on: bool = False

    def open(self, *, resume: bool, anew: bool = False) -> None:
        """Begin the file, or go on with it.

        Args:
            resume: Keeps what is there, but for what may turn out otherwise.
            anew: Keeps nothing of it after all, for the chooser costs nothing and goes by scores, which may be others
                now; it has to be of this chooser all the same.

        Raises:
            InputError: It cannot be written, holds no pairs, or those of another chooser; nothing was changed.
        """
        if self.journal is None:
            return
        end = 0
        path, aside = files_of(self.journal.path)[:2]
        # Versions before this one let pairs wait in FILE.resume.
        for source in (aside, path) if resume else ():
            self._digests, end = [], 0
            for number, line_end, line in _read_pairs(source):
                end = line_end
                refuse_other_run(source, identity_differences(line, self.chooser.identity))
                self._digests.append(line["digest"])
                if not (choice := Choice.of_line(line)).may_pass:
                    self._known[line["digest"]] = choice
                    self.take(number, line)
        if anew:
            self._digests, self._known, end = [], {}, 0
        self._goes_on = bool(self._digests or self._known)
        self.journal.begin(end)
        if anew or not resume:
            self._forget_aside()

    async def judge(
        self,
        pairs: Sequence[AnswerPair],
        *,
        anew: bool = False,
        told: Mapping[str, Any] | None = None,
        done: Callable[[], object] = lambda: None,
    ) -> list[Chosen]:
        """Have every pair chosen; the chooser is asked for those alone that no earlier run has.

        Args:
            pairs: All of them.
            anew: Asks for all.
            told: What the lines of new pairs say beside.
            done: Called whenever `judged` is another number.

        Raises:
            GradewireError: As `Chooser.choose`; what was written stands.
            InputError: The file cannot be written.
        """
        digests = [] if anew or not self._known else [(pair.index, self.digest(pair)) for pair in pairs]
        found = {index: self._known[digest] for index, digest in digests if digest in self._known}
        asked = [pair for pair in pairs if pair.index not in found]
        self.judged = len(found)
        if found:
            done()
        async with aclosing(self.chooser.choose(asked)) as batches:
            async for batch in batches:
                self._write([line_of(pair, choice, self._said_of(pair, told)) for pair, choice in batch])
                found.update((pair.index, choice) for pair, choice in batch)
                self.judged += len(batch)
                done()
        return [(pair, found[pair.index]) for pair in pairs]

    def finish(self, chosen: Sequence[Chosen] | None = None) -> None:
        """End the file, which outlasts a power cut then; raises InputError where it cannot be written.

        With `chosen` it has these pairs alone, in their order.
        """
        if self.journal is None:
            return
        # What a chooser gives comes in order.
        if self._goes_on and chosen is not None and [self.digest(pair) for pair, _ in chosen] != self._digests:
            self.journal.replace(encode_row(line_of(*each, self._said_of(each[0]))) for each in chosen)
        self.journal.finish()
        self._forget_aside()

    def _said_of(self, pair: AnswerPair, told: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {**self.chooser.identity, "digest": self.digest(pair), **(told or {})}

    def _write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        if self.journal is not None:
            self.journal.write(b"".join(map(encode_row, lines)))
        for line in lines:
            self._digests.append(line["digest"])
            self.take(len(self._digests), line)

    def _forget_aside(self) -> None:
        if self.journal is not None:
            with named_errors(self.journal.path):
                files_of(self.journal.path)[1].unlink(missing_ok=True)


def line_of(pair: AnswerPair, choice: Choice, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of the file, as `gradewire leaderboard` reads it, with what is said beside pair and choice."""
    question = pair.a.row.question_id or pair.a.row.question_key
    scores = {
        label: {"a": pair.a.results[label].score, "b": pair.b.results[label].score}
        for label in pair.a.results
        if label in pair.b.results
    }
    return {
        "id": pair.id,
        "instruction_id": question or pair.id,
        "family": pair.a.row.group or pair.a.row.dataset,
        "question": pair.a.text("question"),
        "model_a": pair.model_a,
        "model_b": pair.model_b,
        "winner": choice.winner,
        "status": choice.status,
        **({"message": choice.message} if choice.message else {}),
        "probability_a": choice.probability_a,
        "probability_b": choice.probability_b,
        "probability_tie": choice.probability_tie,
        "orders": list(choice.orders),
        "length_a_words": len(pair.a.text("prediction").split()),
        "length_b_words": len(pair.b.text("prediction").split()),
        "answer_a": pair.a.text("prediction"),
        "answer_b": pair.b.text("prediction"),
        **({"scores": scores} if scores else {}),
        **said,
    }


def _read_pairs(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the lines of a file of pairs with their numbers and ends; none where there is no file.

    Raises:
        InputError: A line is none of a pair, or the file cannot be read.
    """
    if not path.exists():
        return
    with named_errors(path), path.open("rb") as stream:
        for number, end, line in whole_lines(stream):
            try:
                pair = json.loads(line)
                complete = isinstance(pair, dict) and all(name in pair for name in _NEEDED)
            except (ValueError, RecursionError):
                complete = False
            if not complete:
                raise InputError(f"{path}: line {number} is no pair of gradewire compare: give another --out")
            yield number, end, pair
