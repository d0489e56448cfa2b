"""CPU time and memory of the server, from its page of metrics."""

from __future__ import annotations

import http.client
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from gradewire.errors import InvalidRequest

_TIMEOUT_S: Final = 10.0
# The parser is lax: a page that lacks something, or has it in excess, raises any of these.
_UNREADABLE: Final = (OSError, http.client.HTTPException, ValueError, LookupError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """The resources that the server uses, all its processes together; 0 if its page does not have them.

    Attributes:
        cpu_s: CPU seconds since it started.
        resident_bytes: Its memory.
    """

    cpu_s: float
    resident_bytes: float


def read_usage(url: str) -> ServerUsage:
    """Read the page of metrics at `url`, an address with http:// or https://.

    Raises:
        InvalidRequest: It cannot be read, or is not a page of gradewire.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:  # noqa: S310 - the user's own address, checked there
            page = reply.read().decode()
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                sums[sample.name] += sample.value
        if "gradewire_serving" not in sums:
            raise ValueError("it has no gradewire_serving, which every gradewire server has")
    except _UNREADABLE as error:
        # The parser's error has no text for a page that ends in the middle of a line.
        reason = str(error) or "the page of metrics is cut off"
        raise InvalidRequest(f"--metrics-url {url}: {reason}: give http://HOST:PORT/metrics of the server") from error
    return ServerUsage(sums["process_cpu_seconds_total"], sums["process_resident_memory_bytes"])
