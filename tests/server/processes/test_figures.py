"""Figures of several processes are added up, and counters never go back."""

import json

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector

from gradewire_server.processes.figures import Families, Totals, to_json


def _process(calls: int, waiting: float, overload_s: float) -> Families:
    registry = CollectorRegistry()
    counter = Counter("gradewire_calls", "Calls.", ("code",), registry=registry)
    counter.labels("OK").inc(calls)
    Gauge("gradewire_calls_in_flight", "Calls.", registry=registry).set(waiting)
    Gauge("gradewire_overload_seconds", "Overload.", registry=registry).set(overload_s)
    histogram = Histogram("gradewire_call_duration_seconds", "Time.", registry=registry, buckets=(1, 2))
    for _ in range(calls):
        histogram.observe(1.5)
    families: Families = json.loads(json.dumps(to_json(registry.collect())))
    return families


def _values(totals: Totals, *processes: Families) -> dict[str, float]:
    found = {}
    for metric in totals.of(processes):
        for sample in metric.samples:
            if not sample.name.endswith("_created"):
                found[sample.name + "".join(sorted(sample.labels.values()))] = sample.value
    return found


def test_counts_are_added_and_states_are_not() -> None:
    values = _values(Totals(), _process(3, 1, 7), _process(4, 2, 5))
    assert values["gradewire_calls_totalOK"] == 7
    assert values["gradewire_calls_in_flight"] == 3
    assert values["gradewire_overload_seconds"] == 7
    assert values["gradewire_call_duration_seconds_bucket1.0"] == 0
    assert values["gradewire_call_duration_seconds_bucket2.0"] == 7
    assert values["gradewire_call_duration_seconds_count"] == 7


def test_what_an_ended_process_has_counted_stays() -> None:
    totals = Totals()
    totals.ended(_process(3, 9, 9))
    assert _values(totals)["gradewire_calls_totalOK"] == 3
    values = _values(totals, _process(1, 2, 0), _process(4, 0, 0))
    assert values["gradewire_calls_totalOK"] == 8
    assert values["gradewire_call_duration_seconds_sum"] == 12
    assert values["gradewire_calls_in_flight"] == 2
    assert values["gradewire_overload_seconds"] == 0


def test_what_one_ended_process_has_counted_stays_where_another_one_ended_without_it() -> None:
    registry = CollectorRegistry()
    Counter("gradewire_calls", "Calls.", ("code",), registry=registry)
    totals = Totals()
    totals.ended(to_json(registry.collect()))
    totals.ended(_process(3, 0, 0))
    assert _values(totals)["gradewire_calls_totalOK"] == 3
    assert _values(totals, to_json(registry.collect()))["gradewire_calls_totalOK"] == 3


def test_what_describes_the_program_is_not_added_up() -> None:
    registry = CollectorRegistry()
    PlatformCollector(registry=registry)
    families = to_json(registry.collect())
    assert [sample.value for metric in Totals().of([families, families]) for sample in metric.samples] == [1]
