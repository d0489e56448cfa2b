"""A server with an unusable PEM file does not start, and names the setting and not the port."""

import subprocess
from pathlib import Path

import pytest
from grpc import aio

from gradewire_server.rpc.grpc_server import listen
from gradewire_server.settings.transport import Tls


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return a certificate and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-out", str(cert), "-keyout", str(key)], check=True, capture_output=True)
    return cert, key


@pytest.mark.parametrize("name", ["cert", "key", "client_ca"])
def test_a_missing_file_is_named_with_its_setting(name: str, pair: tuple[Path, Path], tmp_path: Path) -> None:
    files: dict[str, Path] = {"cert": pair[0], "key": pair[1], "client_ca": pair[0]}
    Tls(**files).check_readable()
    files[name] = tmp_path / "nosuch.pem"
    with pytest.raises(OSError, match=rf"tls_{name}: .*nosuch\.pem cannot be read \(No such file"):
        Tls(**files).check_readable()


async def test_an_unusable_certificate_or_key_is_not_called_a_port_in_use(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for tls in (Tls(empty, empty), Tls(pair[0], empty)):
        with pytest.raises(OSError, match=r"tls_cert: .* tls_key: .*empty\.pem"):
            await listen(aio.server(), "127.0.0.1:0", tls=tls)
