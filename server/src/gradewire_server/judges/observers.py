"""What judges tell about their work. Counters depend on it, and nothing else does."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ModelRun:
    """One run of a model of this machine.

    Attributes:
        sequences: How many prompts and texts were computed together.
        prefill_tokens: Tokens of prompts that were computed in this run.
        decode_tokens: Tokens that the judge wrote in this run.
        reused_tokens: Tokens of fixed turns whose state was kept, once for every item that began in this run.
        duration_s: Wall time.
    """

    sequences: int
    prefill_tokens: int
    decode_tokens: int
    reused_tokens: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """What one request to a judge's server took, as the server counts.

    Attributes:
        prompt_tokens: Read by the model, cached ones included; None where the server does not say.
        cached_tokens: Of `prompt_tokens`, those whose state the server had kept; None where it does not say.
        generated_tokens: Written by the model, thoughts included; None where the server does not say.
        cost: By the configured prices, in their currency; None where tokens or prices are not known.
        duration_s: Of the request that was answered.
    """

    prompt_tokens: int | None
    cached_tokens: int | None
    generated_tokens: int | None
    cost: float | None
    duration_s: float


class LocalJudgeObserver(Protocol):
    """Hears of what judges of this machine do. Called on the event loop; must not raise and not wait."""

    def ran(self, run: ModelRun) -> None:
        """A run is done."""

    def restarted(self) -> None:
        """A worker was lost and is started again."""


class RemoteJudgeObserver(Protocol):
    """Hears of the requests to judges' servers. Called on the event loop; must not raise and not wait."""

    def request_answered(self, usage: RequestUsage) -> None:
        """A server has answered."""

    def request_retried(self, reason: str) -> None:
        """A request is sent again: "rate_limited", "unreachable", "server_error"."""

    def requests_in_flight(self, change: int) -> None:
        """A request went out (1) or has ended (-1)."""
