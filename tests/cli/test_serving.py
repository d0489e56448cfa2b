"""`gradewire gateway` has an option for each setting of reward posts, and checks its options before it listens."""

import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.test_help import COMMANDS, options_of

import gradewire_gateway.observing
import gradewire_gateway.serving
from gradewire_cli.group import gradewire
from gradewire_gateway.settings import RewardPostSettings

SERVER = "127.0.0.1:1"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the gateway listen and stop at once, without a change of pytest's log."""
    monkeypatch.setattr(gradewire_gateway.serving, "run", lambda _settings, listening: listening.close())
    monkeypatch.setattr(gradewire_gateway.observing, "configure_log", lambda _level: None)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return a certificate and its key."""
    directory = tmp_path_factory.mktemp("certificate")
    cert, key = str(directory / "cert.pem"), str(directory / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def gateway(*options: str, server: str = SERVER) -> Result:
    return CliRunner().invoke(gradewire, ["gateway", "--server", server, "--port", "0", *options])


def test_every_reward_setting_has_an_option_and_no_option_has_none() -> None:
    prefix = "rewards_"
    names = {option.name or "" for option in options_of(COMMANDS["gateway"])}
    given = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert given == {field.name for field in fields(RewardPostSettings)}


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(("cert", "key"), [("--tls-cert", "--tls-key"), ("--cert", "--key")])
def test_an_unusable_certificate_or_key_is_refused_by_its_option(
    cert: str, key: str, certificate: tuple[str, str], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    locked = tmp_path / "locked.pem"
    made = ["openssl", "rsa", "-aes128", "-passout", "pass:secret", "-in", certificate[1], "-out", str(locked)]
    subprocess.run(made, check=True, capture_output=True)
    done = gateway(cert, str(empty), key, str(empty))
    assert (done.exit_code, f"{cert} {empty}: the file cannot be used" in done.output) == (2, True), done.output
    for unusable in (empty, locked):
        done = gateway(cert, certificate[0], key, str(unusable))
        assert (done.exit_code, f"{key} {unusable}: the file cannot be used" in done.output) == (2, True), done.output
    done = gateway(cert, certificate[0], key, certificate[1])
    assert done.exit_code == 0, done.output


@pytest.mark.usefixtures("idle")
def test_an_unusable_authority_is_refused_by_its_option(certificate: tuple[str, str]) -> None:
    done = gateway("--tls-ca", __file__)
    assert (done.exit_code, f"--tls-ca {__file__}: the file cannot be used" in done.output) == (2, True), done.output
    assert gateway("--tls-ca", certificate[0]).exit_code == 0


@pytest.mark.usefixtures("idle")
def test_without_tls_other_machines_get_a_warning(
    certificate: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = certificate
    assert gateway().exit_code == 0
    assert gateway("--host=0.0.0.0", "--cert", cert, "--key", key).exit_code == 0
    assert caplog.messages == []
    assert gateway("--host=0.0.0.0", "--tls-cert", cert, "--tls-key", key).exit_code == 0
    (message,) = caplog.messages
    assert "send to 0.0.0.0. Give --cert and --key" in message


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("server", ["x", "127.0.0.1:1,x", "http://x:1"])
def test_a_server_without_a_port_is_refused(server: str) -> None:
    done = gateway(server=server)
    assert (done.exit_code, "write HOST:PORT" in done.output) == (2, True), done.output


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("server", ["unix:/run/gradewire.sock", "127.0.0.1:1,[::1]:2"])
def test_a_socket_and_several_addresses_are_accepted(server: str) -> None:
    done = gateway(server=server)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("gateway", "--server", SERVER), "--rewards-value=None: --rewards-policy='value' needs a number"),
        (("serve", "--port", "0"), "rewards_value=None: rewards_policy='value' needs a number"),
    ],
)
def test_a_policy_without_its_value_names_the_option_or_setting(command: tuple[str, ...], named: str) -> None:
    done = CliRunner().invoke(gradewire, [*command, "--rewards-policy", "value"])
    assert (done.exit_code, named in done.output) == (2, True), done.output
