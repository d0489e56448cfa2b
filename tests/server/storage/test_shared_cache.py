"""Memory that looks into the table of all processes before it says that it lacks a value."""

from prometheus_client import CollectorRegistry

from gradewire_server.storage.cache import StorageTelemetry
from gradewire_server.storage.shared_cache import SharedLru, expose_table
from gradewire_server.storage.shared_table import MIN_BYTES, SharedTable

KEY, OTHER = b"k" * 16, b"o" * 16


def caches(max_bytes: int = MIN_BYTES) -> tuple[SharedLru, SharedLru, SharedTable]:
    table = SharedTable.create(MIN_BYTES)
    return SharedLru(max_bytes, table), SharedLru(max_bytes, table), table


def test_what_one_process_keeps_another_finds_and_then_has_itself() -> None:
    one, two, table = caches()
    one.put(KEY, b"vector\1", pinned=False)
    assert KEY not in two
    assert two.get(KEY) == b"vector\1"
    assert KEY in two
    assert two.get(KEY) == b"vector\1"
    assert table.found == 1, "the second time, its own memory has it"
    assert two.get(OTHER) is None


def test_a_new_value_reaches_the_table_without_a_look_into_it() -> None:
    one, two, table = caches()
    assert one.put_new(KEY, b"vector\1", pinned=False) == b"vector\1"
    assert two.put_new(KEY, b"same vector, computed at the same time\1", pinned=True).startswith(b"same")
    assert table.found == 0
    assert one.get(KEY) == b"vector\1", "the first one's own memory keeps its vector"
    assert two.put_new(KEY, b"another\1", pinned=False).startswith(b"same")
    third = SharedLru(MIN_BYTES, table)
    found = third.get(KEY)
    assert found is not None
    assert found.startswith(b"same")


def test_what_is_not_to_be_shared_stays_in_its_process() -> None:
    one, two, _ = caches()
    one.put(KEY, b"depends on settings\1", pinned=True, shared=False)
    assert one.get(KEY) == b"depends on settings\1"
    assert two.get(KEY) is None


def test_what_one_process_wrote_to_the_second_level_another_does_not_write_again() -> None:
    one, two, _ = caches()
    one.put(KEY, b"vector\1", pinned=False)
    one.refresh(KEY, b"vector\2")
    assert two.get(KEY) == b"vector\2"


def test_a_pinned_value_is_protected_in_each_process_that_finds_it() -> None:
    value = bytes(700)
    one, two, _ = caches(5_000)
    one.put(KEY, value, pinned=True)
    assert two.get(KEY) == value
    for number in range(40):
        two.put(number.to_bytes(16, "little"), value, pinned=False)
    assert KEY in two, "values that are not pinned are evicted first"


def test_an_evicted_value_comes_from_the_table() -> None:
    one, _, table = caches(2_000)
    for number in range(20):
        one.put(number.to_bytes(16, "little") + b"", bytes(500) + bytes([number, 1]), pinned=False)
    assert len(one) < 5
    assert one.get((0).to_bytes(16, "little")) == bytes(500) + bytes([0, 1])
    assert table.found == 1


def test_the_use_of_the_table_is_exposed() -> None:
    one, two, table = caches()
    registry = CollectorRegistry()
    expose_table(table, StorageTelemetry(registry))
    one.put(KEY, b"vector\1", pinned=False)
    two.get(KEY)
    assert registry.get_sample_value("gradewire_engine_shared_found_values_total") == 1
    assert registry.get_sample_value("gradewire_engine_shared_rejected_values_total") == 0
    assert registry.get_sample_value("gradewire_engine_shared_joined_texts_total") == 0
    assert registry.get_sample_value("gradewire_engine_shared_bytes") == table.used_bytes > 0
