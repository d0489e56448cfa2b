"""Pairs of answers to the same question, and the engine that judges pairs and stores the verdicts."""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import aclosing
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from gradewire.results import Status
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.journal import Journal, files_of, identity_differences, refuse_other_run, whole_lines
from gradewire_cli.results.resumable_output import encode_row, verdict
from gradewire_cli.rows.row import Row, with_picture_digests

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


Winner = Literal["model_a", "model_b", "tie"]
"""The winner in a pair's record: model_a is the baseline, and model_b is the model compared with it."""
_NEEDED = ("digest", "winner", "status", "by")


@dataclass(frozen=True, slots=True)
class Result:
    """A metric's result for an answer.

    Attributes:
        correct: True if the answer counts as right, or None if the metric gives no verdict.
        status: OK, or the reason why there is no score.
    """

    score: float | None
    correct: bool | None
    status: str
    warnings: tuple[str, ...] = ()
    message: str = ""

    @classmethod
    def of_output(cls, label: str, result: Mapping[str, Any]) -> Self:
        """Return the result in an output row.

        Raises:
            ValueError: The score is not finite, or contradicts the status.
        """
        score, status = result["score"], result["status"]
        numeric = isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
        if not isinstance(status, str) or (status == Status.OK) != numeric or not (numeric or score is None):
            raise ValueError(f"{label} has score {score!r:.40} with status {status!r:.40}")
        return cls(
            score, verdict(label, result), status, tuple(result.get("warnings", ())), str(result.get("message", ""))
        )


def results_of(output: Mapping[str, Any]) -> dict[str, Result]:
    """Return an output row's results by label; raise ValueError like `Result.of_output`."""
    return {label: Result.of_output(label, result) for label, result in output["scores"].items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """One model's answer to a question.

    Attributes:
        results: Results by metric label. Empty if no metric was requested.
    """

    row: Row
    results: Mapping[str, Result] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return an item's field as a string, or "" if the field is missing."""
        value = (self.row.item or {}).get(name)
        return "" if value is None else str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return an item's field as strings, or () if the field is missing."""
        value = (self.row.item or {}).get(name)
        return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),) if value else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPair:
    """Two models' answers to the same question.

    Attributes:
        a: The baseline's answer. The question and references in this answer's row count for both answers.
    """

    index: int
    model_a: str
    model_b: str
    a: Answer
    b: Answer

    @property
    def id(self) -> str:
        """The id of the baseline's row."""
        return self.a.row.id

    def with_picture_digests(self, folder: Path | None) -> AnswerPair:
        """Return the pair with digests of both rows' pictures in `folder`. If `folder` is None, no picture is shown."""
        a, b = with_picture_digests((self.a.row, self.b.row), folder)
        return replace(self, a=replace(self.a, row=a), b=replace(self.b, row=b))

    @property
    def digest(self) -> str:
        """Digest (32 hex digits) of everything that a choice depends on except the chooser."""
        content = [self.model_a, self.model_b, *(row.digest + row.picture_digest for row in (self.a.row, self.b.row))]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A chooser's verdict on a pair.

    Attributes:
        winner: The better answer, or "tie"; None if `status` is not OK.
        status: OK, another `Status` if there is no winner, or INCONSISTENT if the two orders disagree.
        probability_a, probability_b, probability_tie: Means over both orders, or None if unknown.
        orders: The verdict in each order of the answers. Empty if the chooser does not depend on the order.
    """

    winner: Winner | None
    status: str = Status.OK.value
    message: str = ""
    probability_a: float | None = None
    probability_b: float | None = None
    probability_tie: float | None = None
    orders: Sequence[Mapping[str, Any]] = ()

    @property
    def may_pass(self) -> bool:
        """True if the server was down or too slow. --resume then retries the pair."""
        return self.status in {Status.UNAVAILABLE, Status.TIMEOUT}

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Self:
        """Return the choice in a pair's record."""
        return cls(**{each.name: line[each.name] for each in fields(cls) if each.name in line})


Chosen = tuple["AnswerPair", "Choice"]


class Chooser(Protocol):
    """An object that chooses the better of two answers.

    A chooser needs no state for --resume, because it receives only pairs that no earlier run judged.
    """

    @property
    def name(self) -> str:
        """The chooser's name in tables, --by and --fail-if."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that a choice depends on besides the pair: the identifier `by`, and other JSON values.

        Every pair's record contains the identity, and --resume refuses records with a different identity.
        """
        ...

    def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        """Yield every pair with its choice, in batches and in the order of the pairs.

        Pairs are read lazily. A pair that cannot be judged gets a status and does not affect other pairs.

        Raises:
            GradewireError: The server is down or refuses the call. Results that were yielded before stay valid.
        """
        ...


@dataclass(slots=True)
class PairEngine:
    """A chooser with the file that stores its verdicts.

    Attributes:
        journal: The file with one record (line) per pair, or None to store nothing.
        take: A function that is called with each valid record's line number (from 1) and content. Records of earlier
            runs come first.
        judged: Number of pairs with a choice so far in the latest call of `judge`.
    """

    chooser: Chooser
    journal: Journal | None = None
    digest: Callable[[AnswerPair], str] = attrgetter("digest")
    take: Callable[[int, Mapping[str, Any]], object] = lambda _, __: None
    judged: int = 0
    _known: dict[str, Choice] = field(default_factory=dict)
    _digests: list[str] = field(default_factory=list)
    _goes_on: bool = False

    def open(self, *, resume: bool, again: bool = False) -> None:
        """Start or continue the file.

        Args:
            resume: Keep existing final choices.
            again: Check that existing choices are from this chooser, then drop them, because scores may have changed
                and choosing by scores costs nothing.

        Raises:
            InputError: The file cannot be written, contains no pairs, or is from another chooser. Nothing was changed.
        """
        if self.journal is None:
            return
        end = 0
        path, aside = files_of(self.journal.path)[:2]
        # Older versions kept waiting pairs in FILE.resume.
        for source in (aside, path) if resume else ():
            self._digests, end = [], 0
            for number, line_end, line in _read_pairs(source):
                end = line_end
                refuse_other_run(source, identity_differences(line, self.chooser.identity))
                self._digests.append(line["digest"])
                if not (choice := Choice.of_line(line)).may_pass:
                    self._known[line["digest"]] = choice
                    self.take(number, line)
        if again:
            self._digests, self._known, end = [], {}, 0
        self._goes_on = bool(self._digests or self._known)
        self.journal.begin(end)
        if again or not resume:
            self._forget_aside()

    async def judge(
        self,
        pairs: Sequence[AnswerPair],
        *,
        again: bool = False,
        extra: Mapping[str, Any] | None = None,
        done: Callable[[], object] = lambda: None,
    ) -> list[Chosen]:
        """Return a choice for every pair. The chooser judges only pairs without an earlier choice.

        Raises:
            GradewireError: See `Chooser.choose`. Written records stay valid.
            InputError: The file cannot be written.
        """
        digests = [] if again or not self._known else [(pair.index, self.digest(pair)) for pair in pairs]
        found = {index: self._known[digest] for index, digest in digests if digest in self._known}
        asked = [pair for pair in pairs if pair.index not in found]
        self.judged = len(found)
        if found:
            done()
        async with aclosing(self.chooser.choose(asked)) as batches:
            async for batch in batches:
                self._write([line_of(pair, choice, self._said_of(pair, extra)) for pair, choice in batch])
                found.update((pair.index, choice) for pair, choice in batch)
                self.judged += len(batch)
                done()
        return [(pair, found[pair.index]) for pair in pairs]

    def finish(self, chosen: Sequence[Chosen] | None = None) -> None:
        """Complete the file durably; raise InputError if it cannot be written.

        With `chosen`, keep only these pairs, in this order.
        """
        if self.journal is None:
            return
        # A new file is already in order, because the chooser keeps the pairs' order.
        if self._goes_on and chosen is not None and [self.digest(pair) for pair, _ in chosen] != self._digests:
            self.journal.replace(encode_row(line_of(*each, self._said_of(each[0]))) for each in chosen)
        self.journal.finish()
        self._forget_aside()

    def _said_of(self, pair: AnswerPair, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {**self.chooser.identity, "digest": self.digest(pair), **(extra or {})}

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
    """Return a pair's record, which `gradewire leaderboard` can read, with `said` as additional fields."""
    question = pair.a.row.question_id or pair.a.row.question_key
    scores = {
        label: {"a": pair.a.results[label].score, "b": pair.b.results[label].score}
        for label in pair.a.results
        if label in pair.b.results
    }
    return {
        "id": pair.id,
        "instruction_id": question or pair.id,
        "group": pair.a.row.group or pair.a.row.dataset,
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
    """Yield each line's number, its end offset in bytes, and its record. A missing file has no lines."""
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
                raise InputError(f"{path}: line {number} is not a pair from gradewire compare. Use another --out")
            yield number, end, pair
