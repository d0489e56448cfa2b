"""Several answers to one question, ranked by a judge that compares them in pairs or puts them in order."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final, NamedTuple, Self, TypeAlias

from gradewire._rows import UnreadableValueError
from gradewire.candidates import CandidateRows, Candidates, Failed, candidates_of
from gradewire.errors import InvalidRequest
from gradewire.metrics import Compare, CompareDecision, ComparisonLike
from gradewire.options import check_comparison, check_most, lists_answers, rows_of
from gradewire.pairs import Comparison, Pair, Winner
from gradewire.results import Status
from gradewire_proto.wire_rules import MAX_LISTED_ANSWERS, count_list_orders

MOST_ANSWERS: Final = MAX_LISTED_ANSWERS
"""Maximum number of answers to one question. Their 2 016 pairs need 4 032 verdicts."""
_LEAST_ANSWERS: Final = 2
ListRule: TypeAlias = CompareDecision
"""When an answer beats another one: if it is ahead of it in all orders, or in more orders than behind it."""
# The caller does not know the positions of pairs, which messages begin with.
_PLACE: Final = re.compile(r"^pairs\[\d+\](?:: |\.)?")


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
        pairs: Number of pairs to compare. With `compare:listwise`, a list counts as one pair.
        verdicts: Number of verdicts that the judge computed, two for each pair, or four for a list of at least three
            answers. In a plan, the maximum: pairs that look the same and cached verdicts need no work. With
            `mode=reason`, a verdict takes two calls of the judge.
        prompt_tokens: Number of tokens that the judge read; 0 in a plan, or if unknown. If only some of a pair's
            verdicts were computed, their share of the pair's tokens counts.
        generated_tokens: Number of tokens that the judge wrote, counted in the same way.
        cached_verdicts: Number of verdicts from a cache, or from another request that was computing them.
    """

    pairs: int = 0
    verdicts: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    cached_verdicts: int = 0

    @classmethod
    def of(cls, comparison: Comparison) -> "RankingCost":
        """Return the work of one comparison."""
        hits, given = comparison.cache_hits, count_verdicts(comparison)
        sources = hits.memory + hits.disk + hits.redis + hits.joined + hits.computed
        # A server that names no sources may have computed everything.
        computed, every = (hits.computed, sources) if sources else (1, 1)
        verdicts = -(-given * computed // every)  # a verdict with one cached call of two was computed
        read, written = comparison.prompt_tokens * computed / every, comparison.generated_tokens * computed / every
        return cls(1, verdicts, round(read), round(written), given - verdicts)

    def __add__(self, other: "RankingCost") -> "RankingCost":
        return RankingCost(
            self.pairs + other.pairs,
            self.verdicts + other.verdicts,
            self.prompt_tokens + other.prompt_tokens,
            self.generated_tokens + other.generated_tokens,
            self.cached_verdicts + other.cached_verdicts,
        )


def count_verdicts(comparison: Comparison) -> int:
    """Return the number of verdicts that a judge gave, one for each order of the answers that it saw."""
    # A rule that finds a list's answers equal gives a ranking, too.
    return 0 if comparison.decided_by == "rule" else len(comparison.orders or comparison.lists)


class RankedPair(NamedTuple):
    """Two answers, as their positions in `Candidates.answers`, with the comparison of the first with the second.

    With `compare:listwise`, the winner follows from the rankings, and the other fields are those of the whole list.
    """

    a: int
    b: int
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answers to one question with scores and ranks, in the order of `Candidates.answers`.

    Attributes:
        answers: Empty if the row cannot be read.
        status: OK if the judge gave a verdict on a pair, or the most frequent reason why it gave none.
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


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """The pairs to compare for one question.

    Attributes:
        given: The question with its answers; None if the row cannot be read.
        refusal: Status and message of a question without pairs; None if there are pairs.
        problems: Status and message of each answer that cannot be compared, by position.
        copies: Positions of each distinct answer. The first one stands for all.
        chosen: Pairs of distinct answers, as indices into `copies`.
        by_lists: The rule for a judge that puts all answers in order, or None for one that compares pairs.
    """

    index: int
    given: Candidates | None
    refusal: Failed | None = None
    problems: Mapping[int, Failed] = field(default_factory=dict)
    copies: Sequence[Sequence[int]] = ()
    chosen: Sequence[tuple[int, int]] = ()
    id: str = ""
    by_lists: ListRule | None = None

    @classmethod
    def of(
        cls,
        index: int,
        row: object,
        max_pairs: int | None = None,
        *,
        name: str = "",
        by_lists: ListRule | None = None,
    ) -> Self:
        """Plan one question. A row that cannot be used becomes a plan without pairs. Messages call it `name`."""
        try:
            given, unreadable = candidates_of(row)
        except UnreadableValueError as error:
            identifier = row.get("id", "") if isinstance(row, Mapping) else ""
            message = f"{name or f'candidates[{index}]'}{error}"
            return cls(index, None, (Status.INVALID_INPUT, message), id=str(identifier))
        problems: dict[int, Failed] = {}
        copies: dict[str, list[int]] = {}
        for place, answer in enumerate(given.answers):
            if (problem := unreadable.get(place) or _problem(answer)) is not None:
                problems[place] = problem
            else:
                copies.setdefault(" ".join(str(answer).split()), []).append(place)
        distinct = list(copies.values())
        refusal = _refusal(given, sum(map(len, distinct)), len(distinct), max_pairs)
        chosen = schedule(len(distinct), max_pairs)
        plan = cls(index, given, None, problems, distinct, chosen, given.id, by_lists)
        return plan if refusal is None else plan.refused(refusal)

    def refused(self, reason: Failed) -> Self:
        """Return the plan without pairs, because the question cannot be compared."""
        places = {place: reason for copies in self.copies for place in copies}
        return replace(self, refusal=reason, problems={**self.problems, **places}, copies=(), chosen=())

    @property
    def count(self) -> int:
        """The number of `pairs`."""
        return len(self.chosen) if self.by_lists is None else min(1, len(self.chosen))

    @property
    def cost(self) -> RankingCost:
        """The maximum work, without the numbers of tokens."""
        verdicts = 2 if self.by_lists is None else count_list_orders(len(self.copies))
        return RankingCost(self.count, self.count * verdicts)

    @property
    def pairs(self) -> list[Pair]:
        """The pairs to send, in the order of `chosen`, or one with all answers if the judge puts them in order."""
        given = self.given
        if given is None or not self.chosen:
            return []
        texts = [given.answers[places[0]] or "" for places in self.copies]
        shown = self.chosen if self.by_lists is None else [range(len(texts))]
        return [
            Pair(
                given.question,
                texts[a],
                texts[b],
                references=given.references,
                captions=given.captions,
                images=given.images,
                id=given.id,
                others=[texts[place] for place in others],
            )
            for a, b, *others in shown
        ]

    def ranking(self, received: Sequence[Comparison]) -> Ranking:
        """Return the ranking from the comparisons of `pairs`, in this order."""
        comparisons = received
        if self.by_lists is not None:
            ranked = [_checked(each, len(self.copies)) for each in received]
            comparisons = [_beaten(ranked[0], a, b, self.by_lists) for a, b in self.chosen]
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
        cost = sum(map(RankingCost.of, received), RankingCost())
        group = self.given.group if self.given is not None else ""
        status, message = self.refusal or _without_verdict(comparisons) or (Status.OK, "")
        return Ranking(tuple(answers), status, message, tuple(pairs), cost, self.index, self.id, group)


@dataclass(frozen=True, slots=True)
class RankingPlan:
    """The pairs to compare for some questions. `cost` is known before a judge is called."""

    questions: Sequence[QuestionPlan]

    @classmethod
    def of(cls, candidates: CandidateRows, max_pairs: int | None = None, by: ComparisonLike = "compare") -> Self:
        """Plan a ranking.

        Args:
            candidates: The same as for `Client.rank`.
            max_pairs: The same as for `Client.rank`.
            by: The same as for `Client.rank`. Only `compare:listwise` changes the plan.

        Raises:
            InvalidRequest: An argument is wrong.
        """
        if isinstance(candidates, Candidates):
            raise InvalidRequest("candidates is one Candidates: give a list of them")
        if max_pairs is not None:
            check_most("max_pairs", max_pairs)
        by_lists = list_rule(check_comparison(by, None), max_pairs)
        rows = enumerate(rows_of("candidates", candidates))
        return cls([QuestionPlan.of(index, row, max_pairs, by_lists=by_lists) for index, row in rows])

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of all questions."""
        return [pair for question in self.questions for pair in question.pairs]

    @property
    def cost(self) -> RankingCost:
        """The maximum work of the ranking, without the numbers of tokens."""
        return sum((question.cost for question in self.questions), RankingCost())

    def rankings(self, comparisons: Iterable[Comparison]) -> list[Ranking]:
        """Return the rankings from the comparisons of `pairs`, in this order."""
        given = iter(comparisons)
        return [question.ranking([next(given) for _ in range(question.count)]) for question in self.questions]


def list_rule(by: Compare, max_pairs: int | None) -> ListRule | None:
    """Return the rule by which lists decide who beats whom, or None if the judge compares pairs.

    Raises:
        InvalidRequest: `max_pairs` is set for a judge that sees all answers at once.
    """
    if not lists_answers(by):
        return None
    if max_pairs is not None:
        raise InvalidRequest(
            "max_pairs is for pairs: leave it out with compare:listwise, which asks about all answers at once"
        )
    return by.decision or "both"


def _checked(received: Comparison, answers: int) -> Comparison:
    """Return the comparison of a list. If the server returned OK without rankings, set the status to INTERNAL."""
    ranks = [each.ranks for each in received.lists]
    if received.status is not Status.OK or (ranks and all(len(each) == answers for each in ranks)):
        return received
    message = f"the server returned OK without a ranking of {answers} answers: report this defect"
    return replace(received, winner=None, status=Status.INTERNAL, message=message)


def _beaten(received: Comparison, a: int, b: int, rule: ListRule) -> Comparison:
    """Return the comparison of two answers that the judge's rankings of all answers imply."""
    if received.status is not Status.OK:
        return received
    ahead = sum(each.ranks[a] < each.ranks[b] for each in received.lists)
    behind = sum(each.ranks[a] > each.ranks[b] for each in received.lists)
    winner: Winner | None = None
    if not ahead and not behind:
        winner = "tie"
    elif (ahead if rule == "majority" else ahead == len(received.lists)) and ahead > behind:
        winner = "a"
    elif (behind if rule == "majority" else behind == len(received.lists)) and behind > ahead:
        winner = "b"
    if winner is not None:
        return replace(received, winner=winner)
    message = f"one answer is ahead of the other in {ahead} and behind it in {behind} of {len(received.lists)} orders"
    return replace(received, status=Status.INCONSISTENT, message=message)


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


def _without_verdict(comparisons: Sequence[Comparison]) -> Failed | None:
    """Return the most frequent failure of a question whose pairs all have no verdict, or None."""
    # The verdicts of an INCONSISTENT pair contradict each other, but the judge compared its answers.
    if not comparisons or any(each.winner or each.status is Status.INCONSISTENT for each in comparisons):
        return None
    status, message = _most_frequent(Counter((each.status, _told(each)) for each in comparisons))
    return status, f"no pair could be compared: {message}"


def _told(comparison: Comparison) -> str:
    return _PLACE.sub("", comparison.message)


def _most_frequent(failures: Counter[Failed]) -> Failed:
    """Return the most frequent status, with its first message."""
    by_status = Counter[Status]()
    for (status, _), number in failures.items():
        by_status[status] += number
    ((most, _),) = by_status.most_common(1)
    return most, next(message for status, message in failures if status is most)


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
            self.failures[comparison.status, _told(comparison)] += opponents
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
            every = f"all {self.ties} pairs of the answer are ties"
            return Status.TIED, every if self.ties > 1 else "the only pair of the answer is a tie"
        status, message = _most_frequent(self.failures)
        return status, f"no pair of the answer has a winner: {message}"


def _rank(place: int, scores: Mapping[int, float | None]) -> int | None:
    own = scores[place]
    return None if own is None else 1 + sum(score is not None and score > own for score in scores.values())
