"""When calls arrive: at random, evenly, or as they did before."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradewire.errors import InvalidRequest

Offsets = NDArray[np.float64]
"""float64[calls]: when each is due, ascending, seconds after the start."""


def poisson(rate_per_s: float, duration_s: float, seed: int) -> Offsets:
    """A Poisson process: gaps are independent and exponential, as of callers who know nothing of each other.

    The number of calls varies by its square root; the same seed gives the same calls.
    """
    source = np.random.default_rng(seed)
    most = int(rate_per_s * duration_s + 10 * (rate_per_s * duration_s) ** 0.5 + 20)
    offsets: Offsets = np.cumsum(source.exponential(1 / rate_per_s, most))
    return offsets[offsets < duration_s]


def constant(rate_per_s: float, duration_s: float) -> Offsets:
    """Calls at equal intervals, the first at once."""
    return np.arange(max(1, round(rate_per_s * duration_s)), dtype=np.float64) / rate_per_s


def replayed(path: Path, speed: float = 1.0) -> Offsets:
    """Calls as a file says that they arrived, from the first one on.

    Args:
        path: A number a line (seconds, of any beginning), or a request log of the server (JSON lines): there a call
            arrived `duration_s` before its `time`, and other lines than those of Score or ScoreStream are left out.
        speed: 2 replays in half the time.

    Raises:
        InvalidRequest: A line is neither, or there are no arrivals.
        OSError: The file cannot be read.
    """
    with path.open(encoding="utf-8") as lines:
        found = np.sort(np.fromiter(_times(path, lines), np.float64))
    if not len(found):
        raise InvalidRequest(f"{path}: it holds no arrivals: write a number (seconds) a line, or give a request log")
    offsets: Offsets = (found - found[0]) / speed
    return offsets


def _times(path: Path, lines: Iterator[str]) -> Iterator[float]:
    is_log = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        is_log = is_log or text.startswith("{")
        # What a server prints beside its log is often kept in the same file.
        if not text or (is_log and not text.startswith("{")):
            continue
        try:
            if not text.startswith("{"):
                time_s = float(text)
            elif (found := _logged(json.loads(text))) is None:
                continue
            else:
                time_s = found
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidRequest(f"{path}, line {number}: neither a number of seconds nor a request log's") from error
        if not np.isfinite(time_s):
            raise InvalidRequest(f"{path}, line {number}: {text} is no time")
        yield time_s


def _logged(record: dict[str, object]) -> float | None:
    """When the call of a request log's record arrived, Unix seconds; None where it is no call that scores."""
    if record.get("event") != "call" or not str(record["method"]).endswith(("Scoring/Score", "Scoring/ScoreStream")):
        return None
    return datetime.fromisoformat(str(record["time"])).timestamp() - float(str(record["duration_s"]))
