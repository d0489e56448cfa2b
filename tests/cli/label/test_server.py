"""The server of the page: only for this machine, this address and this page, and with answers to any request."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.label.test_session import row

from gradewire_cli.label.label_file import LabelFile
from gradewire_cli.label.server import HOST, LabelServer
from gradewire_cli.label.session import Session
from gradewire_cli.problems import InputError

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelServer]:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    session = Session([row(number) for number in range(3)], 0, LabelFile.open(path, ["ann"]), path.parent)
    with LabelServer(session, ["ann"], 0) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(
    server: LabelServer, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(HOST, server.server_address[1], timeout=10)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        reply = connection.getresponse()
        return reply.status, reply.read(), reply.headers
    finally:
        connection.close()


def secret_of(server: LabelServer) -> str:
    return next(iter(server.pages))


def own(server: LabelServer) -> str:
    return f"http://{HOST}:{server.server_address[1]}"


def post(server: LabelServer, body: object, **headers: str) -> int:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"origin": own(server), **JSON, **headers}
    return ask(server, "POST", f"/{secret_of(server)}/label", content, **given)[0]


def test_a_label_is_stored_and_read_back(server: LabelServer) -> None:
    path = f"/{secret_of(server)}/label"
    status, content, headers = ask(
        server, "POST", path, json.dumps({"position": 1, "label": 0.25}).encode(), origin=own(server), **JSON
    )
    state: dict[str, Any] = json.loads(content)
    assert (status, state["position"], state["label"]) == (200, 1, 0.25)
    assert headers["cache-control"] == "no-store"
    assert server.session.file.path.read_text() == "id,ann\nr1,0.25\n"
    assert json.loads(ask(server, "GET", f"/{secret_of(server)}/state?at=1")[1])["label"] == 0.25
    assert post(server, {"position": 1, "label": None}) == 200
    assert server.session.file.path.read_text() == "id,ann\n"


def test_flags_are_stored_and_read_back(server: LabelServer) -> None:
    assert post(server, {"position": 2, "flags": ["bad-gold", "bad-gold"]}) == 200
    assert server.session.file.path.read_text() == "id,ann,flags:ann\nr2,,bad-gold\n"
    state = json.loads(ask(server, "GET", f"/{secret_of(server)}/state?at=2")[1])
    assert (state["areFlagsStored"], state["flagged"], state["labelled"]) == (True, 1, 0)
    assert [each["name"] for each in state["flags"] if each["isSet"]] == ["bad-gold"]
    del server.session.file.flags["r2"]


def test_the_page_allows_only_itself(server: LabelServer) -> None:
    status, content, headers = ask(server, "GET", f"/{secret_of(server)}/")
    assert status == 200
    assert b"Annotator <bdi>ann</bdi>" in content
    rules = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert (rules["frame-ancestors"], rules["form-action"], rules["img-src"]) == ("'none'", "'none'", "data:")
    assert rules["script-src"].startswith("'sha256-")
    assert headers["referrer-policy"] == "no-referrer"
    assert "python" not in headers["server"].lower()


@pytest.mark.parametrize("path", ["/", "/label", "/x/", "/state", "//state", "/%00/state"])
def test_without_the_secret_there_is_nothing(server: LabelServer, path: str) -> None:
    assert ask(server, "GET", path)[0] == 404
    assert ask(server, "POST", path, b"{}", origin=own(server), **JSON)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1"])
def test_another_name_of_this_machine_is_refused(server: LabelServer, host: str) -> None:
    assert ask(server, "GET", f"/{secret_of(server)}/", host=host)[0] == 421
    assert post(server, {"position": 0, "label": 1}, host=host) == 421


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", "http://127.0.0.1:1"])
def test_another_sites_page_cannot_store_a_label(server: LabelServer, origin: str) -> None:
    before = server.session.file.path.read_text() if server.session.file.path.exists() else ""
    assert post(server, {"position": 0, "label": 1}, origin=origin) == 403
    assert post(server, {"position": 0, "label": 1}, **{"content-type": "text/plain"}) == 415
    assert (server.session.file.path.read_text() if server.session.file.path.exists() else "") == before


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"[" * 1000,
        {},
        [],
        {"position": 0},
        {"position": 0, "label": 2},
        {"position": 0, "label": 0.5},
        {"position": 0, "label": True},
        {"position": 0, "label": "1"},
        {"position": True, "label": 1},
        {"position": "0", "label": 1},
        {"position": 1.0, "label": 1},
        b'{"position": 0, "label": NaN}',
        {"position": 0, "flags": ["own"]},
        {"position": 0, "flags": "bad-gold"},
        {"position": 0, "flags": [[]]},
        {"position": 0, "errorClass": 1},
        {"position": 0, "errorClass": "synonym"},
        {"flags": []},
    ],
)
def test_another_body_is_refused(server: LabelServer, body: object) -> None:
    assert post(server, body) == 400
    assert server.session.counts() == {"ann": 0}


def test_large_bodies_and_missing_rows_are_refused(server: LabelServer) -> None:
    assert post(server, b" " * 2000) == 413
    for position in (-1, 3, 10**12):
        assert post(server, {"position": position, "label": 1}) == 404
    assert ask(server, "GET", f"/{secret_of(server)}/state?at=3")[0] == 404
    for at in ("-1", "x", "9" * 40, "%F0"):
        assert ask(server, "GET", f"/{secret_of(server)}/state?at={at}")[0] == 400


@given(st.binary(max_size=200))
def test_any_body_gets_an_answer_and_stores_only_labels(server: LabelServer, body: bytes) -> None:
    assert post(server, body) in {200, 400, 404}
    assert set(server.session.file.labels) <= {"r0", "r1", "r2"}


def test_a_label_that_cannot_be_written_is_an_error_of_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    session = Session([row(0)], 0, LabelFile.open(folder / "labels.csv", ["ann"]), folder)
    folder.rmdir()
    with LabelServer(session, ["ann"], 0) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        body = json.dumps({"position": 0, "label": 1}).encode()
        status, content, _ = ask(found, "POST", f"/{secret_of(found)}/label", body, origin=own(found), **JSON)
        found.shutdown()
        thread.join()
    assert (status, b"the label was not stored: No such file" in content) == (500, True)
    assert session.counts() == {"ann": 0}


def test_a_port_in_use_is_an_error_with_a_way_out(server: LabelServer) -> None:
    with pytest.raises(InputError, match="Use another port"):
        LabelServer(server.session, ["ann"], server.server_address[1])


def test_each_annotator_has_an_address_of_their_own(server: LabelServer) -> None:
    with LabelServer(server.session, ["ann", "ben"], 0) as found:
        assert list(found.urls) == ["ann", "ben"]
        assert len({*found.urls.values(), *server.urls.values()}) == 3
        assert all(url.startswith("http://127.0.0.1:") for url in found.urls.values())
