"""How many rows go into a request, where nobody knows beforehand how fast they are scored."""

from __future__ import annotations

# One request of the client each; the encoder's batches are filled from all that is in flight.
BATCH_ROWS = 64
BATCHES_IN_FLIGHT = 4
# A judge on a CPU takes a second or more for a row, one on a GPU a hundredth: the first requests find out.
FIRST_JUDGED_ROWS = 4
# Requests of a judge's rows are made larger below, and smaller above: results show as progress, and what is in flight
# is done long before a deadline.
_QUICK_S = 10.0
_SLOW_S = 60.0


class AdaptiveBatchSize:
    """Number of rows in the next request: small for a judge of unknown speed, then by the time that answers take.

    Where no judge is asked, requests are as large as they get. `deadline_s` is that of one request, seconds.
    """

    def __init__(self, *, judged: bool, deadline_s: float) -> None:
        self.rows = FIRST_JUDGED_ROWS if judged else BATCH_ROWS
        self._judged = judged
        self._slow_s = min(_SLOW_S, deadline_s / BATCHES_IN_FLIGHT)
        self._quick_s = min(_QUICK_S, self._slow_s / 2)

    def took(self, seconds: float, *, rows: int, computed: int) -> None:
        """Learns how long a request took, unless fewer than half of its rows had to be computed.

        The others were answered from a cache alone, which says nothing of how long a judge takes.
        """
        if not self._judged or 2 * computed < rows:
            return
        if seconds > self._slow_s:
            self.rows = max(1, self.rows // 2)
        elif seconds < self._quick_s and rows >= self.rows:
            self.rows = min(BATCH_ROWS, 2 * self.rows)
