import socket
import threading

import pytest
from tests.client.load_testing.samples import server_figures

from gradewire.errors import InvalidRequest
from gradewire.load_testing.server_figures import parse_server_figures, read_server_figures

PAGE = """# HELP gradewire_serving 1 while health says SERVING
# TYPE gradewire_serving gauge
gradewire_serving 1.0
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total{process="0"} 12.5
process_cpu_seconds_total{process="1"} 2.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 4.0e+08
# TYPE gradewire_engine_texts_total counter
gradewire_engine_texts_total{source="memory"} 50.0
gradewire_engine_texts_total{source="redis"} 5.0
gradewire_engine_texts_total{source="computed"} 25.0
# TYPE gradewire_remembered_results_texts_total counter
gradewire_remembered_results_texts_total 20.0
# TYPE gradewire_items_in_flight gauge
gradewire_items_in_flight 3.0
"""


def test_a_page_is_read_and_processes_are_added_up() -> None:
    found = parse_server_figures(PAGE)
    assert found == server_figures(
        cpu_s=15.0, resident_bytes=4e8, items_in_flight=3.0, cached_texts=75.0, computed_texts=25.0
    )
    assert found.hit_rate_since(server_figures()) == 0.75


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n# TYPE up gauge", "IncompleteRead"),
        ("HTTP/1.1 200 OK\r\n\r\n" + PAGE.replace(" 50.0", " +Inf"), "infinity"),
        ("HTTP/1.1 200 OK\r\n\r\n" + PAGE.replace("source", "sauce"), "source"),
        ("HTTP/1.1 200 OK\r\n\r\n" + PAGE.partition("# TYPE process_cpu")[0][:-30], "no whole page of metrics"),
        ("nonsense\r\n\r\n", "nonsense"),
        ("", "closed connection"),
    ],
)
def test_a_page_that_is_broken_is_told_by_its_address(page: str, said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(page.encode())

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(InvalidRequest, match=rf"--metrics-url .*{said}"):
            read_server_figures(f"http://127.0.0.1:{listening.getsockname()[1]}/metrics")
        answering.join()


def test_another_page_and_no_page_are_refused() -> None:
    with pytest.raises(ValueError, match="gradewire_serving"):
        parse_server_figures("# TYPE up gauge\nup 1\n")
    with pytest.raises(InvalidRequest, match=r"--metrics-url http://127\.0\.0\.1:1/metrics"):
        read_server_figures("http://127.0.0.1:1/metrics")
