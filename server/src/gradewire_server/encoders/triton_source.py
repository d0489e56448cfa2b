"""A source of models that run in NVIDIA Triton."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.bf16 import BF16_CLASS
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import ModelBrokenError, ModelError
from gradewire_models.repository.built import BuiltModel, list_built, load_built
from gradewire_models.repository.config import CONFIG_FILE, ServedModel, served_from_file
from gradewire_models.repository.grader_input import MAX_PIECES
from gradewire_server.domain.items import Failure, Status
from gradewire_server.encoders.batcher import DeadlinePassedError, RunError
from gradewire_server.encoders.dispatcher import AsyncDispatcher, DispatchLimits, RemoteRuns
from gradewire_server.encoders.encoder import (
    Encoded,
    Encoder,
    RunOutput,
    RunReader,
    open_tokenizer,
    run_reader,
    token_ids,
    warm_up_ids,
)
from gradewire_server.encoders.library import ModelSource, NotNowError, UnusableError
from gradewire_server.encoders.pending import PendingText
from gradewire_server.encoders.prometheus import EncoderTelemetry, ModelTelemetry, TritonTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.encoders.triton_model import TritonModel
from gradewire_server.settings.engine import ComputeConfig, TritonConfig
from gradewire_server.storage.codec import ModelSpaces
from gradewire_server.triton import Fault, TritonClient, TritonError

_REMEDY: Final = "Use the same model repository for the server and Triton, and load the model again in Triton"
_DEADLINE_SLACK_S: Final = 0.05
"""Seconds before the callers' deadline. If an inference times out in these seconds, the deadline is the cause."""
_OUT_OF_TIME: Final = frozenset({Fault.LATE, Fault.QUEUE_TIMEOUT})
_REPLACING_S: Final = 0.2
_RUN_OVERHEAD_TOKENS: Final = 24
_MOST_PROBES: Final = 8
_PROBE_STEP_TOKENS: Final = 8


def check_arithmetic(model: BuiltModel) -> None:
    """Check that Triton can compute a model's vectors.

    Raises:
        UnusableError: The model needs bf16, but Triton would compute in fp32.
    """
    if model.numeric_class == BF16_CLASS:
        raise UnusableError(
            f"model {model.name!r} needs bf16, which Triton does not support. Serve this model with --backend "
            f"embedded, or use {model.base}"
        )


def check_catalog(model: BuiltModel) -> None:
    """Compare a model's digest with the digest in the catalog, if the catalog lists the model.

    Raises:
        NotNowError: The digests differ.
    """
    known = load_catalog().get(model.name)
    if known is not None and known.digest and known.digest != model.digest:
        raise _wrong(
            model,
            f"has the digest {model.digest} in the model repository, but {known.digest} in the catalog. "
            f"Build the catalog's model with: {known.build_hint}",
        )


def check_served(model: BuiltModel, served: ServedModel) -> None:
    """Compare Triton's description of a model with the local description.

    Raises:
        NotNowError: The digest, fingerprint, tensors, batch size, accelerators or device differ.
    """
    here = served_from_file(model.directory / CONFIG_FILE)
    for what, there, expected in (
        ("has the digest", served.facts.get("digest", "none"), model.digest),
        ("has the fingerprint", served.facts.get("fingerprint", "none"), str(model.fingerprint)),
        *(
            (f"has as {name}", served.tensors.get(name, "nothing"), here.tensors.get(name, "nothing"))
            for name in dict.fromkeys([*here.tensors, *served.tensors])
        ),
        ("takes batches of", served.max_batch_size, here.max_batch_size),
        ("has the accelerators", served.accelerators or "none", here.accelerators or "none"),
    ):
        if there != expected:
            raise _wrong(model, f"{what} {there} in Triton, but {expected} in the model repository. {_REMEDY}")
    # The digest does not cover the device. On a GPU, a graph for CPUs returns different vectors. A running server never
    # reports KIND_AUTO.
    kind = "KIND_CPU" if model.on_cpu else "KIND_GPU"
    if served.kinds != {kind}:
        found = " and ".join(sorted(served.kinds)) or "no device"
        raise _wrong(
            model,
            f"runs on {found} in Triton, but its class {model.numeric_class} requires {kind}. Run gradewire models "
            f"build {model.name} to correct config.pbtxt, and load the model again in Triton",
        )


def _wrong(model: BuiltModel, what: str) -> NotNowError:
    return NotNowError(model, Failure(Status.MODEL_UNAVAILABLE, f"model {model.name!r} {what}"))


class TritonRuns(RemoteRuns[PendingText, Encoded]):
    """An encoder's runs in Triton."""

    def __init__(self, reader: RunReader, model: TritonModel, telemetry: TritonTelemetry, *, timeout_s: float) -> None:
        self._reader = reader
        self._model = model
        self._timeout_s = timeout_s
        self._resending = 0
        self._in_flight = telemetry.in_flight.labels(model.description.name)

    @override
    def refusal(self) -> RunError | None:
        error = self._model.last_error
        return None if self._model.breaker.closed or error is None else RunError(error.meaning.failure)

    @override
    async def run(self, jobs: Sequence[PendingText], /, *, deadline_s: float) -> list[Encoded]:
        started_s = time.perf_counter()
        model = self._model
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        layers = self._reader.layers_for(jobs)
        sent_s = time.monotonic()
        self._in_flight.inc()
        try:
            output = await self._infer(jobs, layers, deadline_s=deadline_s)
        except TritonError as error:
            if error.kind in _OUT_OF_TIME and time.monotonic() > deadline_s - _DEADLINE_SLACK_S:
                model.overdue(sent_s)
                raise DeadlinePassedError from error
            model.note(error)
            raise RunError(error.meaning.failure) from error
        finally:
            self._in_flight.dec()
        model.computed()
        if layers:
            return await asyncio.to_thread(self._reader.read, jobs, output, started_s)
        return self._reader.read(jobs, output, started_s)

    async def _infer(self, jobs: Sequence[PendingText], layers: Sequence[int], *, deadline_s: float) -> RunOutput:
        """Send a run, and send it again after a failure, because perhaps only one of several instances is dead."""
        model = self._model
        sent_s = time.monotonic()
        try:
            return await self._send(jobs, layers, deadline_s=deadline_s)
        except TritonError as error:
            # While a different failed run is being resent, resend this run only if a run has succeeded since `sent_s`.
            hopeless = self._resending and not model.computed_since(sent_s)
            if error.kind is not Fault.FAILED or not model.breaker.closed or hopeless:
                raise
            model.note(error, again=True)
        self._resending += 1
        try:
            output = await self._send(jobs, layers, deadline_s=deadline_s)
        finally:
            self._resending -= 1
        model.flawed()
        return output

    async def _send(self, jobs: Sequence[PendingText], layers: Sequence[int], *, deadline_s: float) -> RunOutput:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise DeadlinePassedError
        return await self._model.infer(token_ids(jobs), layers=layers, timeout_s=min(left_s, self._timeout_s))


class ModelWatcher(Protocol):
    """A supervisor for models."""

    def watch(self, name: str) -> None:
        """Supervise a requested model."""

    def wake(self, name: str) -> None:
        """Check a model now."""

    def flawed(self, name: str) -> None:
        """Record a failure that no text can have caused."""


class TritonSource(ModelSource):
    """A source of models that Triton runs. Call `supervise` first.

    Args:
        repository: Directory with the models' descriptions and tokenizers. Graphs are not needed.

    Attributes:
        opening_errors: Triton's errors by model name, for models that could not be opened at the last attempt.
    """

    def __init__(
        self,
        repository: Path,
        compute: ComputeConfig,
        config: TritonConfig,
        telemetry: EncoderTelemetry,
        triton_telemetry: TritonTelemetry,
    ) -> None:
        self._repository = repository
        self._compute = compute
        self._config = config
        self._telemetry = telemetry
        self._triton_telemetry = triton_telemetry
        self._supervisor: ModelWatcher | None = None
        self.client = TritonClient(config)
        self.opened: dict[str, TritonModel] = {}
        self.opening_errors: dict[str, TritonError] = {}

    def supervise(self, supervisor: ModelWatcher) -> None:
        """Set the supervisor. Call this before you open a model."""
        self._supervisor = supervisor

    @override
    def listed(self) -> Sequence[BuiltModel]:
        return list_built(self._repository, graphs=False)

    @override
    def describe(self, name: str) -> BuiltModel:
        return load_built(self._repository, name, graph=False)

    @override
    async def open(self, name: str, *, namespace: str) -> Encoder:
        watcher = self._supervisor
        if watcher is None:
            raise ValueError("no supervisor is set. Call supervise() first")
        try:
            model, tokenizer = await asyncio.to_thread(self._read, name)
        except ModelBrokenError:
            watcher.watch(name)  # to notice a manual repair
            raise
        watcher.watch(name)
        check_arithmetic(model)
        check_catalog(model)
        warm_up = warm_up_ids(model, tokenizer)
        self.opening_errors.pop(name, None)
        try:
            served = await self.client.served(name)
            check_served(model, served)
            parallel = max(1, served.instances)
            runner = TritonModel(
                self.client,
                model,
                probes=_probes(warm_up[0], model.max_tokens, min(parallel + 1, _MOST_PROBES)),
                telemetry=self._triton_telemetry,
                doubted=lambda: watcher.wake(name),
                flawed=lambda: watcher.flawed(name),
            )
            for ids in warm_up:
                await runner.infer([ids], layers=model.token_layers)
        except TritonError as error:
            self.opening_errors[name] = error
            if error.kind is Fault.REPLACED:
                raise _wrong(model, f"in Triton does not match its description: {error}. {_REMEDY}") from error
            raise NotNowError(model, error.meaning.failure) from error
        self.opened[name] = runner
        most_rows = MAX_PIECES if model.kind == "grader" else 1  # maximum number of rows for one text
        limits = DispatchLimits(
            max_in_flight=self._config.max_in_flight or parallel + 1,
            parallel_runs=parallel,
            max_run_tokens=self._config.max_run_tokens,
            max_run_texts=min(self._compute.max_batch_texts, served.max_batch_size // most_rows),
            run_overhead_tokens=_RUN_OVERHEAD_TOKENS,
            max_queue_tokens=self._compute.max_queue_tokens,
        )
        telemetry = ModelTelemetry(self._telemetry, model.name)
        reader = run_reader(model, tokenizer, telemetry)
        runs = TritonRuns(reader, runner, self._triton_telemetry, timeout_s=self._config.timeout_s)
        spaces = ModelSpaces.of_model(namespace, model)
        return Encoder(model, tokenizer, spaces, AsyncDispatcher(runs, limits), telemetry)

    @override
    def trouble(self, name: str) -> str:
        model = self.opened.get(name)
        return "" if model is None else model.trouble

    @override
    async def close(self) -> None:
        await self.client.close()

    def _read(self, name: str) -> tuple[BuiltModel, TextTokenizer]:
        try:
            model = self.describe(name)
        except ModelError:
            # A build may be replacing the model now.
            time.sleep(_REPLACING_S)
            model = self.describe(name)
        return model, open_tokenizer(model)


def _probes(ids: NDArray[np.int32], max_tokens: int, count: int) -> list[NDArray[np.int32]]:
    """Return variants of a short text, with different padded lengths up to `max_tokens`."""
    return [
        np.concatenate([ids[:-1], np.repeat(ids[1], _PROBE_STEP_TOKENS * number), ids[-1:]])[:max_tokens]
        for number in range(count)
    ]
