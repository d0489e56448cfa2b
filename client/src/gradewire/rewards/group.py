"""Rewards from a judge that compares the completions of one prompt with each other."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from gradewire._calls.background import BackgroundCalls
from gradewire._calls.client_calls import ClientCalls, connect
from gradewire._calls.compare import PairRows
from gradewire._calls.retries import SPREAD
from gradewire._fork_safety import forget_in_children
from gradewire._rows import kind_of
from gradewire.candidates import Candidates
from gradewire.errors import InvalidRequest, ServerFault, TransportError
from gradewire.metrics import ComparisonLike
from gradewire.options import CompareOptions, check_comparison, check_deadline, check_most
from gradewire.pairs import Comparison, Pair
from gradewire.ranking import MOST_ANSWERS, QuestionPlan, RankedAnswer, Ranking, RankingCost, RankingPlan, list_rule
from gradewire.results import Status
from gradewire.rewards.answer import Answer, Extraction, Extractor, check_extraction, extract_answer
from gradewire.rewards.failure_notices import RewardNotices
from gradewire.rewards.gathering import failure_status
from gradewire.rewards.reward import FailureHandling, FailureWindow, Reward, RewardSample, completion_problem
from gradewire.transport import Endpoint, Transport
from gradewire_proto.wire_rules import Backoff

DEADLINE_S: Final = 600.0
_BACKOFF: Final = Backoff(0.5, 10.0, SPREAD)
_READ_PER_TURN: Final = 16


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of a `GroupReward`. Its docstring explains them.

    Raises:
        InvalidRequest: A setting is wrong.
    """

    carrier: Transport | Endpoint
    by: ComparisonLike
    judge: str | None
    num_generations: int | None
    max_pairs: int | None
    extraction: Extraction | Extractor
    failures: FailureHandling
    deadline_s: float
    reference_column: str

    def __post_init__(self) -> None:
        if not isinstance(self.carrier, Endpoint) and not hasattr(self.carrier, "unary"):
            raise InvalidRequest(
                f"server is {kind_of(self.carrier)}: give HOST:PORT, or for a token or TLS "
                "gradewire.transport.Endpoint(ADDRESS, token=…, tls=…)"
            )
        if check_comparison(self.by, self.judge).image:
            raise InvalidRequest("by: a reward sample has no picture, so leave out image=true")
        check_extraction(self.extraction)
        check_deadline(self.deadline_s)
        for name in ("num_generations", "max_pairs"):
            if getattr(self, name) is not None:
                check_most(name, getattr(self, name))
        list_rule(check_comparison(self.by, self.judge), self.max_pairs)
        if self.num_generations is not None and not 1 < self.num_generations <= MOST_ANSWERS:
            raise InvalidRequest(f"num_generations={self.num_generations}: give a number from 2 to {MOST_ANSWERS}")
        if self.num_generations is not None:
            self.check_size(self.num_generations)

    def check_size(self, size: int) -> None:
        """Raise InvalidRequest if a group of `size` completions is too large, or `max_pairs` cannot connect them."""
        if size > MOST_ANSWERS:
            raise InvalidRequest(
                f"{size} completions have the same question and references, but a judge compares at most "
                f"{MOST_ANSWERS}: set num_generations"
            )
        if self.max_pairs is not None and self.max_pairs < size - 1:
            raise InvalidRequest(f"max_pairs={self.max_pairs}: {size} completions need at least {size - 1} pairs")

    def make_calls(self) -> ClientCalls:
        """Return new calls, for one event loop in one process."""
        return ClientCalls(connect(self.carrier), self.deadline_s)

    def rows(self) -> PairRows:
        """Return the rows of one call."""
        return PairRows("GroupReward.score", self.by, CompareOptions(judge=self.judge, deadline_s=self.deadline_s))


class GroupReward:
    """A scorer whose reward is the share of pairs that a completion wins in its group, 0 to 1.

    A group is the completions of one prompt, as in GRPO. A judge compares all pairs of a group in both orders. Ties and
    pairs without a winner do not count. A completion that only ties gets None, like a completion without a reward:
    nothing says that it is better or worse than the mean of its group.

    Use it like a `RewardScorer`, for example as `TrlReward(GroupReward("127.0.0.1:50051"))`. One scorer serves blocking
    and async callers, and a pickled scorer contains only the settings.

    Args:
        server: The same as for `RewardScorer`. The server needs a judge.
        by: The comparison, such as "compare" or `"compare?references=true"`, which shows the judge the right answers.
            With `"compare:listwise"`, the judge puts all completions of a group in order, in up to four orders of them.
        judge: Judge (NAME or NAME@DIGEST), unless `by` sets one.
        num_generations: Number of consecutive completions that form a group. None means that a group is the completions
            of a call with the same question and references.
        max_pairs: Maximum number of pairs of a group, at least one less than its completions; None means all pairs, and
            is needed with `"compare:listwise"`.
        extraction: The part of a completion that the judge sees; see `extract_answer`. "whole" is all text after the
            thinking.
        failures: What to do with samples without a score; None means `FailureHandling()`.
        deadline_s: Deadline of a call, in seconds.
        reference_column: The same as for `RewardScorer`.

    Raises:
        InvalidRequest: An argument is wrong.
    """

    def __init__(  # noqa: PLR0913 - all optional and named
        self,
        server: str | Endpoint | Transport = "127.0.0.1:50051",
        by: ComparisonLike = "compare",
        *,
        judge: str | None = None,
        num_generations: int | None = None,
        max_pairs: int | None = None,
        extraction: Extraction | Extractor = "whole",
        failures: FailureHandling | None = None,
        deadline_s: float = DEADLINE_S,
        reference_column: str = "",
    ) -> None:
        self.__setstate__(
            GroupSettings(
                carrier=Endpoint(server) if isinstance(server, str) else server,
                by=by,
                judge=judge,
                num_generations=num_generations,
                max_pairs=max_pairs,
                extraction=extraction,
                failures=failures or FailureHandling(),
                deadline_s=deadline_s,
                reference_column=reference_column,
            )
        )

    def __getstate__(self) -> GroupSettings:
        return self._settings

    def __setstate__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._background = BackgroundCalls(settings.make_calls)
        self.forget()
        forget_in_children(self)

    def forget(self) -> None:
        """In a forked child, begin with no rewards."""
        self._window = FailureWindow(self._settings.failures)
        self._notices = RewardNotices()
        self._cost = RankingCost()

    @property
    def failures(self) -> FailureHandling:
        """The settings for samples without a score."""
        return self._settings.failures

    @property
    def reference_column(self) -> str:
        """Column of the right answers; "" means the column with a usual name."""
        return self._settings.reference_column

    @property
    def needs_references(self) -> bool:
        """True if the judge sees the right answers."""
        return bool(check_comparison(self._settings.by, None).references)

    @property
    def cost(self) -> RankingCost:
        """The work of all calls so far."""
        return self._cost

    def plan(self, samples: Sequence[RewardSample]) -> RankingPlan:
        """Return the pairs that `score` would compare; `plan(samples).cost` is their number.

        Raises:
            InvalidRequest: The samples form no groups: see `ascore`.
        """
        return self._plan(samples, [self._read(sample) for sample in samples])[0]

    def score(self, samples: Sequence[RewardSample]) -> list[Reward]:
        """Return rewards like `ascore`, but block until they are ready. Several threads may call this concurrently."""
        return self._background.run(lambda calls: self._score(samples, calls))

    async def ascore(self, samples: Sequence[RewardSample]) -> list[Reward]:
        """Return the samples' rewards, in order. Pass all completions of a prompt in one call.

        Raises:
            InvalidRequest: The samples form no groups of `num_generations` completions of one prompt, a group has more
                than 64 completions, or `max_pairs` is too small for it.
            RewardFailureRate: Too many of the last rewards failed.
            RewardFailed: The failure policy stops the call.
            GradewireError: The comparison, token or address is wrong.
        """
        running = self._background.running()
        return await asyncio.wrap_future(running.loop.start(self._score(samples, running.calls)))

    def close(self) -> None:
        """Close the connection."""
        self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _score(self, samples: Sequence[RewardSample], calls: ClientCalls) -> list[Reward]:
        answers = []
        for place, sample in enumerate(samples, 1):
            answers.append(self._read(sample))
            if place % _READ_PER_TURN == 0:
                await asyncio.sleep(0)
        plan, groups = self._plan(samples, answers)
        rankings = plan.rankings(await self._compare(plan.pairs, calls))
        rewards: list[Reward | None] = [None] * len(samples)
        for group, ranking in zip(groups, rankings, strict=True):
            self._cost += ranking.cost
            for place, ranked in zip(group, ranking.answers, strict=True):
                rewards[place] = _reward(samples[place], answers[place], ranked, ranking)
        found = [reward for reward in rewards if reward is not None]
        self._notices.take(samples, found)
        self._window.check(found)
        return self._settings.failures.settle(found)

    def _read(self, sample: RewardSample) -> Answer:
        if completion_problem(sample.completion):
            return Answer("", "nothing")
        return extract_answer(sample.completion or "", self._settings.extraction)

    def _plan(
        self, samples: Sequence[RewardSample], answers: Sequence[Answer]
    ) -> tuple[RankingPlan, list[Sequence[int]]]:
        groups = self._groups(samples)
        by_lists = list_rule(check_comparison(self._settings.by, self._settings.judge), self._settings.max_pairs)
        questions = []
        for index, group in enumerate(groups):
            first = samples[group[0]]
            texts = [None if completion_problem(samples[place].completion) else answers[place].text for place in group]
            given = Candidates(first.question, texts, references=tuple(map(str, first.references)), id=first.id)
            questions.append(QuestionPlan.of(index, given, self._settings.max_pairs, by_lists=by_lists))
        return RankingPlan(questions), groups

    def _groups(self, samples: Sequence[RewardSample]) -> list[Sequence[int]]:
        size = self._settings.num_generations
        if size is None:
            same: dict[tuple[str, tuple[str, ...]], list[int]] = {}
            for place, sample in enumerate(samples):
                same.setdefault(_prompt_of(sample), []).append(place)
            for places in same.values():
                self._settings.check_size(len(places))
            return list(same.values())
        if len(samples) % size:
            raise InvalidRequest(
                f"{len(samples)} samples are no multiple of num_generations={size}: give all completions of a prompt "
                "to one process in one call"
            )
        groups: list[Sequence[int]] = [range(start, start + size) for start in range(0, len(samples), size)]
        for group in groups:
            first = _prompt_of(samples[group[0]])
            if other := next((place for place in group if _prompt_of(samples[place]) != first), None):
                raise InvalidRequest(
                    f"num_generations={size}: samples {group[0]} and {other} have different questions or references, "
                    "but are in one group: give the trainer's number of completions for each prompt, or None"
                )
        return groups

    async def _compare(self, pairs: Sequence[Pair], calls: ClientCalls) -> list[Comparison]:
        """Return the pairs' comparisons. With the policy "hold", compare pairs again whose failure may pass."""
        found: list[Comparison] = [Comparison(None, Status.UNAVAILABLE)] * len(pairs)
        left = list(range(len(pairs)))
        loop = asyncio.get_running_loop()
        hold_until = loop.time() + self._settings.failures.hold_s
        failures = 0
        while left:
            compared = await self._compare_once([pairs[place] for place in left], calls)
            for place, comparison in zip(left, compared, strict=True):
                found[place] = comparison
            left = [place for place in left if found[place].status.may_pass]
            failures += 1
            wait_s = _BACKOFF.wait_s(failures)
            if self._settings.failures.policy != "hold" or loop.time() + wait_s >= hold_until:
                break
            if left:
                await asyncio.sleep(wait_s)
        return found

    async def _compare_once(self, pairs: Sequence[Pair], calls: ClientCalls) -> list[Comparison]:
        try:
            return await calls.compare(pairs, self._settings.rows(), None)
        except TransportError as error:
            if not error.may_pass and not isinstance(error, ServerFault):
                raise  # the address is wrong, so a retry cannot help
            return [Comparison(None, failure_status(error), message=str(error))] * len(pairs)


def _prompt_of(sample: RewardSample) -> tuple[str, tuple[str, ...]]:
    return sample.question, tuple(map(str, sample.references))


def _reward(sample: RewardSample, answer: Answer, ranked: RankedAnswer, ranking: Ranking) -> Reward:
    provenance = next((pair.comparison.provenance for pair in ranking.pairs if pair.comparison.provenance), None)
    digest = provenance.model_digest if provenance else ""
    found = Reward(ranked.score, ranked.status, ranked.message, answer.text, ranking.line, digest)
    if ranked.status is Status.TIED:
        # The judge did its work, so this is no failure.
        return replace(found, status=Status.OK, reason=f"{ranked.message}: left out")
    if problem := completion_problem(sample.completion):
        return replace(found, reason=problem)
    return replace(found, reason=answer.reason) if ranked.status is Status.EMPTY_PREDICTION and answer.reason else found
