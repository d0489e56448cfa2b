"""Encryption and tokens, with a real server."""

import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import wait_until

import gradewire
from gradewire import Client, Tls

RIGHT = {"references": ["a"], "prediction": "a"}


def write_certificate(directory: Path) -> Path:
    """A directory with a certificate that signs itself, and its key."""
    command = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-subj", "/CN=grader", "-addext", "subjectAltName=DNS:grader"),
        *("-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, certificate: Path, minilm: Path) -> Iterator[ServerProcess]:
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    settings = {"tls_cert": cert, "tls_key": key, "tls_client_ca": cert, "auth_tokens": "right", "http_api_port": 0}
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


def test_the_http_api_asks_for_the_same_certificate_and_token(guarded: ServerProcess, certificate: Path) -> None:
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    url = f"https://127.0.0.1:{guarded.api_port}/gradewire.v1.Models/List"
    context = ssl.create_default_context(cafile=cert)
    context.check_hostname = False  # the certificate is for a name
    with pytest.raises(httpx2.TransportError):
        httpx2.post(url, json={}, verify=context, trust_env=False)
    context.load_cert_chain(cert, key)
    assert httpx2.post(url, json={}, verify=context, trust_env=False).status_code == 401
    headers = {"authorization": "Bearer right"}
    reply = httpx2.post(url, json={}, headers=headers, verify=context, trust_env=False)
    assert reply.json()["serverVersion"]
    with pytest.raises(httpx2.TransportError):
        httpx2.post(url.replace("https", "http"), json={}, headers=headers, trust_env=False)


def test_others_get_no_connection_and_are_told_why(guarded: ServerProcess, certificate: Path, tmp_path: Path) -> None:
    root, key = certificate / "cert.pem", certificate / "key.pem"
    strange = write_certificate(tmp_path)
    mine = {"certificate_chain": strange / "cert.pem", "private_key": strange / "key.pem"}
    others = {
        None: r"uses TLS, but this client does not: give tls=gradewire\.Tls\(…\) \(command: --tls-ca FILE\)",
        Tls(root_certificates=root, server_name="grader"): "requires a client certificate: .* --tls-cert and",
        Tls(root_certificates=root, server_name="somebody"): "Hostname Verification|somebody",
        Tls(
            root_certificates=strange / "cert.pem", server_name="grader"
        ): "does not trust the server's certificate.* --tls-ca FILE",
        Tls(server_name="grader"): "this client does not trust the server's certificate",
        Tls(root_certificates=root, server_name="grader", **mine): "rejects this client's certificate",
        Tls(root_certificates=key, server_name="grader"): "the files in tls= are unusable",
        Tls(
            root_certificates=root, certificate_chain=root, private_key=strange / "key.pem"
        ): "are unusable: .* --tls-key",
    }
    for tls, said in others.items():
        # Told at once, long before the deadline.
        with Client(guarded.address, tls=tls, token="right", deadline_s=60) as client:  # noqa: S106 - the test's own
            with pytest.raises(gradewire.ServerUnreachable, match=said) as raised:
                client.score([RIGHT], "exact_match")
            assert not raised.value.may_pass


def test_a_server_in_the_clear_says_so_to_a_client_with_tls(tmp_path: Path, minilm: Path) -> None:
    with ServerProcess(tmp_path, model_repository=minilm) as server:
        client = Client(server.address, tls=Tls(), deadline_s=60)
        with client, pytest.raises(gradewire.ServerUnreachable, match=r"does not use TLS, .* leave out tls="):
            client.score([RIGHT], "exact_match")


def test_the_port_of_metrics_is_told_from_that_of_calls(tmp_path: Path, minilm: Path) -> None:
    with ServerProcess(tmp_path, model_repository=minilm) as server:
        client = Client(f"127.0.0.1:{server.http_port}", deadline_s=60)
        with client, pytest.raises(gradewire.ServerUnreachable, match="speaks HTTP instead of gRPC"):
            client.score([RIGHT], "exact_match")


def test_the_https_port_of_the_http_api_is_told_from_that_of_calls(guarded: ServerProcess, certificate: Path) -> None:
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    known = Tls(root_certificates=cert, certificate_chain=cert, private_key=key, server_name="grader")
    says = r"speaks HTTPS instead of gRPC, .*: give the port that `gradewire serve` prints when it is ready"
    # Without TLS the client can know only by a handshake of its own.
    for tls, end in ((known, ""), (None, r", and tls=gradewire\.Tls\(…\) \(command: --tls-ca FILE\) if that .*")):
        with Client(f"127.0.0.1:{guarded.api_port}", tls=tls, deadline_s=60) as client:
            with pytest.raises(gradewire.ServerUnreachable, match=f"{says}{end}$") as raised:
                client.score([RIGHT], "exact_match")
            assert not raised.value.may_pass


@pytest.fixture
def other_https(certificate: Path, tmp_path: Path) -> Iterator[str]:
    """An HTTPS server that ends the handshake with an alert if a client offers HTTP/2 alone."""
    command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-alpn", "http/1.1", "-www"]
    files = ["-cert", str(certificate / "cert.pem"), "-key", str(certificate / "key.pem")]
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen([*command, *files], stdin=subprocess.DEVNULL, stdout=output, stderr=output) as process,
    ):
        try:
            wait_until(lambda: re.search(r"ACCEPT \S+:\d+\n", log.read_text()) is not None)
            yield re.findall(r"ACCEPT (\S+:\d+)\n", log.read_text())[0]
        finally:
            process.kill()


def test_a_foreign_https_server_is_told_from_a_gradewire_server(other_https: str, certificate: Path) -> None:
    for tls in (None, Tls(root_certificates=certificate / "cert.pem", server_name="grader")):
        with Client(other_https, tls=tls, deadline_s=60) as client:
            with pytest.raises(gradewire.ServerUnreachable, match="speaks HTTPS instead of gRPC") as raised:
                client.score([RIGHT], "exact_match")
            assert not raised.value.may_pass


@pytest.mark.parametrize("token", ["Bearer secret", "bearer secret"])
def test_a_token_with_the_word_of_its_header_is_refused(token: str, tmp_path: Path) -> None:
    message = r"token \(command: --token, GRADEWIRE_TOKEN\) begins with 'Bearer ', which the client adds by itself"
    for make in (gradewire.transport.Endpoint, Client, gradewire.AsyncClient):
        with pytest.raises(gradewire.InvalidRequest, match=message) as raised:
            make("127.0.0.1:1", token=token)
        assert "secret" not in str(raised.value)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"references": ["a"], "prediction": "a"}\n')
    command = [Path(sys.executable).with_name("gradewire"), "score", rows, "--server", "127.0.0.1:1", "--token", token]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert re.search(message, done.stderr)
    assert "secret" not in done.stderr


@pytest.mark.parametrize("token", ["secret\n", " secret", "secret\r", "sec\tret", "s\u00e9cret"])
def test_a_token_that_no_header_holds_is_refused_when_the_client_is_made(token: str) -> None:
    with pytest.raises(gradewire.InvalidRequest, match=r"token \(command: --token, GRADEWIRE_TOKEN\)") as raised:
        Client("127.0.0.1:1", token=token)
    assert token not in str(raised.value)


def test_the_command_has_certificates_and_names_its_own_flags(guarded: ServerProcess, certificate: Path) -> None:
    rows = certificate / "rows.jsonl"
    rows.write_text('{"references": ["a"], "prediction": "a"}\n')
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    tls = ("--tls-ca", cert, "--tls-cert", cert, "--tls-key", key, "--tls-server-name", "grader")

    def score(*options: str | Path) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).with_name("gradewire"), "score", rows, "--server", guarded.address, *options]
        return subprocess.run(
            [*map(str, command), "--metrics", "exact_match"], capture_output=True, text=True, timeout=60, check=False
        )

    done = score(*tls, "--token", "right")
    assert (done.returncode, '"score": 1.0' in done.stdout) == (0, True), done.stderr
    for option in (*map(str, tls),):
        assert option in done.stderr, "the line that reproduces the scores"
    wrong = score(*tls, "--token", "wrong")
    assert (wrong.returncode, "Give the right token= (command: --token)" in wrong.stderr) == (2, True)
    clear = score("--token", "right")
    assert (clear.returncode, "--tls-ca FILE" in clear.stderr) == (3, True)
    half = score("--tls-cert", cert)
    assert (half.returncode, "--tls-cert and --tls-key belong together" in half.stderr) == (2, True)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"
    client = Client("127.0.0.1:1", tls=Tls(root_certificates=missing))
    with client, pytest.raises(gradewire.InvalidRequest, match=r"none\.pem cannot be read"):
        client.score([RIGHT])
