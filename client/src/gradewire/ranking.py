"""Several answers to one question, ranked by a judge that compares them in pairs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final, NamedTuple, Self, TypeAlias

from gradewire._columns import ALIASES, similar_columns
from gradewire._rows import Table, UnreadableValueError, is_missing, plain, text_of, unpacked_list
from gradewire.errors import InvalidRequest
from gradewire.options import check_most, rows_of
from gradewire.pairs import Comparison, Pair
from gradewire.results import Status

MOST_ANSWERS: Final = 64
"""Maximum number of answers to one question. Their 2 016 pairs need 4 032 verdicts."""
_LEAST_ANSWERS: Final = 2
# The caller does not know the positions of pairs, which messages begin with.
_PLACE: Final = re.compile(r"^pairs\[\d+\](?:: |\.)?")
CANDIDATE_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "question": (*ALIASES["question"], "prompt", "instruction"),
    "answers": ("answers", "candidates", "completions", "responses", "predictions", "generations", "outputs"),
    "references": tuple(name for name in ALIASES["references"] if name not in {"answers", "answer", "solution"}),
    "captions": ("captions", "caption"),
    "images": ("images", "image"),
    "id": ("id", "question_id"),
    "group": ALIASES["group"],
}
"""Usual names of the fields of `Candidates`. A row with a list of answers has no single answer."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Several answers to one question. A mapping with the same keys, or with usual names for them, works too.

    Attributes:
        question: The question or instruction.
        answers: 2 to 64 answers. A blank answer gets the status EMPTY_PREDICTION, and None (the model has no output)
            INVALID_INPUT. Both are not compared. Equal answers are compared only once.
        references: Right answers, shown to the judge with `compare?references=true`.
        captions: Descriptions of the picture, shown with `caption=true`.
        images: Pictures that the question is about, in the formats of `Item.images`; sent with `image=true`.
        id: Your id for the question, returned with the result; need not be unique.
        group: A label for summaries; no metric reads it.
    """

    question: str
    answers: Sequence[str | None]
    references: Sequence[str] = ()
    captions: Sequence[str] = ()
    images: Sequence[object] = ()
    id: str = ""
    group: str = ""


CandidatesLike: TypeAlias = Candidates | Mapping[str, Any]
CandidateRows: TypeAlias = Iterable[CandidatesLike] | Table
"""Questions with their answers, or a pandas, polars or Arrow table with one question per row."""


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One of several answers, with its place among them.

    Attributes:
        score: Share of the answer's decided pairs that it won, 0 to 1; set if and only if `status` is OK. Ties and
            pairs without a winner do not count.
        rank: 1 for the highest score; equal scores share a rank. None without a score.
        status: OK, TIED if all pairs of the answer are ties, or the reason why it has no score.
        message: The error and its remedy; empty if `status` is OK.
        wins: Number of answers that this answer beat.
        losses: Number of answers that beat this answer.
        ties: Number of answers with which it tied. Equal answers tie.
        undecided: Number of pairs without a winner, for example because the judge contradicted itself.
    """

    score: float | None
    rank: int | None
    status: Status
    message: str = ""
    wins: int = 0
    losses: int = 0
    ties: int = 0
    undecided: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON with all fields, without an empty message."""
        names = ("score", "rank", "wins", "losses", "ties", "undecided")
        row = {"status": str(self.status)} | {name: getattr(self, name) for name in names}
        return row | ({"message": self.message} if self.message else {})


@dataclass(frozen=True, slots=True)
class RankingCost:
    """The work of a ranking.

    Attributes:
        pairs: Number of pairs to compare.
        verdicts: Number of the judge's verdicts, two for each pair. In a plan, the maximum: pairs that look the same
            need no verdict. With `mode=reason`, a verdict takes two calls of the judge.
        prompt_tokens: Number of tokens that the judge read; 0 in a plan, or if unknown.
        generated_tokens: Number of tokens that the judge wrote; 0 in a plan, or if unknown.
    """

    pairs: int = 0
    verdicts: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0

    def __add__(self, other: "RankingCost") -> "RankingCost":
        return RankingCost(
            self.pairs + other.pairs,
            self.verdicts + other.verdicts,
            self.prompt_tokens + other.prompt_tokens,
            self.generated_tokens + other.generated_tokens,
        )


class RankedPair(NamedTuple):
    """Two answers, as their positions in `Candidates.answers`, with the comparison of the first with the second."""

    a: int
    b: int
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answers to one question with scores and ranks, in the order of `Candidates.answers`.

    Attributes:
        answers: Empty if the row cannot be read.
        status: OK if the answers were compared, or the reason why none of them was.
        message: The error and its remedy; empty if `status` is OK.
        pairs: The compared pairs. Of equal answers, the first one stands for all.
        cost: The work that was done.
        index: Position of the question in the call, from 0.
        id: The caller's id.
        group: The caller's group.
    """

    answers: tuple[RankedAnswer, ...]
    status: Status = Status.OK
    message: str = ""
    pairs: tuple[RankedPair, ...] = ()
    cost: RankingCost = field(default_factory=RankingCost)
    index: int = 0
    id: str = ""
    group: str = ""

    @property
    def order(self) -> list[int]:
        """Positions of the answers with a score, the best one first."""
        scored = [place for place, answer in enumerate(self.answers) if answer.rank is not None]
        return sorted(scored, key=lambda place: self.answers[place].rank or 0)

    @property
    def line(self) -> str:
        """The metric identifier that reproduces the verdicts; empty if no pair reached a server."""
        return next((pair.comparison.line for pair in self.pairs if pair.comparison.line), "")

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON with id, status and answers, and with the other fields that are not empty."""
        row = {"id": self.id, "status": str(self.status), "answers": [answer.to_dict() for answer in self.answers]}
        found = {"message": self.message, "group": self.group, "line": self.line}
        return row | {name: value for name, value in found.items() if value}


Failed: TypeAlias = tuple[Status, str]
"""The status and the message of a failure."""


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """The pairs to compare for one question.

    Attributes:
        given: The question with its answers; None if the row cannot be read.
        refusal: Status and message of a question without pairs; None if there are pairs.
        problems: Status and message of each answer that cannot be compared, by position.
        copies: Positions of each distinct answer. The first one stands for all.
        chosen: Pairs of distinct answers, as indices into `copies`.
    """

    index: int
    given: Candidates | None
    refusal: Failed | None = None
    problems: Mapping[int, Failed] = field(default_factory=dict)
    copies: Sequence[Sequence[int]] = ()
    chosen: Sequence[tuple[int, int]] = ()
    id: str = ""

    @classmethod
    def of(cls, index: int, row: object, max_pairs: int | None = None) -> Self:
        """Plan one question. A row that cannot be used becomes a plan without pairs."""
        try:
            given = candidates_of(row)
        except UnreadableValueError as error:
            identifier = row.get("id", "") if isinstance(row, Mapping) else ""
            return cls(index, None, (Status.INVALID_INPUT, f"candidates[{index}]{error}"), id=str(identifier))
        problems: dict[int, Failed] = {}
        copies: dict[str, list[int]] = {}
        for place, answer in enumerate(given.answers):
            if (problem := _problem(answer)) is not None:
                problems[place] = problem
            else:
                copies.setdefault(" ".join(str(answer).split()), []).append(place)
        distinct = list(copies.values())
        refusal = _refusal(given, sum(map(len, distinct)), len(distinct), max_pairs)
        plan = cls(index, given, None, problems, distinct, schedule(len(distinct), max_pairs), given.id)
        return plan if refusal is None else plan.refused(refusal)

    def refused(self, reason: Failed) -> Self:
        """Return the plan without pairs, because the question cannot be compared."""
        places = {place: reason for copies in self.copies for place in copies}
        return replace(self, refusal=reason, problems={**self.problems, **places}, copies=(), chosen=())

    @property
    def pairs(self) -> list[Pair]:
        """The pairs to send, in the order of `chosen`."""
        given = self.given
        if given is None:
            return []
        texts = [given.answers[places[0]] or "" for places in self.copies]
        return [
            Pair(
                given.question,
                texts[a],
                texts[b],
                references=given.references,
                captions=given.captions,
                images=given.images,
                id=given.id,
            )
            for a, b in self.chosen
        ]

    def ranking(self, comparisons: Sequence[Comparison]) -> Ranking:
        """Return the ranking from the comparisons of `pairs`, in this order."""
        tallies = [_Tally(copies=len(places)) for places in self.copies]
        for (a, b), comparison in zip(self.chosen, comparisons, strict=True):
            tallies[a].add(comparison, "a", tallies[b].copies)
            tallies[b].add(comparison, "b", tallies[a].copies)
        scores = {place: tally.score for places, tally in zip(self.copies, tallies, strict=True) for place in places}
        found = {place: tally for places, tally in zip(self.copies, tallies, strict=True) for place in places}
        answers = [
            RankedAnswer(None, None, *self.problems[place])
            if place in self.problems
            else found[place].ranked(_rank(place, scores))
            for place in range(len(self.problems) + len(found))
        ]
        pairs = [
            RankedPair(self.copies[a][0], self.copies[b][0], comparison)
            for (a, b), comparison in zip(self.chosen, comparisons, strict=True)
        ]
        cost = RankingCost(
            len(pairs),
            sum(len(comparison.orders) for comparison in comparisons),
            sum(comparison.prompt_tokens for comparison in comparisons),
            sum(comparison.generated_tokens for comparison in comparisons),
        )
        group = self.given.group if self.given is not None else ""
        status, message = self.refusal or (Status.OK, "")
        return Ranking(tuple(answers), status, message, tuple(pairs), cost, self.index, self.id, group)


@dataclass(frozen=True, slots=True)
class RankingPlan:
    """The pairs to compare for some questions. `cost` is known before a judge is called."""

    questions: Sequence[QuestionPlan]

    @classmethod
    def of(cls, candidates: CandidateRows, max_pairs: int | None = None) -> Self:
        """Plan a ranking.

        Args:
            candidates: The same as for `Client.rank`.
            max_pairs: The same as for `Client.rank`.

        Raises:
            InvalidRequest: An argument is wrong.
        """
        if isinstance(candidates, Candidates):
            raise InvalidRequest("candidates is one Candidates: give a list of them")
        if max_pairs is not None:
            check_most("max_pairs", max_pairs)
        rows = enumerate(rows_of("candidates", candidates))
        return cls([QuestionPlan.of(index, row, max_pairs) for index, row in rows])

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of all questions."""
        return [pair for question in self.questions for pair in question.pairs]

    @property
    def cost(self) -> RankingCost:
        """The maximum work of the ranking, without the numbers of tokens."""
        pairs = sum(len(question.chosen) for question in self.questions)
        return RankingCost(pairs, 2 * pairs)

    def rankings(self, comparisons: Iterable[Comparison]) -> list[Ranking]:
        """Return the rankings from the comparisons of `pairs`, in this order."""
        given = iter(comparisons)
        return [question.ranking([next(given) for _ in question.chosen]) for question in self.questions]


def schedule(count: int, most: int | None = None) -> list[tuple[int, int]]:
    """Return pairs of `count` answers, round by round: each answer has at most one pair in a round.

    The first `count - 1` pairs connect all answers, and the first `most` pairs give each answer about the same number
    of opponents.
    """
    # In the circle method, one seat stays and the others move on by one seat from round to round.
    seats: list[int | None] = [*range(count), *([None] if count % 2 else [])]
    half = len(seats) // 2
    pairs: list[tuple[int, int]] = []
    for _ in range(len(seats) - 1):
        for a, b in zip(seats[:half], reversed(seats[half:]), strict=True):
            if a is not None and b is not None:
                pairs.append((min(a, b), max(a, b)))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    # Without a budget no pair is left out, so pairs can have the usual order.
    return pairs[:most] if most is not None and most < len(pairs) else list(combinations(range(count), 2))


def _problem(answer: str | None) -> Failed | None:
    if answer is None:
        return Status.INVALID_INPUT, "the answer is None: the model has no output"
    if not any(map(str.isalnum, answer)):
        return Status.EMPTY_PREDICTION, "the answer contains no letter or digit to compare"
    try:
        answer.encode()
    except UnicodeEncodeError:
        return Status.INVALID_INPUT, "the answer has a lone surrogate: decode the source as UTF-8"
    return None


def _refusal(given: Candidates, usable: int, distinct: int, max_pairs: int | None) -> Failed | None:
    number = len(given.answers)
    if not given.question.strip():
        return Status.INVALID_INPUT, "the question is empty: a judge needs it to compare answers"
    if not _LEAST_ANSWERS <= number <= MOST_ANSWERS:
        return Status.INVALID_INPUT, f"give {_LEAST_ANSWERS} to {MOST_ANSWERS} answers, not {number}"
    if usable < _LEAST_ANSWERS:
        return Status.INVALID_INPUT, f"only {usable} of {number} answers can be compared, so there is no other answer"
    if max_pairs is not None and max_pairs < distinct - 1:
        least = distinct - 1
        return Status.INVALID_PARAMETER, f"max_pairs={max_pairs}: {distinct} answers need at least {least} pairs"
    return None


@dataclass(slots=True)
class _Tally:
    """The results of one distinct answer. Each opponent counts as often as it was given."""

    copies: int
    wins: int = 0
    losses: int = 0
    ties: int = 0
    failures: Counter[Failed] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.ties = self.copies - 1

    def add(self, comparison: Comparison, side: str, opponents: int) -> None:
        if comparison.winner is None:
            self.failures[comparison.status, _PLACE.sub("", comparison.message)] += opponents
        elif comparison.winner == "tie":
            self.ties += opponents
        elif comparison.winner == side:
            self.wins += opponents
        else:
            self.losses += opponents

    @property
    def score(self) -> float | None:
        decided = self.wins + self.losses
        return self.wins / decided if decided else None

    def ranked(self, rank: int | None) -> RankedAnswer:
        status, message = Status.OK, ""
        if self.score is None:
            status, message = self._reason()
        undecided = self.failures.total()
        return RankedAnswer(self.score, rank, status, message, self.wins, self.losses, self.ties, undecided)

    def _reason(self) -> Failed:
        if not self.failures:
            return Status.TIED, f"all {self.ties} pairs of the answer are ties"
        by_status = Counter[Status]()
        for (status, _), number in self.failures.items():
            by_status[status] += number
        ((most, _),) = by_status.most_common(1)
        message = next(message for status, message in self.failures if status is most)
        return most, f"no pair of the answer has a winner: {message}"


def _rank(place: int, scores: Mapping[int, float | None]) -> int | None:
    own = scores[place]
    return None if own is None else 1 + sum(score is not None and score > own for score in scores.values())


def candidates_of(row: object) -> Candidates:
    """Return a row's candidates.

    Raises:
        UnreadableValueError: The row is not one. The message continues a sentence that names the row.
    """
    if isinstance(row, Candidates):
        values = {name: getattr(row, name) for name in CANDIDATE_COLUMNS}
    elif isinstance(row, Mapping):
        present = [key for key in row if isinstance(key, str)]
        values = {name: _first(row, similar_columns(names, present)) for name, names in CANDIDATE_COLUMNS.items()}
    else:
        raise UnreadableValueError(f" is a {type(row).__name__}: give a mapping or a gradewire.Candidates")
    answers = _listed(values["answers"])
    if answers is None:
        there = ", ".join(map(str, row)) if isinstance(row, Mapping) else type(values["answers"]).__name__
        raise UnreadableValueError(f".answers is not a list of answers (found: {there}): give a list of strings")
    images = values["images"]
    return Candidates(
        question=_text("question", values["question"]),
        answers=[_answer(place, each) for place, each in enumerate(answers)],
        references=tuple(_texts("references", values["references"])),
        captions=tuple(_texts("captions", values["captions"])),
        images=() if is_missing(images) else images if isinstance(images, list | tuple) else (images,),
        id=_text("id", values["id"]),
        group=_text("group", values["group"]),
    )


def _first(row: Mapping[str, Any], columns: Iterable[str]) -> Any:
    return next((row[column] for column in columns if not is_missing(row[column])), None)


def _listed(value: Any) -> list[Any] | None:
    value = plain(value)
    if isinstance(value, str):
        return unpacked_list(value)
    return list(value) if isinstance(value, list | tuple) else None


def _answer(place: int, value: Any) -> str | None:
    try:
        return text_of(value)
    except UnreadableValueError as error:
        raise UnreadableValueError(f".answers[{place}]{error}") from None


def _text(name: str, value: Any) -> str:
    try:
        return text_of(value) or ""
    except UnreadableValueError as error:
        raise UnreadableValueError(f".{name}{error}") from None


def _texts(name: str, value: Any) -> Iterator[str]:
    listed = _listed(value)
    for place, each in enumerate(([] if is_missing(value) else [value]) if listed is None else listed):
        yield _text(f"{name}[{place}]", each)
