import math
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.bench.load.samples import OBJECTIVE, counts_of, step_of, usage

from gradewire.errors import InvalidRequest
from gradewire_cli.bench.load.calls import HANGING, StepCounts
from gradewire_cli.bench.load.run import LoadResult, Outcome, ServerUsage, overload_checks, read_usage

OK = "HTTP/1.1 200 OK\r\n\r\n"
PAGE = """# HELP gradewire_serving 1 while health says SERVING
# TYPE gradewire_serving gauge
gradewire_serving 1.0
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total{process="0"} 12.5
process_cpu_seconds_total{process="1"} 2.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 4.0e+08
"""


@contextmanager
def served(reply: str, received: list[str] | None = None) -> Iterator[str]:
    """Yield the address of a server that sends `reply` to its first caller, and appends the request to `received`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                request = connection.recv(4096).decode()
                if received is not None:
                    received.append(request)
                connection.sendall(reply.encode())

        answering = threading.Thread(target=answer)
        answering.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/metrics"
        answering.join()


def test_a_page_is_read_and_processes_are_added_up() -> None:
    with served(OK + PAGE) as url:
        assert read_usage(url) == ServerUsage(cpu_s=15.0, resident_bytes=4e8)


def test_a_page_behind_a_token_gets_it_and_another_address_does_not() -> None:
    refused = "HTTP/1.1 {} Refused\r\nContent-Length: 0\r\n\r\n"
    for status in (401, 403):
        with served(refused.format(status)) as url, pytest.raises(InvalidRequest, match="Use a --token with the scope"):
            read_usage(url)
    received: list[str] = []
    with served(OK + PAGE, received) as other:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {other}\r\nContent-Length: 0\r\n\r\n"
        with served(moved, received) as url:
            assert read_usage(url, "SECRET").cpu_s == 15.0
    first, second = received
    assert "authorization: bearer secret" in first.lower()
    assert "secret" not in second.lower()


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n# TYPE up gauge", "IncompleteRead"),
        (OK + "# TYPE up gauge\nup 1\n", "gradewire_serving"),
        (OK + PAGE.partition("# TYPE process_cpu")[0][:-30], "the page is cut off"),
        ("nonsense\r\n\r\n", "nonsense"),
        ("", "closed connection"),
    ],
)
def test_a_page_that_is_broken_is_told_by_its_address(page: str, said: str) -> None:
    with served(page) as url, pytest.raises(InvalidRequest, match=rf"--metrics-url .*{said}"):
        read_usage(url)


def test_no_page_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"--metrics-url http://127\.0\.0\.1:1/metrics"):
        read_usage("http://127.0.0.1:1/metrics")


@pytest.mark.parametrize(
    ("counts", "outcome"),
    [
        (counts_of(0.2), Outcome.HOLDS),
        (counts_of(0.2, refused=1), Outcome.HOLDS),
        (counts_of(0.2, refused=2), Outcome.MISSES),
        (counts_of(0.2, failed=2), Outcome.MISSES),
        (counts_of(0.26), Outcome.MISSES),
        (counts_of(11.0), Outcome.MISSES),
        (counts_of(0.2, scored=1, failed=999), Outcome.MISSES),
        (counts_of(0.2, scored=0, failed=999), Outcome.LOST),
        (StepCounts(), Outcome.MISSES),
    ],
)
def test_a_rate_is_kept_up_with_where_every_condition_holds(counts: StepCounts, outcome: Outcome) -> None:
    step = step_of(counts)
    assert step.outcome is outcome
    # The exit code of a run at a single rate depends on the rate being kept up with.
    assert LoadResult([step]).has_failed is (outcome is not Outcome.HOLDS)


def test_a_late_client_makes_a_step_void_and_an_interrupted_one_is_none() -> None:
    counts = counts_of(0.2)
    for _ in range(20):
        counts.lag_s.append(2 * OBJECTIVE.max_lag_s)
    assert step_of(counts).outcome is Outcome.VOID
    counts.stopped = True
    assert step_of(counts).outcome is Outcome.STOPPED


def test_what_the_server_spent_is_divided_by_what_it_scored() -> None:
    step = step_of(counts_of(0.1), before=usage(), after=usage(cpu_s=12.5))
    assert step.server_cpu_s_per_item == pytest.approx(2.5 / 1000)
    assert math.isnan(step_of(counts_of(0.1)).server_cpu_s_per_item)
    assert step.document()["latency_s"]["p99"] == pytest.approx(0.1, rel=1e-3)


def test_a_server_that_keeps_its_promises_passes_every_check() -> None:
    knee = step_of(counts_of(0.2))
    over = step_of(counts_of(0.39, refused=900, hinted=900), before=usage(), after=usage())
    checks = list(overload_checks(knee, over))
    assert [check.holds for check in checks] == [True] * 5
    assert str(checks[0]).startswith("pass: p99 of admitted calls: 390 ms, 1.95 x the knee's")


def test_each_broken_promise_fails_its_own_check() -> None:
    knee = step_of(counts_of(0.1))
    counts = counts_of(0.21, refused=10, hinted=9, failed=1)
    counts.codes[HANGING] += 1
    counts.due += 1
    grown = usage(resident_bytes=430 * 2**20)
    over = step_of(counts, before=usage(), after=grown)
    checks = list(overload_checks(knee, over))
    assert [check.holds for check in checks] == [False] * 5
    assert "UNAVAILABLE" in checks[1].measured
    assert "+7.5%" in checks[4].measured


def test_what_could_not_be_measured_is_neither_kept_nor_broken() -> None:
    assert list(overload_checks(step_of(counts_of(0.1)), step_of(counts_of(0.1))))[-1].holds is None
    silent = usage(resident_bytes=0)
    *_, memory = overload_checks(step_of(counts_of(0.1)), step_of(counts_of(0.1), before=silent, after=silent))
    assert memory.holds is None
    late = counts_of(0.1)
    late.lag_s.append(1.0)
    for _ in range(50):
        late.lag_s.append(1.0)
    (only,) = overload_checks(step_of(counts_of(0.1)), step_of(late))
    assert only.holds is None
