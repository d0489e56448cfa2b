"""How long to wait before something that failed is tried again."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential, with full jitter: many callers that failed together do not come back together.

    Attributes:
        base_s: Upper bound of the first wait; each further one's is twice as high.
        cap_s: Upper bound of all of them.
        uniform: Source of randomness, as `random.uniform`.
    """

    base_s: float = 0.5
    cap_s: float = 8.0
    uniform: Callable[[float, float], float] = field(default=random.uniform)

    def wait_s(self, attempt: int, asked_s: float | None = None) -> float:
        """Seconds to wait.

        Args:
            attempt: How many have failed, 1 or more.
            asked_s: What the server asks for: never less than that is waited.
        """
        jitter_s = self.uniform(0, min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 30)))
        return jitter_s if asked_s is None else asked_s + min(jitter_s, self.base_s)
