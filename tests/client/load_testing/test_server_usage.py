import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gradewire.errors import InvalidRequest
from gradewire.load_testing.server_usage import ServerUsage, read_usage

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
def served(reply: str) -> Iterator[str]:
    """The address of a server that sends this to whoever connects first."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(reply.encode())

        answering = threading.Thread(target=answer)
        answering.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/metrics"
        answering.join()


def test_a_page_is_read_and_processes_are_added_up() -> None:
    with served(OK + PAGE) as url:
        assert read_usage(url) == ServerUsage(cpu_s=15.0, resident_bytes=4e8)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n# TYPE up gauge", "IncompleteRead"),
        (OK + "# TYPE up gauge\nup 1\n", "gradewire_serving"),
        (OK + PAGE.partition("# TYPE process_cpu")[0][:-30], "the page of metrics is cut off"),
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
