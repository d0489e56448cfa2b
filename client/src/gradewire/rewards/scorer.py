"""The scorer that turns completions into rewards, with a metric on a server."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, Self, TypedDict, Unpack

from gradewire._calls.background import BackgroundCalls
from gradewire._calls.client_calls import ClientCalls, connect
from gradewire._calls.retries import SPREAD
from gradewire._calls.score import check_streamed
from gradewire._fork_safety import forget_in_children, keep_for_good
from gradewire._tracing import UNTRACED, call_trace
from gradewire.errors import InvalidRequest
from gradewire.items import Item
from gradewire.metrics import Preset, Synthetic
from gradewire.metrics.choice import MetricChoice, MetricDefaults, MetricsLike
from gradewire.options import CallOptions, check_deadline, check_most, check_names
from gradewire.results import ItemScores, MetricScore, ScoreWarning, Status
from gradewire.rewards.answer import Answer, Extraction, Extractor, bare_reference, check_extraction, extract_answer
from gradewire.rewards.failure_notices import RewardNotices
from gradewire.rewards.gathering import Gatherer, Gathering
from gradewire.rewards.reward import FailureHandling, FailureWindow, Reward, RewardSample, completion_problem
from gradewire.transport import Endpoint, Transport
from gradewire_proto.tracing.spans import CLIENT_REWARDS, ITEMS
from gradewire_proto.wire_rules import Backoff


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """The settings of a `RewardScorer`. The scorer's docstring explains them.

    Raises:
        InvalidRequest: A setting is wrong.
    """

    carrier: Transport | Endpoint
    options: CallOptions
    reads: str
    extraction: Extraction | Extractor
    failures: FailureHandling
    gathering: Gathering
    deadline_s: float
    max_answer_characters: int | None
    reference_column: str

    def __post_init__(self) -> None:
        if not isinstance(self.carrier, Endpoint) and not hasattr(self.carrier, "stream"):
            raise InvalidRequest(
                f"server is a {type(self.carrier).__name__}: give HOST:PORT, or for a token or TLS "
                "gradewire.transport.Endpoint(ADDRESS, token=…, tls=…)"
            )
        check_extraction(self.extraction)
        check_deadline(self.deadline_s)
        if self.max_answer_characters is not None:
            check_most("max_answer_characters", self.max_answer_characters)
        if self.reads not in {"score", "correct"}:
            raise InvalidRequest(f"reads={self.reads!r}: give 'score', or 'correct' for a verdict of 1 or 0")
        check_streamed(self.options.choose().specs)
        check_streamed(self.choose_judge().specs)

    def make_calls(self) -> ClientCalls:
        """Return new calls, for one event loop in one process."""
        return ClientCalls(connect(self.carrier), self.deadline_s)

    def choose_judge(self) -> MetricChoice:
        """Return the metric for UNCERTAIN samples with the policy "judge"."""
        return CallOptions(self.failures.judge_metric, MetricDefaults()).choose()

    def max_characters(self, references: Sequence[str]) -> float:
        """Return the maximum length of an answer to a question with these references."""
        if self.max_answer_characters is None:
            return inf
        longest = max((len(str(each)) for each in references), default=0)
        return max(self.max_answer_characters, _TIMES_REFERENCE * longest)


DEADLINE_S = 60.0
USUAL_REWARD = "correctness,value_match"
"""Metrics of a reward if you name none; the lower score counts."""
MAX_ANSWER_CHARACTERS = 1500
_TIMES_REFERENCE = 4
# Number of completions to parse before other tasks of the event loop may run.
_READ_PER_TURN = 16
_BACKOFF = Backoff(0.5, 10.0, SPREAD)


class RewardOptions(TypedDict, total=False):
    """Options for parameters that the metric does not set. None means the default.

    Attributes:
        preset: Preset for smile.
        synthetic: Source of smile's synthetic answers: "none", "inline" or "prepared".
        model: Encoder (NAME or NAME@DIGEST).
        judge: Judge (NAME or NAME@DIGEST).
        reference_set: Name of a set that `prepare` returned.
    """

    preset: Preset | None
    synthetic: Synthetic | None
    model: str | None
    judge: str | None
    reference_set: str | None


class RewardScorer:
    """A scorer that extracts each completion's final answer and has a server score it.

    The reward is the lowest of the metrics' scores. By default these are `correctness` and, for references with values
    (numbers, dates), `value_match`. An answer that is too long gets 0, and an UNCERTAIN one at most 0.5. The guide
    docs/guides/rl-rewards.md compares metrics by the exploits that they reward.

    One scorer serves blocking and async callers, in any thread and on any event loop. A pickled scorer contains only
    the settings. The scorer works in a forked child unless the parent has loaded gRPC.

    Args:
        server: HOST:PORT of the server, an `Endpoint` (for a token or TLS), or a transport (such as
            `gradewire.testing.StubTransport`).
        metric: One or more metrics: names (`"correctness,value_match"`), identifiers or objects. Further metrics that
            cannot compare a sample (INVALID_INPUT) do not count.
        reads: The value that becomes the reward: "score" for the metric's score, or "correct" for its verdict (1.0 or
            0.0).
        extraction: Where to find the final answer; see `extract_answer`.
        failures: What to do with samples without a score; None means `FailureHandling()`.
        deadline_s: Deadline of a call, in seconds. Use less than the framework's time limit for a reward function.
        gathering: Limits for gathering calls into batches; None means `Gathering()`.
        max_answer_characters: Maximum length of the final answer. A longer one gets the reward 0, unless it is at most
            four times as long as the longest reference. None means no maximum.
        reference_column: Column of the right answers, for frameworks that pass a row's columns; if empty, the column
            with a usual name.
        **options: See `RewardOptions`.

    Raises:
        InvalidRequest: An argument is wrong.
    """

    def __init__(  # noqa: PLR0913 - all optional and named
        self,
        server: str | Endpoint | Transport = "127.0.0.1:50051",
        metric: MetricsLike = USUAL_REWARD,
        *,
        reads: Literal["score", "correct"] = "score",
        extraction: Extraction | Extractor = "auto",
        failures: FailureHandling | None = None,
        deadline_s: float = DEADLINE_S,
        gathering: Gathering | None = None,
        max_answer_characters: int | None = MAX_ANSWER_CHARACTERS,
        reference_column: str = "",
        **options: Unpack[RewardOptions],
    ) -> None:
        check_names("RewardScorer", options, RewardOptions)
        self.__setstate__(
            RewardSettings(
                carrier=Endpoint(server) if isinstance(server, str) else server,
                options=CallOptions(metric, MetricDefaults(**options)),
                reads=reads,
                extraction=extraction,
                failures=failures or FailureHandling(),
                gathering=gathering or Gathering(),
                deadline_s=deadline_s,
                max_answer_characters=max_answer_characters,
                reference_column=reference_column,
            )
        )

    def __getstate__(self) -> RewardSettings:
        return self._settings

    def __setstate__(self, settings: RewardSettings) -> None:
        self._settings = settings
        self._window = FailureWindow(settings.failures)
        # By event loop; the second of a loop asks the judge about UNCERTAIN samples.
        self._gatherers: dict[asyncio.AbstractEventLoop, list[Gatherer]] = {}
        self._notices = RewardNotices()
        self._background = BackgroundCalls(settings.make_calls)
        forget_in_children(self)

    @property
    def failures(self) -> FailureHandling:
        """The settings for samples without a score."""
        return self._settings.failures

    @property
    def deadline_s(self) -> float:
        """Default deadline of a call, in seconds."""
        return self._settings.deadline_s

    @property
    def needs_references(self) -> bool:
        """True: every metric of a reward compares with right answers."""
        return True

    @property
    def reference_column(self) -> str:
        """Column of the right answers; "" means the column with a usual name."""
        return self._settings.reference_column

    def score(self, samples: Sequence[RewardSample]) -> list[Reward]:
        """Return rewards like `ascore`, but block until they are ready. Several threads may call this concurrently."""
        return self._background.run(lambda calls: self._score(samples, calls, self.deadline_s))

    def score_one(self, sample: RewardSample) -> Reward:
        """Return the reward of one sample. Calls from several threads are gathered into batches."""
        return self.score([sample])[0]

    async def ascore(
        self,
        samples: Sequence[RewardSample],
        *,
        deadline_s: float | None = None,
        answers: Sequence[Answer] | None = None,
    ) -> list[Reward]:
        """Return the samples' rewards, in order. Pass all completions of a prompt in one call.

        Args:
            samples: The completions to reward.
            deadline_s: Deadline of this call, in seconds; None means the scorer's default.
            answers: The answer of each sample, if you have already extracted the answers yourself.

        Raises:
            RewardFailureRate: Too many of the last rewards failed.
            RewardFailed: The failure policy stops the call.
            GradewireError: The metric, token or address is wrong.
        """
        if answers is not None and len(answers) != len(samples):
            raise InvalidRequest(f"{len(answers)} answers for {len(samples)} samples: give one answer for each sample")
        given_s = self.deadline_s if deadline_s is None else check_deadline(deadline_s)
        return await self._score(samples, None, given_s, answers)

    async def ascore_one(self, sample: RewardSample, *, deadline_s: float | None = None) -> Reward:
        """Return the reward of one sample. Calls on the same event loop are gathered into batches."""
        return (await self.ascore([sample], deadline_s=deadline_s))[0]

    def close(self) -> None:
        """Close the connection that blocking calls use."""
        self._background.close()

    async def aclose(self) -> None:
        """Close the connections that the running event loop and blocking calls use."""
        for gatherer in self._gatherers.pop(asyncio.get_running_loop(), ()):
            await gatherer.close()
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def forget(self) -> None:
        """In a forked child, drop the parent's connections without destroying them."""
        keep_for_good(self._gatherers)
        self._gatherers = {}
        self._window = FailureWindow(self._settings.failures)
        self._notices = RewardNotices()

    async def _score(
        self,
        samples: Sequence[RewardSample],
        calls: ClientCalls | None,
        deadline_s: float,
        answers: Sequence[Answer] | None = None,
    ) -> list[Reward]:
        if answers is None:
            answers = await self._read(samples)
        settings = self._settings
        with call_trace(CLIENT_REWARDS, lambda: {ITEMS: len(samples)}) as trace:
            scores = [
                MetricScore(None, Status.INVALID_INPUT, problem)
                if (problem := completion_problem(sample.completion))
                else MetricScore(None, Status.EMPTY_PREDICTION, answer.reason)
                for sample, answer in zip(samples, answers, strict=True)
            ]
            long = {
                index
                for index, (sample, answer) in enumerate(zip(samples, answers, strict=True))
                if len(answer.text) > settings.max_characters(sample.references)
            }
            items = {
                index: _item(samples[index], answer)
                for index, answer in enumerate(answers)
                if answer.text and index not in long
            }
            gatherer, *judges = self._gatherers_here(calls)
            loop = asyncio.get_running_loop()
            until = loop.time() + deadline_s
            await self._score_items(items, scores, gatherer, deadline_s)
            for judge in judges:
                doubtful = {index: item for index, item in items.items() if _is_uncertain(scores[index])}
                await self._score_items(doubtful, scores, judge, max(0.0, until - loop.time()))
            if trace is not UNTRACED:
                results = [ItemScores(index, "", {gatherer.label: score}) for index, score in enumerate(scores)]
                trace.evaluated(samples, results)
        rewards = [
            self._too_long(samples[index], answer) if index in long else self._reward(answer, scores[index])
            for index, answer in enumerate(answers)
        ]
        self._notices.take(samples, rewards)
        self._window.check(rewards)
        return settings.failures.settle(rewards)

    async def _score_items(
        self, items: Mapping[int, Item], scores: list[MetricScore], gatherer: Gatherer, deadline_s: float
    ) -> None:
        unscored = list(items)
        loop = asyncio.get_running_loop()
        hold_until = loop.time() + self._settings.failures.hold_s
        failures = 0
        while unscored:
            results = await gatherer.score([items[index] for index in unscored], deadline_s)
            for index, score in zip(unscored, results, strict=True):
                scores[index] = score
            unscored = [index for index in unscored if scores[index].status.may_pass]
            if not unscored or self._settings.failures.policy != "hold":
                break
            failures += 1
            if loop.time() + (wait_s := _BACKOFF.wait_s(failures)) >= hold_until:
                break
            await asyncio.sleep(wait_s)

    async def _read(self, samples: Sequence[RewardSample]) -> list[Answer]:
        answers = []
        for position, sample in enumerate(samples, 1):
            completion = "" if completion_problem(sample.completion) else sample.completion
            answers.append(extract_answer(completion or "", self._settings.extraction))
            if position % _READ_PER_TURN == 0:
                await asyncio.sleep(0)
        return answers

    def _gatherers_here(self, calls: ClientCalls | None) -> list[Gatherer]:
        loop = asyncio.get_running_loop()
        if (gatherers := self._gatherers.get(loop)) is None:
            # Drop closed loops, which a program that calls asyncio.run() repeatedly leaves behind.
            for gone in [known for known in self._gatherers if known.is_closed()]:
                del self._gatherers[gone]
            settings = self._settings
            choices = [settings.options.choose()]
            if settings.failures.uncertain == "judge":
                choices.append(settings.choose_judge())
            calls = calls or settings.make_calls()
            gatherers = [Gatherer(calls, choice, settings.gathering) for choice in choices]
            self._gatherers[loop] = gatherers
        return gatherers

    def _too_long(self, sample: RewardSample, answer: Answer) -> Reward:
        most = self._settings.max_characters(sample.references)
        reason = f"the answer has {len(answer.text)} characters, more than {most} (see max_answer_characters)"
        return Reward(0.0, Status.OK, reason, answer.text)

    def _reward(self, answer: Answer, score: MetricScore) -> Reward:
        line = score.provenance.line if score.provenance else ""
        digest = score.provenance.model_digest if score.provenance else ""
        value: Any = score.score
        if self._settings.reads == "correct" and score.status is Status.OK:
            if score.correct is None:
                raise InvalidRequest("reads='correct': this metric gives no verdict, so use reads='score'")
            value = float(score.correct)
        return Reward(value, score.status, score.message, answer.text, line, digest, _is_uncertain(score))


def _is_uncertain(score: MetricScore) -> bool:
    return ScoreWarning.UNCERTAIN in score.warnings


def _item(sample: RewardSample, answer: Answer) -> Item:
    given: Sequence[Any] = sample.references  # a caller without types may pass anything, which `encode_item` reports
    references = [bare_reference(each) if isinstance(each, str) else each for each in given]
    return Item(references=references, prediction=answer.text, question=sample.question, id=sample.id)
