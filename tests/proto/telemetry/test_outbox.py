"""The room for what waits to be exported, and what is said and counted where there is none."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.telemetry.outbox import SAID_ONCE, Outbox, quieten_library


def test_loss_is_told_once_and_again_after_a_recovery(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    outbox = Outbox("spans", 2)

    assert [outbox.admit() for _ in range(4)] == [True, True, False, False]
    outbox.ended(1, taken=False)
    outbox.ended(1, taken=True)
    outbox.lost(3)

    assert (outbox.exported, outbox.dropped) == (1, 6)
    assert [record.getMessage() for record in caplog.records] == [
        "spans are dropped: the collector takes none, or not fast enough; said once",
        "the collector takes spans again; 3 were dropped so far",
        "spans are dropped: the collector takes none, or not fast enough; said once",
    ]


@given(st.lists(st.sampled_from(["admit", "taken", "lost"]), max_size=60), st.integers(1, 5))
def test_every_record_is_counted_once_and_the_room_is_kept(steps: list[str], most: int) -> None:
    outbox = Outbox("spans", most)
    asked = waiting = 0
    for step in steps:
        if step == "admit":
            asked += 1
            admitted = outbox.admit()
            assert admitted == (waiting < most)
            waiting += admitted
        elif waiting:
            outbox.ended(1, taken=step == "taken")
            waiting -= 1
    assert outbox.exported + outbox.dropped + waiting == asked


def test_the_librarys_own_lines_come_once_until_they_are_renewed() -> None:
    quieten_library()
    logger = logging.getLogger("opentelemetry.sdk._shared_internal")
    record = logger.makeRecord(logger.name, logging.ERROR, "f", 1, "no collector at %s", ("x",), None)

    SAID_ONCE.renew()
    assert SAID_ONCE in logger.filters
    assert [bool(SAID_ONCE.filter(record)) for _ in range(3)] == [True, False, False]
    SAID_ONCE.renew()
    assert SAID_ONCE.filter(record)
