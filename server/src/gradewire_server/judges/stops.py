"""Finds the end of a text that a judge writes."""

from collections.abc import Callable, Sequence


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the first of these texts begins, empty ones left out; None where none is in it."""
    return min((at for at in (text.find(stop) for stop in stops if stop) if at >= 0), default=None)


class TextEnd:
    """Finds the end of one answer.

    Args:
        text: Token ids to text.
        ends: Tokens that end the judge's turn.
        stop: Texts that end the answer.
    """

    def __init__(self, text: Callable[[Sequence[int]], str], ends: frozenset[int], stop: Sequence[str]) -> None:
        self._text = text
        self._ends = ends
        self._stop = [each for each in stop if each]
        # A character takes at most four tokens, one byte each: so many hold the longest stop and the token before it.
        self._tail = 4 * max(map(len, self._stop), default=0) + 4

    def reached(self, ids: Sequence[int]) -> bool:
        """Whether the last of these tokens ends the answer; asked after each one."""
        if not ids:
            return False
        if ids[-1] in self._ends:
            return True
        return bool(self._stop) and first_stop(self._text(ids[-self._tail :]), self._stop) is not None

    def read(self, ids: Sequence[int]) -> tuple[str, bool]:
        """The answer without what ended it, stripped; and whether anything ended it."""
        ended = bool(ids) and ids[-1] in self._ends
        text = self._text(ids[:-1] if ended else ids)
        at = first_stop(text, self._stop)
        if at is not None:
            return text[:at].strip(), True
        # A character whose last bytes were never written.
        return (text if ended else text.rstrip("\ufffd")).strip(), ended
