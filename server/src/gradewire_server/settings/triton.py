"""Encoders in an NVIDIA Triton server."""

from dataclasses import field
from typing import Annotated, Final

from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.types import Count, CountOrAuto, OptionalPath, PositiveSeconds, Secret

_PORTS: Final = 65_536


@dataclass(frozen=True, slots=True, config=GROUP)
class TritonConfig:
    """Where Triton is and how it is asked."""

    url: Annotated[str, Setting("triton_url", "HOST:PORT of Triton's gRPC.")] = "127.0.0.1:8001"
    tls: Annotated[bool, Setting("triton_tls", "Speak TLS with Triton.")] = False
    tls_ca: Annotated[
        OptionalPath,
        Setting("triton_tls_ca", "PEM authority that Triton's certificate must come from; unset: the usual ones."),
    ] = None
    tls_cert: Annotated[OptionalPath, Setting("triton_tls_cert", "PEM certificate chain shown to Triton.")] = None
    tls_key: Annotated[OptionalPath, Setting("triton_tls_key", "PEM private key of triton_tls_cert.")] = None
    token: Annotated[Secret, Setting("triton_token", "Bearer token sent to Triton, for a proxy before it.")] = field(
        default="", repr=False
    )
    timeout_s: Annotated[PositiveSeconds, Setting("triton_timeout_s", "Longest wait for one inference in Triton.")] = (
        30.0
    )
    max_in_flight: Annotated[
        CountOrAuto,
        Setting(
            "triton_max_in_flight",
            "Inferences of a model in flight to Triton; 0: one more than its instances.",
        ),
    ] = 0
    max_run_tokens: Annotated[Count, Setting("triton_max_run_tokens", "Tokens of one inference in Triton.")] = 256
    poll_s: Annotated[PositiveSeconds, Setting("triton_poll_s", "Time between checks of what Triton serves.")] = 1.0
    repair: Annotated[
        bool, Setting("triton_repair", "Have Triton load a model that it lacks, and reload one that fails.")
    ] = True

    def __post_init__(self) -> None:
        host, _, port = self.url.rpartition(":")
        usable = port.isascii() and port.isdigit() and 0 < int(port) < _PORTS
        if not host or not usable or "/" in self.url or any(letter.isspace() for letter in self.url):
            raise ValueError("triton_url must be HOST:PORT, of Triton's gRPC (8001 where nothing else is said)")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("triton_tls_cert and triton_tls_key go together: set both or neither")
        if not self.tls and (self.tls_ca or self.tls_cert):
            raise ValueError("triton_tls_ca, triton_tls_cert and triton_tls_key need triton_tls")
