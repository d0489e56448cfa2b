"""Encryption and tokens, with a real server."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.server_process import ServerProcess

import gradewire
from gradewire import Client, Tls

RIGHT = {"references": ["a"], "prediction": "a"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificate")
    command = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-subj", "/CN=grader", "-addext", "subjectAltName=DNS:grader"),
        *("-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, certificate: Path, minilm: Path) -> Iterator[ServerProcess]:
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    settings = {"tls_cert": cert, "tls_key": key, "tls_client_ca": cert, "auth_tokens": "right"}
    with ServerProcess(tmp_path_factory.mktemp("guarded"), model_repository=minilm, **settings) as process:
        yield process


def test_known_clients_with_the_right_token_are_served(guarded: ServerProcess, certificate: Path) -> None:
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    tls = Tls(root_certificates=cert, certificate_chain=cert, private_key=key, server_name="grader")
    with Client(guarded.address, tls=tls, token="right") as client:  # noqa: S106 - the test's own
        assert client.score([RIGHT], "exact_match")[0].scores["exact_match"].score == 1.0
        assert len(list(client.score_stream([RIGHT], "exact_match"))) == 1
        assert client.models().server_version
    for token in (None, "wrong"):
        with (
            Client(guarded.address, tls=tls, token=token) as client,
            pytest.raises(gradewire.AccessDenied, match="token"),
        ):
            client.score([RIGHT], "exact_match")


def test_others_get_no_connection(guarded: ServerProcess, certificate: Path) -> None:
    anonymous = Tls(root_certificates=certificate / "cert.pem", server_name="grader")
    stranger = Tls(root_certificates=certificate / "cert.pem", server_name="somebody")
    for tls in (None, anonymous, stranger):
        client = Client(guarded.address, tls=tls, token="right", deadline_s=2)  # noqa: S106 - the test's own
        with client, pytest.raises(gradewire.ServerUnreachable):
            client.score([RIGHT], "exact_match")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"
    client = Client("127.0.0.1:1", tls=Tls(root_certificates=missing))
    with client, pytest.raises(gradewire.InvalidRequest, match=r"none\.pem cannot be read"):
        client.score([RIGHT])
