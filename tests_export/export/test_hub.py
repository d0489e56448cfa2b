"""Fetching from a hub: against a small one of our own, which answers as the real one does."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "1_Pooling/config.json": b"{}",
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"a pickle",
    "onnx/model.onnx": b"somebody's graph",
    "mine.py": b"raise SystemExit",
}

PROGRAM = """
import sys
from gradewire_models.errors import ModelError
from gradewire_models.export.folder import find_source
try:
    source = find_source(sys.argv[1], revision=sys.argv[2])
except ModelError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(source.origin, source.commit)
print(*sorted(str(path.relative_to(source.directory)) for path in source.directory.rglob("*") if path.is_file()))
"""


class Hub(BaseHTTPRequestHandler):
    """One model, ``people/tiny``, with the revisions main and v1 at one commit."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/people/tiny/"):
            _, _, _, _, _, kind, revision, *_ = path.split("/")
            if revision not in {"main", "v1", COMMIT}:
                self._answer(b"{}", 404, {"X-Error-Code": "RevisionNotFound"})
            elif kind == "revision":
                siblings = [{"rfilename": name} for name in FILES]
                self._answer(json.dumps({"id": "people/tiny", "sha": COMMIT, "siblings": siblings}).encode())
            else:
                tree = [
                    {"type": "file", "path": name, "size": len(data), "oid": "0" * 40} for name, data in FILES.items()
                ]
                self._answer(json.dumps(tree).encode())
        elif path.startswith(f"/people/tiny/resolve/{COMMIT}/"):
            data = FILES[path.removeprefix(f"/people/tiny/resolve/{COMMIT}/")]
            self._answer(data, 200, {"ETag": f'"{len(data)}-{hash(data)}"', "X-Repo-Commit": COMMIT})
        else:
            self._answer(b"{}", 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815 - the base class looks for that name

    def _answer(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it that
        """Says nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def fetch(address: str, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # A process of its own: the hub's library reads its address when it is imported.
    environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)  # a training in this process sets it
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_revision_is_fetched_at_its_commit_without_pickles_and_code(address: str, tmp_path: Path) -> None:
    result = fetch(address, tmp_path, "people/tiny", "v1")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"people/tiny {COMMIT}",
        "1_Pooling/config.json config.json model.safetensors",
    ]
    assert not any("pytorch_model.bin" in path or "mine.py" in path for path in Hub.asked if "/resolve/" in path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("people/tiny", "v2"), "DownloadError: people/tiny has no revision 'v2'"),
        (("people/nobody", ""), "DownloadError: the hub has no model 'people/nobody'"),
    ],
)
def test_what_the_hub_does_not_have_is_said(
    address: str, tmp_path: Path, arguments: tuple[str, str], says: str
) -> None:
    result = fetch(address, tmp_path, *arguments)
    assert result.stderr.splitlines()[-1].startswith(says)


def test_without_a_network_the_way_out_is_said_and_what_is_there_is_used(address: str, tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    result = fetch(nowhere, tmp_path, "people/tiny", "")
    assert result.stderr.splitlines()[-1].startswith("DownloadError: the hub is not available")
    assert "hf download people/tiny --local-dir FOLDER" in result.stderr
    fetch(address, tmp_path, "people/tiny", "")
    assert fetch(nowhere, tmp_path, "people/tiny", "").stdout.startswith(f"people/tiny {COMMIT}\n")
