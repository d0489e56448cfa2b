"""Calls with and without a token, over a real socket."""

import pytest
from tests.support.servers.wire import wire_server

from gradewire_proto.v1 import models_pb2


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (None, "UNAUTHENTICATED"),
        ("Bearer wrong", "UNAUTHENTICATED"),
        ("Bearer ", "UNAUTHENTICATED"),
        ("Basic second", "UNAUTHENTICATED"),
        ("second", "UNAUTHENTICATED"),
        ("Bearer second-and-more", "UNAUTHENTICATED"),
        ("Bearer first", "OK"),
        ("bearer second", "OK"),
    ],
)
async def test_tokens(authorization: str | None, code: str) -> None:
    async with wire_server(tokens=("first", "second")) as wire:
        metadata = [] if authorization is None else [("authorization", authorization)]
        call = wire.models.List(models_pb2.ListModelsRequest(), metadata=metadata)
        assert (await call.code()).name == code
        assert await wire.health("") == "SERVING", "probes carry no token"
