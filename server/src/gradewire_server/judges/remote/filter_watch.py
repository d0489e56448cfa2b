"""The watch for a content filter that refuses everything: the server answers, but no item gets a verdict."""

import logging
from typing import Final

from gradewire_server.judges.remote.dialect_learner import CONFIRMED_FOR_S, DialectLearner
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault

_log = logging.getLogger(__name__)

_SUSPICIOUS: Final = 5
"""Items in a row that a filter refused, before a test question costs a request."""
_TROUBLE: Final = (
    "the judge's server refuses every question, also a harmless test question: its content filter intervenes, or the "
    "model refuses to answer. Check the filter's settings there, or use another judge"
)


class FilterWatch:
    """The watch over the server of one learner. For one event loop only."""

    def __init__(self, name: str, learner: DialectLearner) -> None:
        self._name = name
        self._learner = learner
        self._in_a_row = 0
        self._noted = False
        self._until_s = float("-inf")

    @property
    def trouble(self) -> str:
        """The trouble while the filter refuses everything, otherwise "".

        The state lapses, because only further items can tell, and callers may send none while the judge has trouble.
        """
        return _TROUBLE if self._learner.now_s() < self._until_s else ""

    def answered(self) -> None:
        """Record an item that passed the filter."""
        self._in_a_row = 0
        if self._noted:
            _log.info("judge %s: its content filter lets questions pass again", self._name)
            self._noted, self._until_s = False, float("-inf")

    async def refused(self) -> None:
        """Record an item that a filter refused, and ask the test question if all recent items were refused."""
        self._in_a_row += 1
        if self.trouble or self._in_a_row % _SUSPICIOUS:
            return
        try:
            await self._learner.refusal(self._learner.dialect, self._learner.now_s() - CONFIRMED_FOR_S)
        except RemoteError as error:
            # Another item may have passed meanwhile.
            if error.kind is not RemoteFault.FILTERED or not self._in_a_row:
                return
            self._until_s = self._learner.now_s() + CONFIRMED_FOR_S
            if not self._noted:
                self._noted = True
                _log.warning("judge %s: %s", self._name, _TROUBLE)
