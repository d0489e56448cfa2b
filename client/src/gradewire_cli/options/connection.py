"""Options for the connection to a server, and the client that a command creates from them."""

import contextlib
import logging
import os
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from gradewire import AsyncClient, Tls
from gradewire.api import embedded_transport
from gradewire.errors import DeadlineExceeded, Overloaded
from gradewire.transport import Endpoint, Transport
from gradewire_cli.options.common import INPUT_FILE, Command, written_options
from gradewire_cli.options.help import option, stacked
from gradewire_cli.options.judge import JudgeServer, judge_server_of, judge_server_options
from gradewire_cli.problems import one_line_errors

# Deadline of one batch of rows. Even verbose answers on a slow machine take less time.
BATCH_DEADLINE_S = 600.0

# Timeout of the first call, which keeps the wait short if the address is wrong.
CONNECT_TIMEOUT_S = 3.0
# Timeout of a second attempt if the server is busy.
_BUSY_TIMEOUT_S = 30.0

SERVER_VARIABLE = "GRADEWIRE_SERVER"
MAX_PORT = 65535
_SECONDS: Final = click.FloatRange(min=0, min_open=True)
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(?P<port>[0-9]{1,5})")
# Loggers of the engine in this process that report unusable judges.
_LOGS_OF_JUDGES: Final = ("gradewire_server.judges.service", "gradewire_server.judges.remote.requests")
_FOR_THIS_PROCESS: Final = {
    "cache_dir": "--disk-directory",
    "models_dir": "--model-repository",
    "judge_device": "--judge-device",
}
_TLS_FIELDS: Final = {
    "tls_ca": "root_certificates",
    "tls_cert": "certificate_chain",
    "tls_key": "private_key",
    "tls_server_name": "server_name",
}
"""Names of `Tls` fields by option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """The connection options.

    Attributes:
        server: HOST:PORT. None means scoring in this process.
        cache_dir: Disk cache of the engine in this process. None means the engine's default.
        deadline_s: Deadline of one batch of rows, in seconds.
        models_dir: Directory of built models for the engine in this process. None means the engine's default.
        judge_server: Judge server of the engine in this process. None means the judge server in the engine's settings.
        judge_device: Device of a judge in this process. None means the device in the engine's settings.
        wait_s: Maximum time until the server's first answer, in seconds.
    """

    server: str | None
    token: str | None
    tls: Tls | None
    cache_dir: Path | None
    deadline_s: float
    models_dir: Path | None = None
    judge_server: JudgeServer | None = None
    judge_device: str | None = None
    wait_s: float = CONNECT_TIMEOUT_S
    engine_threads: int | None = None

    def client(self, transport: Transport | None = None) -> AsyncClient:
        """Return a client for these options. `transport` replaces the connection."""
        if transport is not None:
            return AsyncClient(deadline_s=self.deadline_s, transport=transport)
        if self.server is not None:
            return AsyncClient(self.server, deadline_s=self.deadline_s, token=self.token, tls=self.tls)
        settings: dict[str, Any] = {"max_deadline_s": max(self.deadline_s, BATCH_DEADLINE_S)}
        if self.engine_threads is not None:
            settings |= {"workers": self.engine_threads, "lone_run_threads": self.engine_threads}
        if self.cache_dir is not None:
            settings["disk_directory"] = self.cache_dir
        if self.models_dir is not None:
            settings["model_repository"] = self.models_dir
        if self.judge_server is not None:
            settings |= self.judge_server.settings()
        if self.judge_device is not None:
            settings["judge_device"] = self.judge_device
        return AsyncClient(deadline_s=self.deadline_s, transport=embedded_transport(**settings))

    @contextlib.asynccontextmanager
    async def open(self, transport: Transport | None = None) -> AsyncGenerator[AsyncClient]:
        """Yield the client after its server has answered, and close the client at the end.

        With a wrong address, this fails after `wait_s`. If the server disappears later, calls wait for the server until
        `deadline_s`.
        """
        with _quiet_judges():
            async with self.client(transport) as client:
                if self.server is not None or transport is not None:
                    try:
                        await client.models(deadline_s=self.wait_s)
                    except (DeadlineExceeded, Overloaded):  # the server is reachable but slow
                        await client.models(deadline_s=max(_BUSY_TIMEOUT_S, self.wait_s))
                yield client

    @property
    def arguments(self) -> list[str]:
        """The options as command-line arguments, without the token, which no terminal should show."""
        if self.server is not None:
            return ["--server", self.server, *([] if self.tls is None else _tls_arguments(self.tls))]
        here = ["--embedded"] if os.environ.get(SERVER_VARIABLE) else []
        judge = [] if self.judge_server is None else self.judge_server.arguments
        named = {
            "--disk-directory": self.cache_dir,
            "--model-repository": self.models_dir,
            "--judge-device": self.judge_device,
        }
        return [*here, *judge, *written_options(named)]

    @property
    def description(self) -> str:
        """The server's address or "the engine in this process", for messages to users."""
        return self.server or "the engine in this process"


@contextlib.contextmanager
def _quiet_judges() -> Iterator[None]:
    """Do not log that a judge of the engine in this process cannot be used, because commands report this themselves."""
    loggers = [logging.getLogger(name) for name in _LOGS_OF_JUDGES]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


tls_options = (
    option("--tls", is_flag=True),
    option("--tls-ca", type=INPUT_FILE),
    option("--tls-cert", type=INPUT_FILE),
    option("--tls-key", type=INPUT_FILE),
    option("--tls-server-name"),
)
token_option = option("--token", envvar="GRADEWIRE_TOKEN", show_envvar=True)
wait_option = option("--wait-s", type=_SECONDS, default=CONNECT_TIMEOUT_S)


def server_option(**attributes: Any) -> Callable[[Command], Command]:
    """Return the option --server with its environment variable."""
    return option("--server", envvar=SERVER_VARIABLE, show_envvar=True, **attributes)


def deadline_option(default: float) -> Callable[[Command], Command]:
    """Return the option --deadline-s."""
    return option("--deadline-s", type=_SECONDS, default=default)


connection_options = stacked(
    server_option(),
    option("--embedded", is_flag=True),
    token_option,
    *tls_options,
    option("--disk-directory", "cache_dir", type=click.Path(file_okay=False, path_type=Path)),
    option("--model-repository", "models_dir", type=click.Path(exists=True, file_okay=False, path_type=Path)),
    deadline_option(BATCH_DEADLINE_S),
    wait_option,
    judge_server_options,
    option("--judge-device"),
)


def check_address(server: str) -> None:
    """Raise click.UsageError if an address for --server has no port."""
    # gRPC itself resolves names with a scheme (unix:PATH, dns:///HOST:PORT), so do not check them.
    if server.startswith(("unix:", "unix-abstract:")) or ":///" in server:
        return
    listed = server.removeprefix("ipv4:").removeprefix("ipv6:")
    for address in listed.split(",") if listed != server else [server]:
        found = _HOST_PORT.fullmatch(address)
        if found is None or not 0 < int(found["port"]) <= MAX_PORT:
            raise click.UsageError(
                f"--server {server}: write HOST:PORT, e.g. 127.0.0.1:50051, or ipv4:IP:PORT,IP:PORT for several servers"
            )


def tls_of(options: Mapping[str, Any]) -> Tls | None:
    """Read `tls_options`. Return None for a connection without TLS.

    Raises:
        click.UsageError: A certificate is given without its key, or a key without its certificate, or a file cannot be
            used.
    """
    given = {field: options[name] for name, field in _TLS_FIELDS.items() if options[name] is not None}
    if ("certificate_chain" in given) != ("private_key" in given):
        raise click.UsageError("--tls-cert and --tls-key belong together. Give both, or neither")
    if options["server"] is not None:
        check_pem_files(options, ca="tls_ca", certificate="tls_cert", key="tls_key")
    return Tls(**given) if given or options["tls"] else None


def check_pem_files(options: Mapping[str, Any], *, certificate: str, key: str, ca: str = "") -> None:
    """Raise click.UsageError if one of these options names a file that TLS cannot use.

    With such a file, gRPC would fail to connect, but would not name the cause. The arguments are names of options.
    """
    for name in filter(None, (ca, certificate)):
        if options[name] is not None:
            with _usable(name, options[name], "a PEM file with a certificate"):
                _lenient_context().load_verify_locations(cafile=options[name])
    if options[certificate] is not None:
        with _usable(key, options[key], f"a PEM file with the private key of {_flag(certificate)}, without a password"):
            _lenient_context().load_cert_chain(options[certificate], options[key], password="")


def _lenient_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # short keys are up to gRPC
    return context


@contextlib.contextmanager
def _usable(name: str, path: Path, needed: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        unreadable = None if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
        problem = f"the file cannot be read ({unreadable})" if unreadable else "the file cannot be used"
        raise click.UsageError(f"{_flag(name)} {path}: {problem}. Give {needed}") from error


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _tls_arguments(tls: Tls) -> list[str]:
    named = {_flag(name): getattr(tls, field) for name, field in _TLS_FIELDS.items()}
    return written_options(named) or ["--tls"]


def server_of(options: Mapping[str, Any]) -> Endpoint:
    """Read `server`, `token` and `tls_options`; raise click.ClickException if one of them is invalid."""
    check_address(options["server"])
    with one_line_errors():
        return Endpoint(options["server"], options["token"], tls_of(options))


def connection_of(options: Mapping[str, Any]) -> ConnectionOptions:
    """Read `connection_options`. --embedded overrides GRADEWIRE_SERVER but cannot be used together with --server."""
    server: str | None = options["server"]
    if options["embedded"] and server is not None:
        source = click.get_current_context().get_parameter_source("server")
        if source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("--server and --embedded are mutually exclusive. Leave one out")
        server = None
    if server is not None:
        check_address(server)
    for name, flag in _FOR_THIS_PROCESS.items():
        if server is not None and options[name] is not None:
            raise click.UsageError(f"{flag} is only for scoring in this process. Leave it out with --server")
    tls = tls_of(options)
    if server is None and tls is not None:
        raise click.UsageError("--tls and --tls-… need a server. Add --server HOST:PORT, or leave them out")
    judge_server = judge_server_of(options)
    if server is not None and judge_server is not None:
        raise click.UsageError(
            "--judge-url is only for scoring in this process. Leave it out, because a server's settings name its judges"
        )
    if judge_server is not None and options["judge_device"] is not None:
        raise click.UsageError("--judge-device is only for a judge in this process. Leave it out with --judge-url")
    return ConnectionOptions(
        server=server,
        token=options["token"],
        tls=tls,
        cache_dir=options["cache_dir"],
        deadline_s=options["deadline_s"],
        models_dir=options["models_dir"],
        judge_server=judge_server,
        judge_device=options["judge_device"],
        wait_s=options["wait_s"],
    )
