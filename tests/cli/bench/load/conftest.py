"""Servers that a load is put on."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.client.small_server import SmallServer, run_small_server

PAGE = """# TYPE gradewire_serving gauge
gradewire_serving 1.0
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total {cpu}
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 4.0e+08
"""


@pytest.fixture(scope="module")
def server() -> Iterator[SmallServer]:
    with run_small_server() as server:
        yield server


@contextmanager
def metrics_page() -> Iterator[str]:
    """A page of metrics whose CPU time grows by a second each time that somebody looks."""

    class Page(BaseHTTPRequestHandler):
        looks = 0

        def do_GET(self) -> None:
            type(self).looks += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.format(cpu=type(self).looks).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            del format, args

    with HTTPServer(("127.0.0.1", 0), Page) as page:
        thread = threading.Thread(target=page.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{page.server_port}/metrics"
        page.shutdown()
        thread.join()


@pytest.fixture
def metrics_url() -> Iterator[str]:
    with metrics_page() as url:
        yield url


@contextmanager
def going(holds: Callable[[], bool], leave: Callable[[], None]) -> Iterator[None]:
    """Calls `leave` from another thread as soon as the condition holds, or a minute has passed."""

    def wait() -> None:
        deadline_s = time.monotonic() + 60
        while not holds() and time.monotonic() < deadline_s:
            time.sleep(0.02)
        leave()

    leaving = threading.Thread(target=wait)
    leaving.start()
    try:
        yield
    finally:
        leaving.join()
