"""What judges behind servers tell whoever counts."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RemoteUsage:
    """What one answer took, as its server counts.

    Attributes:
        prompt_tokens: Read by the model, cached ones included; 0 where the server does not say.
        cached_tokens: Of `prompt_tokens`, those whose state the server had kept; 0 where it does not say.
        generated_tokens: Written by the model.
        cost: By the configured prices, in their currency.
        duration_s: Of the request that was answered.
    """

    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    cost: float
    duration_s: float


class RemoteObserver(Protocol):
    """Told on the event loop; must not raise."""

    def answered(self, usage: RemoteUsage) -> None:
        """A server has answered."""

    def retried(self, reason: str) -> None:
        """A request is sent again: "rate_limited", "unreachable", "server_error"."""

    def in_flight(self, change: int) -> None:
        """A request went out (1) or has ended (-1)."""
