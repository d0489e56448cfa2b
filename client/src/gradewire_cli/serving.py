"""`gradewire serve`, `gradewire gateway` and `gradewire triton`, which start servers on this machine."""

from __future__ import annotations

import itertools
import logging
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import click
from typing_extensions import override

from gradewire.errors import InvalidRequest
from gradewire.rewards.framework_settings import scorer_of
from gradewire_cli.lazy_commands import MountedGroup, NotInstalledCommand, server_module
from gradewire_cli.options.common import INPUT_FILE, choice_option
from gradewire_cli.options.connection import (
    MAX_PORT,
    check_address,
    check_pem_files,
    server_option,
    tls_of,
    tls_options,
)
from gradewire_cli.options.help import Command, Option, command, option, stacked
from gradewire_cli.problems import InputError, one_line_errors, with_option_names
from gradewire_proto.exit_codes import ExitCode
from gradewire_proto.tracing.settings import endpoint_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from gradewire_cli.options.help import Decorated
    from gradewire_cli.server_settings import SettingField

_log = logging.getLogger(__name__)
_TYPES: dict[str, type] = {"integer": int, "number": float}
_METAVARS: Final = {"path": "PATH", "list": "VALUE,…", "bytes": "BYTES", "integer": "N", "number": "X"}
_PREFIX = "rewards_"
_REWARD_OPTIONS: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    (resources.files("gradewire_cli") / "rewards.toml").read_text(encoding="utf-8")
)


class ServeCommand(Command):
    """A command with an option for each server setting. Without the server packages, it has help, but no options."""

    @override
    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        try:
            server_module("gradewire_cli.server_settings")
        except InputError as error:
            about = str(self.help)
            missing = NotInstalledCommand(str(self.name), about=about, examples=str(self.name), error=error)
            return missing.make_context(info_name, args, *rest, **extra)
        return super().make_context(info_name, args, *rest, **extra)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return one option per setting, and the options that only this command has."""
        infos = server_module("gradewire_cli.server_settings").every_setting()
        return [*map(_option, infos), *super().get_params(ctx), self.help_all]


def _option(info: SettingField) -> Option:
    # The server reads the variables and the file, so a missing flag must get no value here. The server also checks the
    # values. All values are strings, because an empty string switches a setting off.
    attributes: dict[str, Any] = {}
    flag = info.flag
    match info.kind:
        case "boolean":
            flag = f"{info.flag}/--no-{info.flag.removeprefix('--')}"
        case "choice":
            attributes |= {"type": click.Choice(info.choices), "metavar": "|".join(info.choices)}
        case kind if not info.name.endswith("_s"):
            attributes["metavar"] = _METAVARS.get(kind)
    return Option(
        [info.name, flag],
        default=None,
        help=info.help,
        show_default=(info.default if not info.secret else "") or False,
        rare=not info.everyday,
        group=info.section,
        **attributes,
    )


@command("serve", cls=ServeCommand)
@option("--print-settings", is_flag=True)
@click.pass_context
def serve_command(ctx: click.Context, /, *, print_settings: bool, **values: Any) -> None:
    """Start a server on this machine. SIGTERM or Ctrl-C stops it gracefully; a second signal stops it immediately."""
    embedded = server_module("gradewire_cli.server_settings")
    given = {name: value for name, value in values.items() if value is not None}
    with one_line_errors():
        if print_settings:
            click.echo(embedded.print_settings(given), nl=False)
            return
        code = embedded.run_server(given, ready=lambda address: click.echo(f"gradewire is ready on {address}"))
    ctx.exit(code)


@click.group(
    "triton",
    cls=MountedGroup,
    # This command does not need the server, whose import takes a second.
    commands_of=lambda: server_module("gradewire_triton.cli").triton,
    examples="triton",
)
def triton_command() -> None:
    """Run the real Triton server on this machine, without a GPU and without NVIDIA's container.

    The server is NVIDIA's Triton 2.51. An emulated backend runs the models, because no package contains Triton's
    ONNX Runtime backend. Use it for trials and tests. If you have a GPU, use NVIDIA's container
    (docs/operate/triton-and-gpu.md).
    """


def _reward_option(name: str, given: Mapping[str, Any]) -> Callable[[Decorated], Decorated]:
    kind = click.Choice(given["choices"]) if "choices" in given else _TYPES.get(given.get("type", ""), str)
    return option(f"--rewards-{name}", type=kind, default=given.get("default"))


reward_options = stacked(*itertools.starmap(_reward_option, _REWARD_OPTIONS.items()))


def reward_settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the gateway's reward settings by name; raise click.UsageError if an option is invalid."""
    given = {name.removeprefix(_PREFIX): value for name, value in options.items() if name.startswith(_PREFIX)}
    try:
        scorer_of({name: value for name, value in given.items() if name != "slime_key"})
    except InvalidRequest as error:
        names = {name: f"--rewards-{name.replace('_', '-')}" for name in given}
        raise click.UsageError(f"--rewards-…: {with_option_names(str(error), names)}") from error
    return given


def _checked_endpoint(_context: click.Context, _option: click.Parameter, given: str) -> str:
    if problem := endpoint_problem(given):
        raise click.BadParameter(problem)
    return given


@command("gateway")
@stacked(server_option(required=True), *tls_options)
@stacked(
    option("--host", default="127.0.0.1"),
    option("--port", type=click.IntRange(0, MAX_PORT), default=8080),
    option("--cert", type=INPUT_FILE),
    option("--key", type=INPUT_FILE),
    option("--host-name", "names", multiple=True),
    option("--max-requests", type=click.IntRange(1), default=128),
    option("--max-body-bytes", type=click.IntRange(1), default=32 << 20),
    option("--page/--no-page", default=True),
    option("--metrics-page/--no-metrics-page", "metrics", default=True),
)
@reward_options
@stacked(
    choice_option("--log-level", among=("info", "debug", "warning", "error")),
    option("--otlp-endpoint", default="", callback=_checked_endpoint),
)
@click.pass_context
def gateway_command(ctx: click.Context, /, **options: Any) -> None:
    """Start an HTTP gateway (JSON) in front of a server. SIGTERM or Ctrl-C stops it gracefully."""
    if (options["cert"] is None) != (options["key"] is None):
        raise click.UsageError("--cert and --key belong together. Give both, or neither")
    check_pem_files(options, certificate="cert", key="key")
    for address in options["server"].split(","):
        check_address(address)
    serving, settings = server_module("gradewire_gateway.serving"), server_module("gradewire_gateway.settings")
    made = _settings(settings, options)
    server_module("gradewire_gateway.observing").configure_log(made.log_level)
    if not made.listen.cert and made.listen.host not in settings.LOOPBACK:
        _log.warning(
            "Without TLS, others on the network can read the texts and tokens that callers send to %s. Give --cert and "
            "--key, or put a proxy with TLS in front",
            made.listen.host,
        )
    try:
        listening = serving.bind(made.listen)
        click.echo(f"gradewire gateway is ready on {options['host']}:{listening.getsockname()[1]}")
        serving.run(made, listening)
    except OSError as error:
        click.echo(f"Error: {error}", err=True)
        ctx.exit(ExitCode.FAILED)


def _settings(settings: ModuleType, options: dict[str, Any]) -> Any:
    return settings.GatewaySettings(
        upstream=settings.UpstreamSettings(
            target=options["server"],
            tls=tls_of(options) is not None,
            ca=str(options["tls_ca"] or ""),
            cert=str(options["tls_cert"] or ""),
            key=str(options["tls_key"] or ""),
            server_name=options["tls_server_name"] or "",
        ),
        listen=settings.ListenSettings(
            host=options["host"],
            port=options["port"],
            cert=str(options["cert"] or ""),
            key=str(options["key"] or ""),
            names=options["names"],
        ),
        bounds=settings.Bounds(max_requests=options["max_requests"], max_body_bytes=options["max_body_bytes"]),
        rewards=settings.RewardPostSettings(**reward_settings_of(options)),
        metrics=options["metrics"],
        log_level=options["log_level"],
        tracing=settings.TracingSettings(endpoint=options["otlp_endpoint"]),
        page=options["page"],
    )
