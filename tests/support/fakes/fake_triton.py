"""Answers that a real Triton server cannot be made to give: wrong numbers, wrong shapes, another graph's vectors.

It speaks KServe's gRPC protocol for one model and is right unless told otherwise: the sentence vector of a text depends
on its token ids alone. Everything that the real server can do is tested with the real one.
"""

import asyncio
from collections.abc import Callable  # noqa: TC003 - one way of importing types, everywhere
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import numpy as np
from google.protobuf import text_format
from grpc import aio
from numpy.typing import NDArray
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

Tensors = dict[str, NDArray[Any]]


@cache
def _weights(dims: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((40_000, dims), np.float32)


_DATATYPES = {"float32": "FP32", "int64": "INT64", "float64": "FP64", "float16": "FP16"}


class FakeTriton(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """`async with FakeTriton(model_directory) as triton: triton.url`.

    Attributes:
        url: HOST:PORT.
        config: What ModelConfig answers with; may be changed.
        change: Applied to the outputs of every inference before they are sent.
        error: What every inference fails with, as (code, details); None: it does not.
        errors: What the next inferences fail with, one each.
        gate: Inferences wait for it.
        requests: Inputs of all inferences so far.
        asked: Outputs that each of those that were answered was asked for.
        deadlines_s: Time that each of them was given.
        queue_timeouts_us: What each of them allowed the queue.
        cancelled: Inferences that were cancelled while they waited.
        loads: "load" and "unload" calls in order.
        state: What the index says of the model.
        computed: Inferences that the statistics count as successes; a load sets it to 0.
        tokens: What each inference was authorized with.

    Args:
        directory: Of the model.
        credentials: For TLS.
    """

    def __init__(self, directory: Path, credentials: grpc.ServerCredentials | None = None) -> None:
        self._credentials = credentials
        self.tokens: list[str] = []
        self.config = text_format.Parse((directory / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
        self.change: Callable[[Tensors], Tensors] = lambda outputs: outputs
        self.error: tuple[grpc.StatusCode, str] | None = None
        self.errors: list[tuple[grpc.StatusCode, str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.requests: list[Tensors] = []
        self.asked: list[list[str]] = []
        self.deadlines_s: list[float] = []
        self.queue_timeouts_us: list[int] = []
        self.cancelled = 0
        self.loads: list[str] = []
        self.state = "READY"
        self.computed = 0
        self.url = ""
        self._server = aio.server()

    async def __aenter__(self) -> Self:
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(self, self._server)
        if self._credentials is None:
            port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            port = self._server.add_secure_port("127.0.0.1:0", self._credentials)
        self.url = f"127.0.0.1:{port}"
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        await self._server.stop(None)

    async def ModelConfig(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        if request.name != self.config.name:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"Request for unknown model: '{request.name}' is not found")
        return service_pb2.ModelConfigResponse(config=self.config)

    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        del request, context
        self.loads.append("load")
        self.computed = 0
        return service_pb2.RepositoryModelLoadResponse()

    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        del request, context
        self.loads.append("unload")
        return service_pb2.RepositoryModelUnloadResponse()

    async def RepositoryIndex(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        del request, context
        reply = service_pb2.RepositoryIndexResponse()
        reply.models.add(name=self.config.name, version="1", state=self.state)
        return reply

    async def ModelStatistics(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        del context
        reply = service_pb2.ModelStatisticsResponse()
        reply.model_stats.add(name=request.name, version="1").inference_stats.success.count = self.computed
        return reply

    async def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        tensors = {
            each.name: np.frombuffer(raw, np.int64).reshape(list(each.shape))
            for each, raw in zip(request.inputs, request.raw_input_contents, strict=True)
        }
        self.requests.append(tensors)
        self.tokens.append(dict(context.invocation_metadata()).get("authorization", ""))
        self.deadlines_s.append(context.time_remaining())
        self.queue_timeouts_us.append(request.parameters["timeout"].int64_param)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        error = self.errors.pop() if self.errors else self.error
        if error is not None:
            await context.abort(*error)
        self.asked.append([each.name for each in request.outputs])
        outputs = self.change(self._answer(tensors, [each.name for each in request.outputs]))
        self.computed += 1
        reply = service_pb2.ModelInferResponse(model_name=request.model_name, model_version="1")
        for name, value in outputs.items():
            reply.outputs.add(name=name, datatype=_DATATYPES[value.dtype.name], shape=value.shape)
            reply.raw_output_contents.append(value.tobytes())
        return reply

    def _answer(self, tensors: Tensors, wanted: list[str]) -> Tensors:
        ids, mask = tensors["input_ids"], tensors["attention_mask"]
        dims = {output.name: output.dims[-1] for output in self.config.output}
        tokens = _weights(dims["sentence_embedding"])[ids]
        sums = (tokens * mask[:, :, None].astype(np.float32)).sum(axis=1)
        outputs: Tensors = {
            "sentence_embedding": sums / np.linalg.norm(sums, axis=1, keepdims=True),
            **{output.name: tokens for output in self.config.output if output.name.startswith("token_embeddings")},
            "model_fingerprint": np.full(
                (len(ids), 1), int(self.config.parameters["gradewire.fingerprint"].string_value), np.int64
            ),
        }
        return {name: outputs[name] for name in wanted}
