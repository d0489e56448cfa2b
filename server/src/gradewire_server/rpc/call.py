"""One call, as far as log and metrics care, and the method that it calls."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from gradewire_proto.v1.types_pb2 import CompareParameters, MetricSpec
from gradewire_server.domain.caller import LOCAL, Scope
from gradewire_server.rpc.request_log import CallRecord
from gradewire_server.rpc.telemetry import MethodTelemetry

RequestT = TypeVar("RequestT", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[RequestT]):
    """A method of a service.

    Attributes:
        name: ``gradewire.v1.Scoring/Score``.
        request_type: Message class of its requests.
        scope: What a token must be good for; None: any token will do.
    """

    name: str
    request_type: type[RequestT]
    scope: Scope | None = None


class RpcCall:
    """One call that is being served.

    Attributes:
        record: What the log will say of it.
        telemetry: Of its method.
        deadline_s: Seconds that the caller still waits; None where it has not said.
        waited_s: Seconds that it has waited for its first step, by the loop's last round; None where none was measured.
        caller: Who calls, once that is known.
    """

    __slots__ = ("caller", "deadline_s", "record", "telemetry", "waited_s")

    def __init__(
        self,
        record: CallRecord,
        telemetry: MethodTelemetry,
        deadline_s: float | None,
        waited_s: float | None = None,
    ) -> None:
        self.record = record
        self.telemetry = telemetry
        self.deadline_s = deadline_s
        self.waited_s = waited_s
        self.caller = LOCAL

    def saw_items(self, count: int) -> None:
        """Notes items (or entries) that came in."""
        if count:
            self.record.items += count
            self.telemetry.items.inc(count)

    def saw_metrics(self, specs: Iterable[MetricSpec]) -> None:
        """Notes the metrics asked for, by name."""
        self.record.metrics = [spec.WhichOneof("metric") or "?" for spec in specs]

    def saw_comparison(self) -> None:
        """Notes that pairs are compared, which is the one metric of such a call."""
        self.saw_metrics((MetricSpec(compare=CompareParameters()),))

    def saw_request(self, size_bytes: int) -> None:
        """Notes a message that came in and was let in."""
        self.telemetry.request_message(size_bytes)
        self.telemetry.tenants.sent(self.caller, size_bytes)
        self.record.request_bytes += size_bytes

    def saw_reply(self, size_bytes: int) -> None:
        """Notes a message that goes out."""
        self.telemetry.reply_message(size_bytes)
        self.record.reply_bytes += size_bytes
