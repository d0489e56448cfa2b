"""What the server says of itself on its page of metrics, before and after a step."""

from __future__ import annotations

import http.client
import urllib.request
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from gradewire.errors import InvalidRequest

_TIMEOUT_S: Final = 10.0
_COMPUTED: Final = "computed"
# The parser is lax: what a page lacks, or has in excess, shows where its figures are taken.
_UNREADABLE: Final = (OSError, http.client.HTTPException, ValueError, LookupError, ArithmeticError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFigures:
    """Of one moment; of a part that is not there 0.

    Attributes:
        cpu_s: CPU seconds since it started.
        resident_bytes: Its memory.
        items_in_flight: Items that hold a permit.
        admission_wait_s: What a small request would wait for.
        judge_queue_items: Items that wait for a judge.
        cached_texts: Texts that were answered without being computed, those of remembered results among them.
        computed_texts: Texts that were computed.
    """

    cpu_s: float
    resident_bytes: float
    items_in_flight: float
    admission_wait_s: float
    judge_queue_items: float
    cached_texts: float
    computed_texts: float

    def hit_rate_since(self, before: ServerFigures) -> float:
        """Share of texts since then that were not computed; NaN without any."""
        cached, computed = self.cached_texts - before.cached_texts, self.computed_texts - before.computed_texts
        return cached / (cached + computed) if cached + computed else float("nan")


def read_server_figures(url: str) -> ServerFigures:
    """Reads the page of metrics at `url`, an address with http:// or https://.

    Raises:
        InvalidRequest: It cannot be read, or is no page of gradewire's.
    """
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:  # noqa: S310 - the user's own address, checked there
            return parse_server_figures(reply.read().decode())
    except _UNREADABLE as error:
        # The parser says nothing of a page that ends in the middle of a line.
        told = str(error) or "what came is no whole page of metrics"
        raise InvalidRequest(f"--metrics-url {url}: {told}: give http://HOST:PORT/metrics of the server") from error


def parse_server_figures(text: str) -> ServerFigures:
    """Reads Prometheus' text format; several processes' samples of a name are added up.

    Raises:
        ValueError: It is not that format, or lacks what every gradewire server has.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    texts: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] += sample.value
            if sample.name == "gradewire_engine_texts_total":
                texts[sample.labels["source"]] += int(sample.value)
    if "gradewire_serving" not in sums:
        raise ValueError("it has no gradewire_serving, which every gradewire server has")
    return ServerFigures(
        cpu_s=sums["process_cpu_seconds_total"],
        resident_bytes=sums["process_resident_memory_bytes"],
        items_in_flight=sums["gradewire_items_in_flight"],
        admission_wait_s=sums["gradewire_admission_wait_seconds"],
        judge_queue_items=sums["gradewire_judge_queue_items"],
        cached_texts=texts.total() - texts[_COMPUTED] + sums["gradewire_remembered_results_texts_total"],
        computed_texts=texts[_COMPUTED],
    )
