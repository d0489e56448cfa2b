"""Errors that a user meets: one sentence, short tracebacks, and gRPC's error only where the server has a defect."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.small_server import Fault, SmallServer

from gradewire import AsyncClient, Client, GradewireError, InvalidRequest, Scorer, ServerFault, ServerUnreachable, Tls
from gradewire.errors import needed_by

ROWS = [{"references": ["cat"], "prediction": "cat"}]
NOBODY = "127.0.0.1:1"
CHAINS = ("direct cause of the following", "During handling of the above")
Call = Callable[[Client], object]


def printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def with_client(address: str, call: Call, **settings: Any) -> None:
    with Client(address, deadline_s=0.5, **settings) as client:
        call(client)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.score(ROWS, "smile"),
        lambda client: list(client.score_stream(ROWS, "smile", deadline_s=0.5)),
        lambda client: client.score(ROWS, "smyle"),
        lambda client: client.score(ROWS, "smile?weight=1"),
        lambda client: client.score(ROWS, "smile?sentence_weight=heavy"),
        lambda client: client.score(ROWS, "smile", preset="quick"),
        lambda client: client.score(ROWS, "smile", deadline_s=-1),
        lambda client: client.score(3, "smile"),
    ],
)
def test_a_user_s_mistake_and_a_missing_server_have_short_tracebacks(call: Call) -> None:
    with pytest.raises(GradewireError) as caught:
        with_client(NOBODY, call)
    text = printed(caught.value)
    assert not any(chain in text for chain in CHAINS)
    assert "AioRpcError" not in text
    assert len(text.splitlines()) < 30
    assert len(str(caught.value).splitlines()) == 1
    assert "in call" not in text
    assert __file__ in text, "the caller's line is shown"


async def test_an_async_client_shows_no_chain_either() -> None:
    async with AsyncClient(NOBODY, deadline_s=0.3) as client:
        with pytest.raises(ServerUnreachable) as caught:
            await client.score(ROWS, "smile")
    assert not any(chain in printed(caught.value) for chain in CHAINS)


def test_a_refusal_of_the_server_has_no_chain(small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.INVALID_ARGUMENT, "metrics[0]: is wrong")]
    with pytest.raises(InvalidRequest, match=r"metrics\[0\]: is wrong") as caught:
        with_client(small_server.address, lambda client: client.score(ROWS, "smile"))
    assert not any(chain in printed(caught.value) for chain in CHAINS)
    assert isinstance(caught.value.__context__, grpc.RpcError), "a debugger still finds it"


def test_a_defect_of_the_server_keeps_its_cause(small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.INTERNAL, "boom")]
    with pytest.raises(ServerFault) as caught:
        with_client(small_server.address, lambda client: client.score(ROWS, "smile"))
    assert isinstance(caught.value.__cause__, grpc.RpcError)
    assert "boom" in printed(caught.value)
    assert CHAINS[0] in printed(caught.value)


@pytest.mark.parametrize("settings", [{"nonsense": 1}, {"workers": "many"}])
def test_a_wrong_setting_of_the_engine_has_no_chain(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Scorer.embedded(**settings)
    assert not any(chain in printed(caught.value) for chain in CHAINS)


def test_contents_of_a_file_are_no_path_of_tls() -> None:
    with pytest.raises(InvalidRequest, match="private_key is a bytes: give the path of a PEM file"):
        Tls(private_key=b"-----BEGIN")  # type: ignore[arg-type]


def test_a_missing_file_of_tls_has_no_chain(tmp_path: Path) -> None:
    tls = Tls(root_certificates=tmp_path / "nowhere.pem")
    with pytest.raises(InvalidRequest, match=r"nowhere\.pem cannot be read") as caught:
        with_client(NOBODY, lambda client: client.score(ROWS, "smile"), tls=tls)
    assert not any(chain in printed(caught.value) for chain in CHAINS)


def test_only_a_package_that_is_broken_shows_why() -> None:
    def of(error: ImportError) -> str:
        with pytest.raises(ImportError) as caught, needed_by("a page", "gradewire[agree]"):
            raise error
        return printed(caught.value)

    missing = of(ModuleNotFoundError("No module named 'jinja2'", name="jinja2"))
    assert not any(chain in missing for chain in CHAINS)
    assert CHAINS[0] in of(ImportError("undefined symbol", name="torch"))
