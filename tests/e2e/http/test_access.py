"""Who may call what is the same over HTTP as over gRPC: every method by every kind of token."""

import time
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from tests.support.servers.server_process import ServerProcess

from gradewire_gateway.problems import CODE_TABLE
from gradewire_gateway.wire import RpcMethod, all_methods

from .conftest import TOKENS

AUTHORIZATIONS = {
    "none": None,
    "wrong": "Bearer wrong",
    "another scheme": "Basic right",
    "expired": "Bearer expired",
    "not good for scoring": "Bearer narrow",
    "right": "Bearer right",
}


@pytest.fixture(scope="module")
def server(http_server: ServerProcess) -> ServerProcess:
    """One that had a further token until a moment ago."""
    path = Path(str(http_server.settings["auth_tokens_file"]))
    path.write_text(f'{TOKENS}[late]\ntoken = "expired"\n')
    wait_until(http_server, "Bearer expired", 200)
    path.write_text(TOKENS)
    wait_until(http_server, "Bearer expired", 401)
    return http_server


def wait_until(server: ServerProcess, authorization: str, status: int) -> None:
    give_up_s = time.monotonic() + 30
    while time.monotonic() < give_up_s:
        headers = {"authorization": authorization}
        reply = httpx2.post(f"{server.api}/gradewire.v1.Models/List", json={}, headers=headers, trust_env=False)
        if reply.status_code == status:
            return
        time.sleep(0.05)
    raise TimeoutError(f"{authorization} never led to {status}")


def by_grpc(server: ServerProcess, method: RpcMethod, authorization: str | None) -> str:
    """The code that an empty request ends with."""
    metadata = [] if authorization is None else [("authorization", authorization)]
    with grpc.insecure_channel(server.address) as channel:
        request = b""
        call: Any
        if method.client_streaming:
            call = channel.stream_stream(method.path)(iter([request]), metadata=metadata, timeout=30)
        elif method.server_streaming:
            call = channel.unary_stream(method.path)(request, metadata=metadata, timeout=30)
        else:
            call = channel.unary_unary(method.path).future(request, metadata=metadata, timeout=30)
        code: grpc.StatusCode = call.code()
        return code.name


@pytest.mark.parametrize("kind", AUTHORIZATIONS)
@pytest.mark.parametrize("method", all_methods(), ids=lambda method: method.path)
def test_both_ways_in_ask_for_the_same(server: ServerProcess, method: RpcMethod, kind: str) -> None:
    authorization = AUTHORIZATIONS[kind]
    kind_of_body = "application/x-ndjson" if method.client_streaming else "application/json"
    headers = {"content-type": kind_of_body} | ({} if authorization is None else {"authorization": authorization})
    reply = httpx2.post(f"{server.api}{method.path}", content=b"{}", headers=headers, trust_env=False, timeout=30)
    code = by_grpc(server, method, authorization)
    if code == "OK":
        assert reply.status_code == 200
    else:
        assert (reply.status_code, reply.json()["code"]) == (CODE_TABLE[grpc.StatusCode[code]].status, code.lower())
    if kind in {"none", "wrong", "another scheme", "expired"}:
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
    elif kind == "right":
        assert reply.status_code not in {401, 403}
