"""The client on the caller's own event loop; the core that `Client` drives as well."""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from gradewire._batch import Batch, ProgressCallback, ScoreCall
from gradewire._chunks import Deadline
from gradewire.errors import ClientClosed, InvalidRequest
from gradewire.items import ItemLike
from gradewire.metric_choice import MetricChoice, MetricDefaults, MetricsLike, choose_metrics
from gradewire.metric_types import Preset, Synthetic
from gradewire.model_list import Limits, ModelList, decode_model_list
from gradewire.score_report import ScoreReport
from gradewire.tls import Tls
from gradewire.transport import Transport

DEADLINE_S = 30.0


class AsyncClient:
    """Scores answers on a gradewire server; `async with` closes it.

    Args:
        address: HOST:PORT of the server.
        deadline_s: For calls that do not say their own, seconds.
        token: Sent as bearer token.
        tls: Encrypts; None talks in clear.
        transport: Takes the place of the connection to `address`: `gradewire.testing.StubTransport` in tests.
    """

    def __init__(
        self,
        address: str = "127.0.0.1:50051",
        *,
        deadline_s: float = DEADLINE_S,
        token: str | None = None,
        tls: Tls | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._transport = transport or connect(address, token=token, tls=tls)
        self._deadline_s = check_deadline(deadline_s)
        self._limits: Limits | None = None
        self._closed = False

    async def score(  # noqa: PLR0913 - the one call that most users make; all but two arguments are optional and named
        self,
        items: Iterable[ItemLike],
        metrics: MetricsLike = "smile",
        *,
        preset: Preset | None = None,
        synthetic: Synthetic | None = None,
        model: str | None = None,
        reference_set: str | None = None,
        deadline_s: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> ScoreReport:
        """Scores items, in order.

        Long lists are cut into requests, of which a few are in flight. An item that cannot be sent (wrong types, lone
        surrogates, too large) becomes INVALID_INPUT and the rest is scored. When some requests are answered and others
        fail for want of a server or of time, the items of the others are UNAVAILABLE or TIMEOUT.

        Args:
            items: Mappings with the keys of `Item`, or `Item`s.
            metrics: `"smile,sbert"`, `"smile:fast"`, metric lines, typed metrics, or a sequence of these.
            preset: For smile where `metrics` names none.
            synthetic: none, inline or prepared; for smile where `metrics` does not say.
            model: NAME or NAME@DIGEST for metrics that do not say their own.
            reference_set: With synthetic = prepared: what `prepare` returned.
            deadline_s: For the whole call, seconds; None: the client's.
            progress: Called with (items done, items in all) from the client's thread; an exception ends the call.

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: No request was answered; which one says why.
        """
        call = ScoreCall(
            self._choose(metrics, MetricDefaults(preset, synthetic, model)),
            reference_set or "",
            self._deadline(deadline_s),
            progress,
        )
        return await Batch(self._transport, call, list(items)).run(self._known_limits)

    async def models(self, *, deadline_s: float | None = None) -> ModelList:
        """Models, metrics and limits of the server."""
        self._check_open()
        reply = await self._transport.list_models(timeout_s=self._deadline(deadline_s).remaining_s())
        listed = decode_model_list(reply)
        self._limits = listed.limits
        return listed

    async def close(self) -> None:
        """Closes the connection; closing twice is fine."""
        if not self._closed:
            self._closed = True
            await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("this client was closed: make a new one")

    def _choose(self, metrics: MetricsLike, defaults: MetricDefaults) -> MetricChoice:
        self._check_open()
        return choose_metrics(metrics, defaults)

    def _deadline(self, deadline_s: float | None) -> Deadline:
        return Deadline(self._deadline_s if deadline_s is None else check_deadline(deadline_s))

    async def _known_limits(self) -> Limits:
        return self._limits if self._limits is not None else (await self.models()).limits


def check_deadline(deadline_s: float) -> float:
    """The deadline, if it is one.

    Raises:
        InvalidRequest: It is not positive, or not finite.
    """
    if not 0 < deadline_s < float("inf"):
        raise InvalidRequest(f"deadline_s={deadline_s!r}: give seconds, more than 0 and finite")
    return float(deadline_s)


def connect(address: str, *, token: str | None, tls: Tls | None) -> Transport:
    """The transport over gRPC, which is imported here so that `import gradewire` stays fast."""
    from gradewire.grpc_transport import GrpcTransport  # noqa: PLC0415 - as the docstring says

    return GrpcTransport(address, token=token, tls=tls)
