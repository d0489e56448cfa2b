"""The benchmark of second passes notices changed scores, and damages memory only with --damage."""

import math
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.load.second_pass import Subject, damaged, difference

from gradewire_server.storage.shared_table import MIN_BYTES, SharedTable, create_table


def test_a_score_that_only_one_server_gives_differs() -> None:
    assert difference(0.5, 0.25) == 0.25
    assert difference(None, None) == 0
    assert difference(None, 0.5) == difference(0.5, None) == math.inf


def test_it_damages_the_memory_of_a_supervisor() -> None:
    descriptor = create_table(MIN_BYTES, 1)
    table = SharedTable(descriptor, 0)
    give_up_s = time.monotonic() + 60
    with damaged(os.getpid()):
        while not table.refused:
            table.put(b"n" * 16, bytes(50_000), pinned=False)
            time.sleep(0.01)
            table.get(b"n" * 16)
            assert time.monotonic() < give_up_s
    os.close(descriptor)


def test_a_server_that_fails_on_a_row_is_no_result() -> None:
    failed = SimpleNamespace(score=None, status="UNAVAILABLE", message="the encoder failed")
    client: Any = SimpleNamespace(score=lambda *_: [SimpleNamespace(scores={"smile": failed})])
    server: Any = SimpleNamespace(process=SimpleNamespace(pid=os.getpid()), metric=lambda *_, **__: 0.0)
    with pytest.raises(RuntimeError, match="1 results failed: the encoder failed"):
        Subject(server, 1, [{}], "smile").measure(client)
