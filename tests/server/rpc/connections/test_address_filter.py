"""Hosts that are kept out cannot connect, others can, and so can all again later."""

import ipaddress
import logging
import socket
import struct
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.rpc.connections.address_filter import MAX_HOSTS, AddressFilter, program

_NETWORK = 0xFFF00000


@pytest.fixture(params=["127.0.0.1", "::"])
def listening(request: pytest.FixtureRequest) -> Iterator[int]:
    host: str = request.param
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, dualstack_ipv6=family == socket.AF_INET6) as server:
        yield server.getsockname()[1]


def connects(port: int, source: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.3, source_address=(source, 0)).close()
    except TimeoutError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="packet filters are Linux's")
def test_who_is_kept_out_cannot_connect(listening: int) -> None:
    other = socket.create_server(("127.0.0.1", 0))
    with other:
        addresses = AddressFilter(listening)
        addresses.keep_out(["127.0.0.2", "2001:db8::1", "no address"])
        assert not connects(listening, "127.0.0.2")
        assert connects(listening, "127.0.0.1")
        assert connects(listening, "127.0.0.3")
        assert connects(other.getsockname()[1], "127.0.0.2"), "another port"
        addresses.keep_out(["127.0.0.3"])
        assert connects(listening, "127.0.0.2")
        assert not connects(listening, "127.0.0.3")
        addresses.keep_out([])
        assert connects(listening, "127.0.0.3")


@pytest.mark.skipif(sys.platform != "linux", reason="packet filters are Linux's")
def test_the_system_takes_the_largest_filter(listening: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        AddressFilter(listening).keep_out([f"2001:db8::{number:x}" for number in range(1, 10 * MAX_HOSTS)])
    assert not caplog.records
    assert connects(listening, "127.0.0.2")


def passes(code: bytes, source: str) -> bool:
    """Runs a filter on the header of a packet, as the system would."""
    address = ipaddress.ip_address(source)
    header = bytes([address.version << 4]) + bytes(11 if address.version == 4 else 7) + address.packed
    lines = list(struct.iter_unpack("=HBBI", code))
    place = accumulator = 0
    while True:
        operation, if_true, if_false, value = lines[place]
        place += 1
        match operation:
            case 0x30:
                accumulator = header[value - _NETWORK]
            case 0x20:
                accumulator = int.from_bytes(header[value - _NETWORK :][:4])
            case 0x54:
                accumulator &= value
            case 0x05:
                place += value
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x06:
                return bool(value)
            case _:
                raise AssertionError(operation)


_ADDRESSES = st.one_of(
    st.integers(0, 7).map(lambda low: str(ipaddress.IPv4Address((10 << 24) + low))),
    st.tuples(*[st.sampled_from((0, 1))] * 4).map(lambda words: str(ipaddress.IPv6Address(struct.pack(">4I", *words)))),
)


@settings(max_examples=example_count(200))
@given(kept_out=st.lists(_ADDRESSES, max_size=MAX_HOSTS, unique=True), source=_ADDRESSES)
def test_a_filter_drops_what_it_names_and_nothing_else(kept_out: list[str], source: str) -> None:
    assert passes(program(kept_out), source) == (source not in kept_out)
