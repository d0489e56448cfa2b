"""Opens channels to a server."""

from collections.abc import Sequence
from pathlib import Path

import grpc
import grpc.aio

from gradewire import errors
from gradewire._transport.endpoint import Endpoint
from gradewire.tls import Tls


def open_channel(endpoint: Endpoint, options: Sequence[tuple[str, str | int]]) -> grpc.aio.Channel:
    """A channel to the endpoint, encrypted as it says; nothing is connected yet. Needs a running event loop.

    Raises:
        InvalidRequest: A file of its `tls` cannot be read.
    """
    if endpoint.tls is None:
        channel = grpc.aio.insecure_channel(endpoint.address, options=options)
    else:
        channel = grpc.aio.secure_channel(
            endpoint.address, _credentials(endpoint.tls), options=(*options, *_overrides(endpoint.tls))
        )
    return channel


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        _read(tls.root_certificates), _read(tls.private_key), _read(tls.certificate_chain)
    )


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise errors.InvalidRequest(f"tls: {path} cannot be read: {error.strerror}") from error


def _overrides(tls: Tls) -> tuple[tuple[str, str], ...]:
    return (("grpc.ssl_target_name_override", tls.server_name),) if tls.server_name else ()
