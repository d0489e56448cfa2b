"""Whatever a Triton server streams to a judge, the item has a status that says what to do."""

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import grpc
import pytest
from grpc import aio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.remote.remote_judges import Counted, choose, generate
from tests.support.examples import example_count
from tritonclient.grpc import service_pb2, service_pb2_grpc

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Generated
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.remote.judge import RemoteJudge
from gradewire_server.judges.remote.triton import FLAGS, TritonServer
from gradewire_server.judges.wrappers import CheckedJudge
from gradewire_server.settings.engine import TritonConfig
from gradewire_server.settings.judge import RemoteJudgeConfig
from gradewire_server.triton import TritonClient


class Output(NamedTuple):
    """A tensor as it is sent; nothing says that its parts fit together."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    raw: bytes | None


class Streamed(NamedTuple):
    """The replies in one stream, each with outputs and an error's words, and the status at its end."""

    replies: list[tuple[list[Output], str]]
    end: grpc.StatusCode | None = None


class Streams(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """Streams the same replies to each request."""

    def __init__(self) -> None:
        self.streamed = Streamed([])

    async def ModelReady(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        del request, context
        return service_pb2.ModelReadyResponse(ready=True)

    async def ModelStreamInfer(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - the protocol's name
        async for _ in requests:
            for outputs, words in self.streamed.replies:
                reply = service_pb2.ModelStreamInferResponse(error_message=words)
                for output in outputs:
                    reply.infer_response.outputs.add(name=output.name, datatype=output.datatype, shape=output.shape)
                    if output.raw is not None:
                        reply.infer_response.raw_output_contents.append(output.raw)
                yield reply
        if self.streamed.end is not None:
            await context.abort(self.streamed.end, "told to")


def packed(*texts: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def text(name: str, value: bytes) -> Output:
    return Output(name, "BYTES", (1,), packed(value))


def number(name: str, value: int) -> Output:
    return Output(name, "UINT32", (1,), struct.pack("<I", value))


GOOD = [text("text_output", b" 2"), number("num_input_tokens", 5), text("finish_reason", b"stop")]
RANKED = b'[{"17": {"logprob": -0.1, "rank": 1, "decoded_token": " 2"}}]'


async def judged(streamed: Streamed) -> list[Choice | Generated | Failure]:
    streams, server = Streams(), aio.server()
    streams.streamed = streamed
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(streams, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    answers: list[Choice | Generated | Failure] = []
    for need in (choose(), generate()):
        backend = TritonServer(TritonClient(TritonConfig(f"127.0.0.1:{port}")), "m", f"127.0.0.1:{port}")
        backend._inputs = frozenset({"text_input", "sampling_parameters", *FLAGS})
        config = RemoteJudgeConfig(f"127.0.0.1:{port}", "m", attempts=1)
        judge = CheckedJudge(RemoteJudge(ModelStatus("m", "", "loaded"), backend, config, Counted()))
        answers.append((await judge.answer(need)).answer)
        await judge.close()
    await server.stop(None)
    return answers


NAMES = st.sampled_from(
    ["text_output", "logprobs", "finish_reason", "num_input_tokens", "num_output_tokens", "cumulative_logprob"]
)
TYPES = st.sampled_from(["BYTES", "BYTES", "UINT32", "INT64", "FP32", "BOOL", "BF16", "", "NONSENSE"])
SHAPES = st.lists(st.integers(-2, 3), max_size=3).map(tuple)
RAW = (
    st.none() | st.binary(max_size=16) | st.binary(max_size=8).map(packed) | st.just(packed(RANKED)) | st.just(packed())
)
OUTPUTS = st.builds(Output, NAMES, TYPES, SHAPES, RAW) | st.builds(
    text, NAMES, st.sampled_from([b" 2", RANKED, b"\xff"])
)
WORDS = st.sampled_from(["", "", "", "unknown model", "prompt is too long", "timeout expired", "\x00 odd"])
REPLIES = st.lists(st.tuples(st.lists(OUTPUTS, max_size=4), WORDS), max_size=3)
ENDS = st.none() | st.none() | st.sampled_from([code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])


@given(st.builds(Streamed, REPLIES, ENDS))
@settings(max_examples=example_count(120), deadline=None)
def test_no_stream_ends_as_a_defect(streamed: Streamed) -> None:
    for answer in asyncio.run(judged(streamed)):
        assert isinstance(answer, (Choice, Generated, Failure))
        if isinstance(answer, Failure):
            assert answer.status not in {Status.INTERNAL, Status.TIMEOUT}, answer
            assert answer.message.encode().strip()


def test_the_streams_of_these_tests_can_be_read() -> None:
    first, second = asyncio.run(judged(Streamed([([*GOOD, text("logprobs", RANKED)], "")])))
    assert isinstance(first, Choice)
    assert first.probabilities == (0, 1, 0)
    assert isinstance(second, Generated)
    assert second.text == "2"


NO_TENSORS = "'s tensors"


@pytest.mark.parametrize(
    ("streamed", "status", "words"),
    [
        (Streamed([]), Status.UNPARSABLE, "nothing"),
        (Streamed([([], "")]), Status.UNPARSABLE, NO_TENSORS),
        (Streamed([(GOOD[1:], "")]), Status.UNPARSABLE, NO_TENSORS),
        (Streamed([([Output("text_output", "BYTES", (1,), b"\x09\x00")], "")]), Status.UNPARSABLE, NO_TENSORS),
        (Streamed([([Output("text_output", "BYTES", (1,), b"\xff" * 8)], "")]), Status.UNPARSABLE, NO_TENSORS),
        (Streamed([([Output("text_output", "BYTES", (7,), packed(b"2"))], "")]), Status.UNPARSABLE, NO_TENSORS),
        (Streamed([([Output("text_output", "NONSENSE", (1,), b"odd")], "")]), Status.UNPARSABLE, NO_TENSORS),
        (Streamed([([Output("text_output", "BYTES", (0,), None)], "")]), Status.UNPARSABLE, NO_TENSORS),
        (Streamed([([*GOOD, text("logprobs", b"[")], "")]), Status.UNPARSABLE, NO_TENSORS),
        (
            Streamed([([*GOOD, Output("num_output_tokens", "UINT32", (1,), b"\x01")], "")]),
            Status.UNPARSABLE,
            NO_TENSORS,
        ),
        (Streamed([([], "prompt is too long")]), Status.INVALID_INPUT, "too long"),
        (Streamed([([], "failed to load model 'm' ")]), Status.UNAVAILABLE, "failed"),
        (Streamed([([], "request timeout expired")]), Status.UNAVAILABLE, "no more requests"),
        (Streamed([], grpc.StatusCode.RESOURCE_EXHAUSTED), Status.UNAVAILABLE, "no more requests"),
        (Streamed([], grpc.StatusCode.UNAUTHENTICATED), Status.MODEL_UNAVAILABLE, "judge_token"),
        (Streamed([], grpc.StatusCode.INVALID_ARGUMENT), Status.UNPARSABLE, "rejects a request"),
        (Streamed([], grpc.StatusCode.NOT_FOUND), Status.UNAVAILABLE, "not ready"),
        (Streamed([], grpc.StatusCode.DEADLINE_EXCEEDED), Status.UNAVAILABLE, "judge_timeout_s"),
        (Streamed([], grpc.StatusCode.INTERNAL), Status.UNAVAILABLE, "failed"),
        (Streamed([], grpc.StatusCode.DATA_LOSS), Status.UNAVAILABLE, "failed"),
    ],
)
async def test_a_bad_stream_is_its_status(streamed: Streamed, status: Status, words: str) -> None:
    for failure in await judged(streamed):
        assert isinstance(failure, Failure)
        assert (failure.status, words in failure.message) == (status, True), failure
