"""What an answer costs the server's processors: points that were measured, and a model fitted to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from gradewire.errors import InvalidRequest
from gradewire_proto.conventions.metric_lines import current

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_SHIPPED: Final = "measured.json"
_LEAST_POINTS: Final = 4
_LEAST_SPREAD: Final = 0.2
"""Between the least and the greatest share of repeated answers; the few that one file has twice tell no costs apart."""
_ONE_LENGTH: Final = 1.5
"""Steps whose mean words differ by less than this factor have answers of one length: by chance the means of some
hundred rows of one file differ by a tenth, which does not tell what a word costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPoint:
    """What was measured in one step.

    Attributes:
        words: Mean words of an answer.
        hit_rate: Share of answers that had been scored before.
        batch: Answers of a call.
        cpu_s: CPU seconds of the server for an answer.
        source: Where it comes from, for people.
    """

    words: float
    hit_rate: float
    batch: int
    cpu_s: float
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU seconds of the server, by what causes them; each is 0 or more.

    Attributes:
        call_s: Of a call, whatever it holds.
        answer_s: Of an answer whose vectors are all in the cache.
        word_s: Of each of its words, the same.
        new_answer_s: What an answer that was never scored costs more.
        new_word_s: What each of its words costs more.
    """

    call_s: float
    answer_s: float
    word_s: float
    new_answer_s: float
    new_word_s: float

    @classmethod
    def fitted(cls, points: Sequence[CostPoint]) -> Self:
        """The costs whose squared relative errors at the points have the least sum.

        Where all answers are of one length, as of one file's rows, no word costs anything, and the costs are those of
        an answer of that length.

        Raises:
            InvalidRequest: The points do not tell the costs apart: too few, or without hits and misses.
        """
        if len(points) < _LEAST_POINTS or np.ptp([each.hit_rate for each in points]) < _LEAST_SPREAD:
            raise InvalidRequest(
                f"{len(points)} measured steps do not tell the costs apart: measure {_LEAST_POINTS} at least, of "
                "repeated and of new answers (--mix short and --mix verbose, or your own FILE, each also with "
                "--repeat-share 1, each --json)"
            )
        from scipy.optimize import nnls  # noqa: PLC0415 - takes a second to load

        if one_length(points) is not None:
            points = [replace(each, words=0.0) for each in points]
        measured = np.array([each.cpu_s for each in points])
        causes = np.array([_causes(each) for each in points])
        found: NDArray[np.float64] = nnls(causes / measured[:, None], np.ones(len(points)))[0]
        return cls(**dict(zip(cls.__slots__, found.tolist(), strict=True)))

    def cpu_s(self, *, words: float, hit_rate: float, batch: int) -> float:
        """CPU seconds of an answer, in the mean."""
        return self.warm_cpu_s(words=words, batch=batch) + self.new_cpu_s(words=words) * (1 - hit_rate)

    def warm_cpu_s(self, *, words: float, batch: int) -> float:
        """Of an answer whose vectors are all in the cache: nearly all of it is Python, in one thread of a process."""
        return self.call_s / batch + self.answer_s + self.word_s * words

    def new_cpu_s(self, *, words: float) -> float:
        """What an answer that was never scored costs more: nearly all of it is the encoder."""
        return self.new_answer_s + self.new_word_s * words

    def errors(self, points: Sequence[CostPoint]) -> list[float]:
        """Predicted over measured, less 1, of each point."""
        return [
            self.cpu_s(words=each.words, hit_rate=each.hit_rate, batch=each.batch) / each.cpu_s - 1 for each in points
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Points of one server.

    Attributes:
        points: Those.
        told: Where and when they were measured, for people.
        metrics: What was computed, in lines.
        load: Runnable processes of the machine in the last minute, at the end; None where it is not known.
        cores: Of that machine; None where it is not known.
    """

    points: Sequence[CostPoint]
    told: str
    metrics: Sequence[str]
    load: float | None = None
    cores: int | None = None

    @property
    def was_busy(self) -> bool:
        """Whether more ran on the machine than it has cores, so that CPU seconds are more than on a quiet one."""
        return self.load is not None and self.cores is not None and self.load > self.cores


def shipped_measurements() -> Measured:
    """Those that come with gradewire."""
    text = (resources.files("gradewire.load_testing.capacity") / _SHIPPED).read_text(encoding="utf-8")
    document = json.loads(text)
    return Measured(
        points=[CostPoint(**point) for point in document["points"]],
        told=document["told"],
        metrics=document["metrics"],
        load=document["load"],
        cores=document["cores"],
    )


def read_measurements(paths: Sequence[Path]) -> Measured:
    """Reads files of ``gradewire bench load --json`` that were made with --metrics-url, of one server and metric.

    Steps in which the server did not keep up, or the client was late, are left out: what is refused costs as well.

    Raises:
        InvalidRequest: A file is none, has no step with the server's CPU time, or is of other metrics than the first.
        OSError: A file cannot be read.
    """
    points: list[CostPoint] = []
    lines: list[str] = []
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            found = [_point(path, step) for step in document["steps"] if step["outcome"] == "holds"]
            metrics = [current(line) for line in document["metrics"].values()]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidRequest(f"{path} is no file of gradewire bench load --json") from error
        costed = [point for point in found if point is not None]
        if not costed:
            raise InvalidRequest(f"{path}: no step that kept up has the server's CPU time: measure with --metrics-url")
        if lines and metrics != lines:
            raise InvalidRequest(f"{path} is of {metrics}, and {paths[0]} of {lines}: give files of the same metrics")
        lines = metrics
        points += costed
    return Measured(points=points, told=f"measured in {', '.join(map(str, paths))}", metrics=lines)


def _point(path: Path, step: Mapping[str, Any]) -> CostPoint | None:
    if step["server_cpu_s_per_item"] is None or not step["server_cpu_s_per_item"] > 0:
        return None
    return CostPoint(
        words=step["words_mean"],
        hit_rate=step["answers_repeated_share"],
        batch=step["batch"],
        cpu_s=step["server_cpu_s_per_item"],
        source=f"{path.stem}, {step['rate_per_s']:.4g} calls/s",
    )


def one_length(points: Sequence[CostPoint]) -> float | None:
    """The words of an answer where all points are of one length; None where they are not."""
    words = [each.words for each in points]
    return sum(words) / len(words) if max(words) < _ONE_LENGTH * min(words) else None


def _causes(point: CostPoint) -> list[float]:
    """How often each cost is paid for an answer, in the order of the fields of `Costs`."""
    new = 1 - point.hit_rate
    return [1 / point.batch, 1.0, point.words, new, new * point.words]
