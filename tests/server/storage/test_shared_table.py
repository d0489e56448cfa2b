"""The table that processes share: what it gives is what was stored, whatever happens to its memory."""

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.storage.shared_table import MAX_WRITERS, MIN_BYTES, SharedTable, create_table

_NO_PROCESS = 1 << 22
"""More than the largest number of a process."""


def name(number: int) -> bytes:
    return blake2b(number.to_bytes(8, "little"), digest_size=16).digest()


@contextmanager
def tables(count: int, max_bytes: int = MIN_BYTES) -> Iterator[tuple[int, Sequence[SharedTable]]]:
    """The descriptor of a table, and the table as each of its processes sees it."""
    with ExitStack() as stack:
        descriptor = create_table(max_bytes, count)
        stack.callback(os.close, descriptor)
        yield descriptor, [SharedTable(descriptor, writer) for writer in range(count)]


def test_each_process_finds_what_another_stored_and_the_newest_value_counts() -> None:
    with tables(3) as (_, (one, two, three)):
        one.put(name(1), b"first\1", pinned=False)
        two.put(name(2), b"pinned\2", pinned=True)
        assert three.get(name(1)) == (b"first\1", False)
        assert one.get(name(2)) == (b"pinned\2", True)
        assert one.get(name(3)) is None
        three.put(name(1), b"second\1", pinned=False)
        assert [table.get(name(1)) for table in (one, two, three)] == [(b"second\1", False)] * 3
        assert (three.found, three.refused) == (2, 0)


def test_a_mark_changes_the_last_byte_for_all_processes_and_nothing_else() -> None:
    with tables(2) as (_, (one, two)):
        one.put(name(1), b"value\1", pinned=True)
        two.mark(name(1), 3)
        two.mark(name(2), 3)
        assert one.get(name(1)) == (b"value\3", True)
        assert one.get(name(2)) is None


_STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(1, 20_000), st.booleans()), min_size=1, max_size=80
)


@settings(max_examples=example_count(60))
@given(steps=_STEPS)
def test_a_value_is_one_that_was_stored_and_the_newest_if_it_has_just_been_stored(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    # 80 values of up to 20 kB overwrite the rings of about 230 kB again and again.
    with tables(3) as (_, seen):
        newest: dict[int, tuple[bytes, bool]] = {}
        for turn, (writer, number, size, pinned) in enumerate(steps):
            value = bytes([turn]) * size
            seen[writer].put(name(number), value, pinned=pinned)
            newest[number] = value, pinned
            for table in seen:
                assert table.get(name(number)) == newest[number]
        for number, stored in newest.items():
            assert seen[0].get(name(number)) in {None, stored}
        assert not any(table.refused for table in seen)


def test_a_full_table_forgets_the_oldest_and_keeps_what_is_found_often() -> None:
    with tables(2) as (_, (one, two)):
        one.put(name(0), b"found often", pinned=False)
        one.put(name(1), b"never found", pinned=False)
        for number in range(2, 4_000):
            one.put(name(number), bytes(1_000), pinned=False)
            assert two.get(name(0)) is not None
        assert two.get(name(1)) is None
        assert sum(two.get(name(number)) is not None for number in range(2, 4_000)) > 300
        assert one.used_bytes < MIN_BYTES / 2
        assert not two.refused, "what is overwritten is no damage"
        there = [number for number in range(4_000) if two.get(name(number)) is not None]
        for number in set(range(4_000)) - set(there):
            two.mark(name(number), 3)
        for number in there:
            assert two.get(name(number)) in {(b"found often", False), (bytes(1_000), False), None}


def test_a_value_that_would_fill_the_table_is_not_stored() -> None:
    with tables(1) as (_, (table,)):
        table.put(name(1), bytes(MIN_BYTES // 4), pinned=True)
        assert table.get(name(1)) is None
        assert not table.used_bytes


@settings(max_examples=example_count(200))
@given(
    damage=st.lists(st.tuples(st.integers(0, MIN_BYTES - 1), st.integers(1, 255)), min_size=1, max_size=400),
    runs=st.lists(st.tuples(st.integers(0, MIN_BYTES - 1), st.binary(min_size=1, max_size=20_000)), max_size=3),
)
def test_damage_anywhere_makes_misses_and_never_another_value(
    damage: list[tuple[int, int]], runs: list[tuple[int, bytes]]
) -> None:
    with tables(2) as (descriptor, (one, two)):
        values = {name(number): (bytes([number]) * (20 + 7 * number), number % 2 == 0) for number in range(200)}
        for number, (key, (value, pinned)) in enumerate(values.items()):
            (one, two)[number % 2].put(key, value, pinned=pinned)
        with mmap.mmap(descriptor, MIN_BYTES) as memory:
            for place, flipped in damage:
                memory[place] ^= flipped
            for place, content in runs:
                memory[place : place + len(content)] = content[: MIN_BYTES - place]
        for key, (value, pinned) in values.items():
            found = two.get(key)
            assert found is None or (found.value[:-1], found.pinned) == (value[:-1], pinned)
            two.mark(key, 1)
            one.claim(key)
            two.claimed_elsewhere(key, lambda _: True)
        # The table works on: what is stored after the damage is found.
        for key, (value, pinned) in values.items():
            one.put(key, value, pinned=pinned)
            assert two.get(key) == (value, pinned)


@settings(max_examples=example_count(100))
@given(st.integers(0, 50), st.integers(0, 7))
def test_each_flipped_bit_of_an_entry_is_noticed(byte: int, bit: int) -> None:
    with tables(1) as (descriptor, (table,)):
        table.put(name(1), bytes(range(20)), pinned=False)
        with mmap.mmap(descriptor, MIN_BYTES) as memory:
            memory[memory.find(name(1)) + byte] ^= 1 << bit
        fills_up = 21 <= byte < 24  # the head of an entry: name, length, pin, three bytes without meaning, check
        assert (table.get(name(1)) is not None) == fills_up


def test_a_half_written_entry_is_a_miss() -> None:
    first, second = b"value of the first.", b"value of the other."
    with tables(1) as (descriptor, (table,)):
        table.put(name(1), first, pinned=False)
        table.put(name(2), second, pinned=False)
        with mmap.mmap(descriptor, MIN_BYTES) as memory:
            one, two = (memory.find(value) for value in (first, second))
            memory[two - 16 : two + 19] = memory[one - 16 : one + 19]  # all but the second one's name
        assert table.get(name(2)) is None
        assert table.get(name(1)) == (first, False)


def test_the_memory_can_be_neither_cut_nor_grown() -> None:
    with tables(1) as (descriptor, (table,)):
        table.put(name(1), b"kept.", pinned=False)
        for size in (0, MIN_BYTES - 4096, MIN_BYTES + 4096):
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, size)
        again = Path(f"/proc/self/fd/{descriptor}")
        with pytest.raises(PermissionError), again.open("wb"):
            pass  # opening it for writing cuts a file
        assert table.get(name(1)) == (b"kept.", False)


_CLAIMS = """
import sys
from gradewire_server.storage.shared_table import SharedTable
table = SharedTable(int(sys.argv[1]), 1)
print(table.claim(bytes.fromhex(sys.argv[2])), flush=True)
table.put(bytes.fromhex(sys.argv[3]), b"from another process.", pinned=True)
print("stored", flush=True)
sys.stdin.readline()
"""


def test_a_claim_holds_as_long_as_its_process_runs() -> None:
    with tables(2) as (descriptor, (table, _)):
        arguments = [sys.executable, "-c", _CLAIMS, str(descriptor), name(1).hex(), name(2).hex()]
        with subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=(descriptor,)
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "True\n"
            assert other.stdout.readline() == "stored\n"
            assert table.get(name(2)) == (b"from another process.", True)
            assert not table.claim(name(1))
            assert table.claimed_elsewhere(name(1), lambda pid: pid == other.pid)
            assert not table.claimed_elsewhere(name(1), lambda _: False)
            table.release(name(1))  # not ours
            assert not table.claim(name(1))
            assert table.claim(name(2)), "nobody claimed it"
            assert table.joined == 2
            other.kill()
            other.wait()
            assert table.claim(name(1))
            assert table.claim(name(1)), "a process may claim its own work again"
            table.release(name(1))
            assert not table.claimed_elsewhere(name(1), lambda _: True)


def test_what_is_no_table_of_this_version_and_size_is_refused() -> None:
    with tables(2) as (descriptor, _):
        for writer in (2, -1):
            with pytest.raises(ValueError, match="not a table"):
                SharedTable(descriptor, writer)
        os.pwrite(descriptor, bytes(MIN_BYTES), 0)
        SharedTable(descriptor, 0).put(name(1), b"a successor goes on", pinned=True)
        assert SharedTable(descriptor, 1).get(name(1)) == (b"a successor goes on", True)
    other = os.memfd_create("gradewire-shared-0-2")
    os.ftruncate(other, MIN_BYTES)
    with pytest.raises(ValueError, match="not a table"):
        SharedTable(other, 0)
    os.close(other)
    with pytest.raises(OSError, match="processes"):
        create_table(MIN_BYTES, MAX_WRITERS + 1)
