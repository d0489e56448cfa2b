"""Two server processes with encryption and Redis as their store, reached over HTTP and by gRPC, and by both at once.

A process is killed or replaced meanwhile: who comes in by HTTP fares as well as who calls gRPC.
"""

import json
import os
import signal
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from tests.e2e.client.test_tls import write_certificate
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import channels_by_process, process_ids, ready_processes, wait_until
from tests.support.servers.valkey import ValkeyServer

from gradewire_proto.v1 import references_pb2, references_pb2_grpc, scoring_pb2, scoring_pb2_grpc, types_pb2

pytestmark = pytest.mark.hostile

_CIDER = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=types_pb2.CORPUS_PREPARED))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("certificate")) / "cert.pem"


@pytest.fixture
def server(tmp_path: Path, certificate: Path, minilm: Path) -> Iterator[ServerProcess]:
    with ValkeyServer(tmp_path) as valkey:
        settings = {
            "model_repository": minilm,
            "judge_backend": "none",
            "processes": 2,
            "redis_url": valkey.url,
            "disk_directory": "",
            "tls_cert": certificate,
            "tls_key": certificate.with_name("key.pem"),
            "http_api_port": 0,
            "drain_s": 0,
        }
        with ServerProcess(tmp_path, **settings) as running:
            yield running
            running.signal(signal.SIGTERM)
            assert running.wait() == 0


def _post(server: ServerProcess, certificate: Path) -> float:
    trusting = ssl.create_default_context(cafile=certificate)
    trusting.check_hostname = False
    body = json.dumps({"items": [{"references": ["a cat"], "prediction": "a small cat"}], "metrics": [{"smile": {}}]})
    url = f"https://127.0.0.1:{server.api_port}/gradewire.v1.Scoring/Score"
    asked = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60, context=trusting) as reply:  # noqa: S310 - as above
        return float(json.load(reply)["items"][0]["results"][0]["score"])


def test_a_set_in_redis_is_the_same_in_all_at_once(server: ServerProcess, certificate: Path) -> None:
    credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
    item = types_pb2.Item(question="q0", references=["a dog 0"], prediction="a dog 0 runs")
    seen = set()
    with channels_by_process(
        server.address, credentials=credentials, options=(("grpc.ssl_target_name_override", "grader"),)
    ) as channels:
        both = tuple(channels.values())
        for turn in range(4):
            numbers = (2 * turn, 2 * turn + 1)
            entries = [references_pb2.ReferenceEntry(question=f"q{n}", references=[f"a dog {n}"]) for n in numbers]
            request = references_pb2.PrepareRequest(entries=entries, metrics=[_CIDER], reference_set="grows")
            assert list(references_pb2_grpc.ReferencesStub(both[turn % 2]).Prepare(request, timeout=60))[-1].complete
            scored = scoring_pb2.ScoreRequest(items=[item], metrics=[_CIDER], reference_set="grows")
            found = {
                (reply.items[0].results[0].score, reply.provenance[0].corpus_digest)
                for reply in (scoring_pb2_grpc.ScoringStub(each).Score(scored, timeout=60) for each in reversed(both))
            }
            assert len(found) == 1
            assert not found & seen
            seen |= found


@pytest.mark.parametrize("way", ["killed", "replaced"])
def test_no_http_request_fails_while_a_process_goes(server: ServerProcess, certificate: Path, way: str) -> None:
    expected = _post(server, certificate)
    before = process_ids(server.pid)
    done = threading.Event()

    def requests() -> int:
        count = 0
        while not done.is_set():
            assert _post(server, certificate) == pytest.approx(expected, abs=2e-4)
            count += 1
        return count

    with ThreadPoolExecutor() as pool:
        callers = [pool.submit(requests) for _ in range(3)]
        try:
            if way == "killed":
                os.kill(before[0], signal.SIGKILL)
                wait_until(lambda: ready_processes(server) == 1)
                wait_until(lambda: ready_processes(server) == 2)
            else:
                server.signal(signal.SIGHUP)
                wait_until(lambda: not set(before) & set(process_ids(server.pid)) and ready_processes(server) == 2)
        finally:
            done.set()
        assert all(caller.result(60) > 1 for caller in callers)
