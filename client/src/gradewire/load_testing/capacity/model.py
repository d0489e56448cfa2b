"""From a rate of answers to processes, memory and money."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gradewire.load_testing.capacity.costs import Costs

_MIB: Final = 2**20
PROCESS_BYTES: Final = 384 * _MIB
"""A process with the default encoder, without its cache (docs/operate/memory.md)."""
ENTRY_BYTES: Final = 1000
"""An answer's vector of 384 dimensions in Redis, with its key and what Redis adds."""
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked of the servers.

    Attributes:
        rate_per_s: Answers per second, at the busiest time.
        words: Mean words of an answer.
        hit_rate: Share of answers that were scored before.
        batch: Answers of a call.
        utilisation: Most that processors should be busy in the mean; beyond it waiting grows fast.
        cache_bytes: Memory cache of a process (`memory_max_bytes`).
        kept_days: How long Redis keeps an answer (`prediction_ttl_s`).
        entry_bytes: Of an answer in Redis.
        gpu_answers_per_s: New answers per second that one GPU encodes; None: the processors encode them.
    """

    rate_per_s: float
    words: float
    hit_rate: float
    batch: int = 1
    utilisation: float = 0.6
    cache_bytes: int = 256 * _MIB
    kept_days: float = 7.0
    entry_bytes: int = ENTRY_BYTES
    gpu_answers_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """In the user's currency.

    Attributes:
        core_hour: Of a core for an hour.
        gpu_hour: Of a GPU for an hour.
    """

    core_hour: float
    gpu_hour: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a workload needs.

    Attributes:
        cpu_s: CPU seconds of an answer.
        busy_cores: Cores that are busy in the mean.
        cores: Cores to have, so that they are busy to the wanted share only.
        processes: Of `gradewire serve`: no more work for the one thread of each than the wanted share.
        memory_bytes: Of all processes.
        redis_bytes: Of the answers that are kept.
        gpus: To have; None where processors encode.
    """

    cpu_s: float
    busy_cores: float
    cores: int
    processes: int
    memory_bytes: int
    redis_bytes: int
    gpus: int | None

    def cost_of_a_million(self, workload: Workload, prices: Prices) -> float:
        """What a million answers cost while the rate is that of the workload."""
        per_hour = self.cores * prices.core_hour + (self.gpus or 0) * prices.gpu_hour
        return per_hour / (workload.rate_per_s * 3600) * 1e6


def needs_of(workload: Workload, costs: Costs) -> Needs:
    """What a workload needs, where an answer costs this."""
    warm_s = costs.warm_cpu_s(words=workload.words, batch=workload.batch)
    new_per_s = workload.rate_per_s * (1 - workload.hit_rate)
    gpus = None
    new_s = costs.new_cpu_s(words=workload.words) * (1 - workload.hit_rate)
    if workload.gpu_answers_per_s is not None:
        gpus, new_s = _at_least_one(new_per_s / workload.gpu_answers_per_s / workload.utilisation), 0.0
    busy = workload.rate_per_s * (warm_s + new_s)
    processes = _at_least_one(workload.rate_per_s * warm_s / workload.utilisation)
    return Needs(
        cpu_s=warm_s + new_s,
        busy_cores=busy,
        cores=max(processes, _at_least_one(busy / workload.utilisation)),
        processes=processes,
        memory_bytes=processes * (PROCESS_BYTES + workload.cache_bytes),
        redis_bytes=round(new_per_s * workload.kept_days * _DAY_S * workload.entry_bytes),
        gpus=gpus,
    )


def _at_least_one(value: float) -> int:
    # What is above a whole number by rounding alone asks for no further one.
    return max(1, math.ceil(value - 1e-9))
