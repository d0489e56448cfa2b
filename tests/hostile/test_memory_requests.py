"""A request of a few megabytes takes a few times its own size, whatever its strings are, and others are scored."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import pytest
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import FreshServerProcess, ServerProcess

from gradewire_proto.v1 import (
    references_pb2,
    references_pb2_grpc,
    scoring_pb2,
    scoring_pb2_grpc,
    types_pb2,
)

_MAX_MIB: Final = 192
"""Beside what the server held before: request and reply as bytes and as messages, of at most 32 MiB each."""
_ITEMS: Final = 4096
_OPTIONS: Final = [("grpc.max_receive_message_length", 64 << 20), ("grpc.enable_retries", 0)]
_EXACT: Final = types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())
_VQA: Final = types_pb2.MetricSpec(vqa_accuracy=types_pb2.VqaAccuracyParameters(consensus=2))
_UNKNOWN_STRING: Final = b"\xfa\x7f\x80\x80\x80\x01" + b"x" * (2 << 20)
"""A field that no message of ours has, of 2 MiB."""


class Reply(NamedTuple):
    """What became of an attack.

    Attributes:
        code: Of the call.
        statuses: Of its results, each once.
        longest: Characters of the longest message in it.
        size_bytes: Of all replies.
    """

    code: str
    statuses: frozenset[int]
    longest: int
    size_bytes: int


def smile(model: str) -> types_pb2.MetricSpec:
    return types_pb2.MetricSpec(smile=types_pb2.SmileParameters(model=model))


def score(port: int, *metrics: types_pb2.MetricSpec, items: int = _ITEMS, **fields: Any) -> Reply:
    item = types_pb2.Item(**{"references": ["cat"], "prediction": "cat", **fields})
    request = scoring_pb2.ScoreRequest(items=[item] * items, metrics=metrics)
    return _told(port, lambda channel: [scoring_pb2_grpc.ScoringStub(channel).Score(request, timeout=60)])


def stream(port: int, *metrics: types_pb2.MetricSpec, items: int = _ITEMS, **fields: Any) -> Reply:
    item = types_pb2.Item(**{"references": ["cat"], "prediction": "cat", **fields})
    config = scoring_pb2.ScoreStreamConfig(metrics=metrics)
    sent = [
        scoring_pb2.ScoreStreamRequest(config=config),
        scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[item] * items)),
    ]
    return _told(port, lambda channel: scoring_pb2_grpc.ScoringStub(channel).ScoreStream(iter(sent), timeout=60))


def prepare(port: int, *metrics: types_pb2.MetricSpec, **fields: Any) -> Reply:
    entry = references_pb2.ReferenceEntry(references=["cat"])
    request = references_pb2.PrepareRequest(entries=[entry] * _ITEMS, metrics=metrics, **fields)
    return _told(port, lambda channel: references_pb2_grpc.ReferencesStub(channel).Prepare(request, timeout=60))


def _told(port: int, call: Callable[[grpc.Channel], Any]) -> Reply:
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=_OPTIONS) as channel:
        try:
            replies = list(call(channel))
        except grpc.RpcError as error:
            if not isinstance(error, grpc.Call):
                raise
            return Reply(error.code().name, frozenset(), len(error.details() or ""), 0)
    results = [each for reply in replies for item in getattr(reply, "items", ()) for each in item.results]
    told = [*results, *(each for reply in replies for each in getattr(reply, "failures", ()))]
    return Reply(
        "OK",
        frozenset(each.status for each in told),
        max((len(each.message) for each in told), default=0),
        sum(reply.ByteSize() for reply in replies),
    )


LONG: Final = "x" * (2 << 20)
REFUSED: Final = frozenset({types_pb2.STATUS_INVALID_PARAMETER})
ATTACKS: Final[dict[str, tuple[Callable[[int], Reply], str, frozenset[int]]]] = {
    "a model of 2 MiB": (lambda port: score(port, smile(LONG)), "OK", REFUSED),
    "a model of 2 MiB with a digest": (lambda port: score(port, smile(f"{LONG}@{'0' * 8}")), "OK", REFUSED),
    "8 models of 2 MiB": (lambda port: score(port, *[smile(LONG)] * 8), "OK", REFUSED),
    "32 models of 100 kB": (lambda port: score(port, *[smile(LONG[:100_000])] * 32), "OK", REFUSED),
    "a fit of 2 MiB": (
        lambda port: score(port, types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters(fit=LONG))),
        "OK",
        REFUSED,
    ),
    "a prompt of 2 MiB": (
        lambda port: score(port, types_pb2.MetricSpec(lave=types_pb2.LaveParameters(prompt=LONG))),
        "OK",
        REFUSED,
    ),
    "2 MiB of unknown fields": (
        lambda port: score(port, types_pb2.MetricSpec(smile=types_pb2.SmileParameters.FromString(_UNKNOWN_STRING))),
        "INVALID_ARGUMENT",
        frozenset(),
    ),
    "a stream's model of 2 MiB": (lambda port: stream(port, smile(LONG)), "OK", REFUSED),
    "a set's model of 2 MiB": (lambda port: prepare(port, _EXACT, smile(LONG)), "OK", REFUSED),
    "a judge's name of 2 MiB": (
        lambda port: prepare(port, _EXACT, generate=references_pb2.SyntheticGeneration(model=LONG)),
        "INVALID_ARGUMENT",
        frozenset(),
    ),
    "a set's name of 2 MiB": (lambda port: prepare(port, _EXACT, reference_set=LONG), "INVALID_ARGUMENT", frozenset()),
    "ids of 1 MiB": (
        lambda port: stream(port, *[_EXACT] * 32, items=20, id=LONG[: 1 << 20]),
        "OK",
        frozenset({types_pb2.STATUS_INVALID_INPUT}),
    ),
    "long predictions that 32 metrics give back": (
        lambda port: score(port, *[_VQA] * 32, items=6, prediction=LONG[: 1 << 20]),
        "OK",
        frozenset({types_pb2.STATUS_OK}),
    ),
    "32 failures of each item": (
        lambda port: score(port, _EXACT, *[smile("no model " + "é" * 100)] * 31),
        "INVALID_ARGUMENT",
        frozenset(),
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    with FreshServerProcess(tmp_path_factory.mktemp("small"), model_repository=minilm) as running:
        score(running.port, smile(""), items=100)
        yield running


def memory_mib(server: ServerProcess, field: str) -> int:
    text = Path(f"/proc/{server.pid}/status").read_text()
    return next(int(line.split()[1]) >> 10 for line in text.splitlines() if line.startswith(field))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_small_request_takes_little_memory(server: ServerProcess, name: str, figure: TakeFigure) -> None:
    send, code, statuses = ATTACKS[name]
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # sets the peak back to what is held now
    before = memory_mib(server, "VmRSS")
    reply = send(server.port)
    grown = memory_mib(server, "VmHWM") - before
    assert figure(f"{name}, growth", grown, "MiB", bound=f"< {_MAX_MIB}").holds, reply
    assert (reply.code, reply.statuses) == (code, statuses)
    assert reply.longest <= 1_000
    assert reply.size_bytes <= 32 << 20
    after = score(server.port, smile(""), items=1)
    assert (after.code, after.statuses) == ("OK", frozenset({types_pb2.STATUS_OK}))


@pytest.mark.hostile
def test_a_stream_that_idles_keeps_nothing_of_what_it_has_sent(server: ServerProcess, figure: TakeFigure) -> None:
    config = scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[_EXACT]))
    config.MergeFromString(_UNKNOWN_STRING * 10)
    items = scoring_pb2.ScoreStreamRequest(
        items=scoring_pb2.ScoreStreamItems(items=[types_pb2.Item(prediction="a" * 1_000_000, references=["b"])] * 20)
    )
    before = memory_mib(server, "RssAnon")
    with contextlib.ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel(server.address, options=_OPTIONS))
        stub = scoring_pb2_grpc.ScoringStub(channel)
        for _ in range(20):
            requests: queue.SimpleQueue[scoring_pb2.ScoreStreamRequest | None] = queue.SimpleQueue()
            stack.callback(requests.put, None)
            replies = stub.ScoreStream(iter(requests.get, None))
            requests.put(config)
            next(replies)
            requests.put(items)
            scored = 0
            while scored < 20:
                scored += len(next(replies).items)
        held = memory_mib(server, "RssAnon") - before
    assert figure("20 streams that idle after messages of 20 MB, held", held, "MiB", bound=f"< {_MAX_MIB}").holds
