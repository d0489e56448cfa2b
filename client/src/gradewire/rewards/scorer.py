"""The scorer that turns completions into rewards, with a metric on a server."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
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
from gradewire.metrics.choice import MetricDefaults, MetricsLike
from gradewire.options import CallOptions, check_deadline, check_names
from gradewire.results import ItemScores, MetricScore, Status
from gradewire.rewards.answer import Answer, Extraction, Extractor, check_extraction, extract_answer
from gradewire.rewards.failure_notices import RewardNotices
from gradewire.rewards.gathering import Gatherer, Gathering
from gradewire.rewards.reward import FailureHandling, FailureWindow, Reward, RewardSample
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

    def __post_init__(self) -> None:
        check_extraction(self.extraction)
        check_deadline(self.deadline_s)
        if self.reads not in {"score", "correct"}:
            raise InvalidRequest(f"reads={self.reads!r}: give 'score', or 'correct' for a verdict of 1 or 0")
        choice = self.options.choose()
        check_streamed(choice.specs)
        if len(choice.labels) != 1:
            raise InvalidRequest(f"metric is {', '.join(choice.labels)}: give one metric")

    def make_calls(self) -> ClientCalls:
        """Return new calls, for one event loop in one process."""
        return ClientCalls(connect(self.carrier), self.deadline_s)


DEADLINE_S = 60.0
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

    One scorer serves blocking and async callers, in any thread and on any event loop. A pickled scorer contains only
    the settings. The scorer works in a forked child unless the parent has loaded gRPC.

    Args:
        server: HOST:PORT of the server, an `Endpoint` (for a token or TLS), or a transport (such as
            `gradewire.testing.StubTransport`).
        metric: One metric: a name (`"correctness"`, `"value_match"`), an identifier or an object.
        reads: The value that becomes the reward: "score" for the metric's score, or "correct" for its verdict (1.0 or
            0.0).
        extraction: Where to find the final answer; see `extract_answer`.
        failures: What to do with samples without a score; None means `FailureHandling()`.
        deadline_s: Deadline of a call, in seconds. Use less than the framework's time limit for a reward function.
        gathering: Limits for gathering calls into batches; None means `Gathering()`.
        **options: See `RewardOptions`.

    Raises:
        InvalidRequest: An argument is wrong.
    """

    def __init__(  # noqa: PLR0913 - all optional and named
        self,
        server: str | Endpoint | Transport = "127.0.0.1:50051",
        metric: MetricsLike = "correctness",
        *,
        reads: Literal["score", "correct"] = "score",
        extraction: Extraction | Extractor = "auto",
        failures: FailureHandling | None = None,
        deadline_s: float = DEADLINE_S,
        gathering: Gathering | None = None,
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
            )
        )

    def __getstate__(self) -> RewardSettings:
        return self._settings

    def __setstate__(self, settings: RewardSettings) -> None:
        self._settings = settings
        self._window = FailureWindow(settings.failures)
        self._notices = RewardNotices()
        self._gatherers: dict[asyncio.AbstractEventLoop, Gatherer] = {}
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
        if (gatherer := self._gatherers.pop(asyncio.get_running_loop(), None)) is not None:
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
        gatherer = self._gatherer(calls)
        with call_trace(CLIENT_REWARDS, lambda: {ITEMS: len(samples)}) as trace:
            scores = await self._scores(samples, answers, gatherer, deadline_s)
            if trace is not UNTRACED:
                results = [ItemScores(index, "", {gatherer.label: score}) for index, score in enumerate(scores)]
                trace.evaluated(samples, results)
        rewards = [self._reward(answer, score) for answer, score in zip(answers, scores, strict=True)]
        self._notices.take(samples, rewards)
        self._window.check(rewards)
        return self._settings.failures.settle(rewards)

    async def _scores(
        self, samples: Sequence[RewardSample], answers: Sequence[Answer], gatherer: Gatherer, deadline_s: float
    ) -> list[MetricScore]:
        scores = [MetricScore(None, Status.EMPTY_PREDICTION, answer.reason) for answer in answers]
        unscored = [index for index, answer in enumerate(answers) if answer.text]
        loop = asyncio.get_running_loop()
        hold_until = loop.time() + self._settings.failures.hold_s
        failures = 0
        while unscored:
            items = [_item(samples[index], answers[index]) for index in unscored]
            for index, score in zip(unscored, await gatherer.score(items, deadline_s), strict=True):
                scores[index] = score
            unscored = [index for index in unscored if scores[index].status.may_pass]
            if not unscored or self._settings.failures.policy != "hold":
                break
            failures += 1
            if loop.time() + (wait_s := _BACKOFF.wait_s(failures)) >= hold_until:
                break
            await asyncio.sleep(wait_s)
        return scores

    async def _read(self, samples: Sequence[RewardSample]) -> list[Answer]:
        answers = []
        for position, sample in enumerate(samples, 1):
            answers.append(extract_answer(sample.completion, self._settings.extraction))
            if position % _READ_PER_TURN == 0:
                await asyncio.sleep(0)
        return answers

    def _gatherer(self, calls: ClientCalls | None) -> Gatherer:
        loop = asyncio.get_running_loop()
        if (gatherer := self._gatherers.get(loop)) is None:
            # Drop closed loops, which a program that calls asyncio.run() repeatedly leaves behind.
            for gone in [known for known in self._gatherers if known.is_closed()]:
                del self._gatherers[gone]
            settings = self._settings
            gatherer = Gatherer(calls or settings.make_calls(), settings.options.choose(), settings.gathering)
            self._gatherers[loop] = gatherer
        return gatherer

    def _reward(self, answer: Answer, score: MetricScore) -> Reward:
        line = score.provenance.line if score.provenance else ""
        digest = score.provenance.model_digest if score.provenance else ""
        value: Any = score.score
        if self._settings.reads == "correct" and score.status is Status.OK:
            if score.correct is None:
                raise InvalidRequest("reads='correct': this metric gives no verdict, so use reads='score'")
            value = float(score.correct)
        return Reward(value, score.status, score.message, answer.text, line, digest)


def _item(sample: RewardSample, answer: Answer) -> Item:
    return Item(references=sample.references, prediction=answer.text, question=sample.question, id=sample.id)
