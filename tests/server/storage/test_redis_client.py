"""What the store holds is used only if a holder of the key wrote it under that very name."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from gradewire_server.storage.cache import StorageTelemetry
from gradewire_server.storage.redis_client import ValueMac

_KEY = b"a key of 16 bytes or more"


def mac(key: bytes = _KEY, *, clock_s: list[float] | None = None) -> tuple[ValueMac, CollectorRegistry]:
    registry = CollectorRegistry()
    counter = StorageTelemetry(registry).refused_macs
    times = clock_s or [0.0]
    return ValueMac(key, counter, clock=lambda: times[0]), registry


def refused(registry: CollectorRegistry, reason: str) -> float | None:
    return registry.get_sample_value("gradewire_engine_store_refused_macs_total", {"reason": reason})


@given(st.binary(max_size=80), st.binary(max_size=2000))
def test_a_value_comes_back_under_its_name(name: bytes, value: bytes) -> None:
    signed, _ = mac()
    assert signed.take(name, signed.put(name, value)) == value


@given(name=st.binary(max_size=40), value=st.binary(max_size=200), data=st.data())
def test_no_changed_bit_and_no_cut_passes(name: bytes, value: bytes, data: st.DataObject) -> None:
    signed, _ = mac()
    stored = bytearray(signed.put(name, value))
    cut = data.draw(st.integers(0, len(stored) - 1))
    assert signed.take(name, bytes(stored[:cut])) is None
    bit = data.draw(st.integers(0, 8 * len(stored) - 1))
    stored[bit // 8] ^= 1 << (bit % 8)
    assert signed.take(name, bytes(stored)) is None


@given(st.binary(max_size=20), st.binary(max_size=20), st.binary(max_size=20))
def test_a_value_passes_under_no_other_name(mine: bytes, theirs: bytes, value: bytes) -> None:
    signed, _ = mac()
    assert (signed.take(mine, signed.put(theirs, value)) is None) == (mine != theirs)


def test_names_and_values_cannot_be_shifted_into_each_other() -> None:
    signed, _ = mac()
    stored = signed.put(b"ab", b"c")
    assert signed.take(b"a", stored[:-1] + b"bc") is None


def test_another_key_is_wrong_and_none_is_missing() -> None:
    signed, registry = mac()
    other, _ = mac(b"another key of 16 bytes")
    plain, _ = mac(b"")
    assert signed.take(b"name", other.put(b"name", b"value")) is None
    assert signed.take(b"name", plain.put(b"name", b"value")) is None
    assert (refused(registry, "wrong"), refused(registry, "missing")) == (1, 1)


def test_without_a_key_values_stay_as_they_are() -> None:
    plain, registry = mac(b"")
    assert plain.put(b"name", b"value") == b"value"
    assert plain.take(b"name", b"anything") == b"anything"
    assert refused(registry, "missing") == 0


def test_refusals_are_counted_one_by_one_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now_s = [0.0]
    signed, registry = mac(clock_s=now_s)
    with caplog.at_level(logging.WARNING):
        for _ in range(500):
            signed.take(b"name", b"forged")
        assert len(caplog.records) == 1
        now_s[0] = 61.0
        signed.take(b"name", b"forged")
    assert refused(registry, "missing") == 501
    assert len(caplog.records) == 2
    assert "500 values" in caplog.records[1].getMessage()
