"""How long a worker may take."""

import pytest

from gradewire_server.judges.local.supervisor import WorkerTimeouts
from gradewire_server.judges.worker.messages import Row, Run


@pytest.mark.parametrize(("first", "timeout_s"), [(False, 30 + 0.5 * 7), (True, 100 + 30 + 0.5 * 7)])
def test_a_run_may_take_as_long_as_its_tokens_and_the_first_one_reads_the_weights(
    timeout_s: float, *, first: bool
) -> None:
    run = Run(1, (Row(2, (5, 6, 7)), Row(3, (5, 6, 7, 8))))
    assert WorkerTimeouts(start_s=100.0, run_s=30.0, token_s=0.5).of(run, first=first) == timeout_s
