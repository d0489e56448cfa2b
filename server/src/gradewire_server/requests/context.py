"""The context that all request handlers share, and the operator's prompt files."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from gradewire_proto.tracing.spans import record_result
from gradewire_proto.v1 import judging_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import MAX_PROMPT_BYTES, split_pin
from gradewire_server.domain.items import Failure, MetricResult, Status, quoted
from gradewire_server.domain.metric import Metric, ParameterError
from gradewire_server.domain.ports import ModelStatus, Ports
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS, PromptLibrary
from gradewire_server.metrics.prompts.parsing import read_prompt
from gradewire_server.metrics.prompts.template import PromptError
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.convert import read_reference_set
from gradewire_server.requests.errors import InvalidRequestError, NothingLoadedError, SetUnavailableError
from gradewire_server.requests.plan import MetricPlan, Planner, find_model
from gradewire_server.scoring import Scorer
from gradewire_server.settings.limits import Capacity, Deadlines, Limits

_log = logging.getLogger(__name__)

CountResult: TypeAlias = Callable[[str, Status], None]
CountSynthetic: TypeAlias = Callable[[int, int], None]
"""A function that receives the numbers of references with and without a generated synthetic answer."""

_THREAD_LENGTHS: Final = range(1025, MAX_PROMPT_BYTES + 1)
"""Prompts with these numbers of characters are parsed on a thread. Longer prompts are refused."""
_FINAL_ANSWERS: Final = "gradewire_proto.final_answer.find"
"""The module that finds final answers. Its import takes a second or two."""

_READ_CLAIMS: Final = frozenset({"correctness", "auto"})
"""Metrics that search every answer for its claim."""


async def read_ahead(prompts: PromptLibrary, specs: Iterable[types_pb2.MetricSpec]) -> None:
    """Parse and cache all long prompts on a thread. Ignore errors: planning will raise them.

    If a metric grades final answers, also import what finds them on a thread.
    """
    for spec in specs:
        metric = spec.WhichOneof("metric")
        if metric:
            parameters = getattr(spec, metric)
            await read_prompt_ahead(prompts, metric, getattr(parameters, "prompt", ""))
            graded = getattr(parameters, "answer", types_pb2.GRADED_ANSWER_UNSPECIFIED)
            finds = graded == types_pb2.GRADED_ANSWER_FINAL or metric in _READ_CLAIMS
            if finds and _FINAL_ANSWERS not in sys.modules:
                await asyncio.to_thread(import_module, _FINAL_ANSWERS)


async def read_prompt_ahead(prompts: PromptLibrary, metric: str, prompt: str) -> None:
    """Parse and cache a long prompt on a thread. Ignore errors: planning will raise them."""
    if len(prompt) in _THREAD_LENGTHS:
        with contextlib.suppress(PromptError):
            await asyncio.to_thread(prompts.find, metric, prompt)


class PromptDirectoryError(OSError):
    """An unreadable prompt directory or an invalid prompt file."""


def open_prompts(directory: Path | None) -> PromptLibrary:
    """Return the package's prompts and the prompts in `directory` (`*.toml`), or raise PromptDirectoryError."""
    prompts = PACKAGE_PROMPTS
    if directory is None:
        return prompts
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".toml")
        for path in paths:
            prompt = read_prompt(path.read_bytes())
            prompts = prompts.with_file(prompt)
            _log.info("added prompt %s for %s (%s)", prompt.title, prompt.metric, prompt.digest[:12])
    except PromptError as error:
        raise PromptDirectoryError(f"judge_prompt_directory: {path.name}: {error}") from error
    except OSError as error:
        raise PromptDirectoryError(f"judge_prompt_directory: cannot read {directory}: {error.strerror}") from error
    return prompts


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A call's reference set.

    Attributes:
        name: The set's name, or "" without a set.
        corpus_digest: The corpus's digest at the start of the call, 32 hex digits, or "" if no metric uses the corpus.
    """

    name: str
    corpus_digest: str = ""


_NO_SET: Final = NamedSet("")


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The objects and settings that all request handlers share."""

    scorer: Scorer
    ports: Ports
    prompts: PromptLibrary = PACKAGE_PROMPTS
    metrics: Mapping[str, Metric[Any]] = field(default_factory=lambda: REGISTRY)
    limits: Limits = field(default_factory=Limits)
    deadlines: Deadlines = field(default_factory=Deadlines)
    admission: Admission = field(default_factory=lambda: Admission(Capacity()))
    count_result: CountResult = lambda _metric, _status: None
    count_synthetic: CountSynthetic = lambda _generated, _fallback: None
    planner: Planner = field(init=False)

    def __post_init__(self) -> None:
        planner = Planner(self.ports, self.metrics, self.prompts)
        object.__setattr__(self, "planner", planner)

    def within(self, namespace: str) -> Self:
        """Return a context for a tenant's namespace, with its own reference sets, verdicts and cache entries."""
        ports = self.ports.within(namespace)
        view = replace(self, ports=ports, scorer=self.scorer.within(ports, namespace))
        # Tenants share the planner, because plans depend only on specs and models.
        object.__setattr__(view, "planner", self.planner)
        return view

    def check_count(self, count: int, path: str) -> None:
        """Raise InvalidRequestError if a message has too many items or entries."""
        if count > self.limits.max_items_per_request:
            raise InvalidRequestError(
                path, f"has {count} elements, but at most {self.limits.max_items_per_request} are allowed"
            )

    def total_s(self, deadline_s: float | None) -> float:
        """Return how many seconds a call may take. If `deadline_s` is None, return the default."""
        wanted_s = self.deadlines.default_s if deadline_s is None else max(0.0, deadline_s)
        return min(wanted_s, self.deadlines.max_s)

    def report_result(self, metric: str, item_index: int, result: MetricResult) -> None:
        """Count and trace a result. If its status is INTERNAL, also log the result."""
        if result.status is Status.INTERNAL:
            _log.error("a result of metric %s is INTERNAL: %s", metric, result.message)
        self.count_result(metric, result.status)
        record_result(metric, item_index, result)

    def judge(self, written: str, path: str) -> ModelStatus:
        """Return a judge's status. `written` is NAME, NAME@DIGEST, or "" for the default judge.

        Raises:
            InvalidRequestError: `written` is invalid.
            NothingLoadedError: The judge is not available.
        """
        try:
            judge = find_model(written, path, self.ports.judge_models)
        except ParameterError as error:
            raise InvalidRequestError(path, error.message) from None
        if isinstance(judge, Failure):
            raise NothingLoadedError(judge.message)
        return judge

    async def plan_call(self, asked: Any, path: str = "") -> list[MetricPlan]:
        """Return plans for the metrics or the comparison in a request or stream config. For errors, see `plan`."""
        if isinstance(asked, judging_pb2.CompareRequest | judging_pb2.CompareStreamConfig):
            spec = types_pb2.MetricSpec(compare=asked.parameters)
            await read_ahead(self.prompts, (spec,))
            return [self.planner.plan_comparison(spec, f"{path}parameters")]
        nothing = isinstance(asked, scoring_pb2.ScoreRequest) and not (asked.metrics or asked.items)
        return [] if nothing else await self.plan(asked.metrics, f"{path}metrics")

    async def plan(self, metrics: Sequence[types_pb2.MetricSpec], path: str = "metrics") -> list[MetricPlan]:
        """Return plans for a request's metrics.

        Raises:
            InvalidRequestError: The request has no metrics, too many metrics or an invalid metric.
            NothingLoadedError: This server can compute none of the metrics.
        """
        if not metrics:
            raise InvalidRequestError(path, "must name at least one metric")
        if len(metrics) > self.limits.max_metrics_per_request:
            raise InvalidRequestError(
                path,
                f"has {len(metrics)} metrics, but at most {self.limits.max_metrics_per_request} are allowed",
            )
        await read_ahead(self.prompts, metrics)
        return self.planner.plan(metrics, path)

    async def find_set(self, written: str, plans: Iterable[MetricPlan], path: str = "reference_set") -> NamedSet:
        """Return the reference set for NAME or NAME@DIGEST, with the corpus digest if a metric needs the corpus.

        Raises:
            InvalidRequestError: The name is invalid, or the digest does not match the set's corpus.
            SetUnavailableError: The digest cannot be checked because the store does not answer.
        """
        if not written:
            return _NO_SET
        name, digest = split_pin(written)
        name = read_reference_set(name, path)
        if not (digest or any(plan.counts_prepared for plan in plans)):
            return NamedSet(name)
        found = await self.scorer.corpus_digest(name)
        if not isinstance(found, Failure):
            if not found.startswith(digest):
                raise InvalidRequestError(path, f"the corpus of {quoted(name)} has the digest {found}, not {digest}")
            return NamedSet(name, found)
        if not digest:
            return NamedSet(name)  # each result will report the failure
        if found.status is Status.NOT_PREPARED:
            raise InvalidRequestError(
                path, f"digest {digest} cannot match, because {quoted(name)} has no complete corpus: {found.message}"
            )
        raise SetUnavailableError(f"{path}: {found.message}")
