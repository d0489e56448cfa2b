"""`gradewire serve`: one flag for every setting of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradewire_cli.lazy_commands import embedded_module
from gradewire_cli.problems import one_line_errors

if TYPE_CHECKING:
    from gradewire_cli.server_settings import SettingInfo

_TYPES: dict[str, type] = {"integer": int, "number": float}


class ServeCommand(click.Command):
    """Takes its options from the server's settings, so that flag, variable and TOML key cannot drift apart."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own options and one per setting."""
        own = super().get_params(ctx)
        known = {parameter.name for parameter in own}
        infos = embedded_module("serving").setting_infos()
        return [*(_option(info) for info in infos if info.name not in known), *own]


def _option(info: SettingInfo) -> click.Option:
    # The server reads variables and file itself, so a flag that is not given must stay away: no default, no variable.
    notes = [f"default: {info.default}"] if info.default and not info.secret else []
    attributes: dict[str, Any] = {}
    flag = info.flag
    match info.kind:
        case "boolean":
            flag = f"{info.flag}/--no-{info.flag.removeprefix('--')}"
        case "choice":
            attributes["type"] = click.Choice(info.choices)
        case "path":
            attributes["metavar"] = "PATH"
        case "list":
            notes.append("comma-separated")
        case "bytes":
            attributes["metavar"] = "BYTES"
            notes.append("64MiB and the like are understood")
        case kind:
            attributes["type"] = _TYPES.get(kind, str)
    note = f" ({'; '.join([*notes, info.variable])})"
    return click.Option([info.name, flag], default=None, help=f"{info.help.rstrip('.')}{note}.", **attributes)


@click.command(
    "serve",
    cls=ServeCommand,
    epilog="""\b
Every setting is a flag, a variable and a key of the TOML file of --config, under one name; a flag wins over the
variable, the variable over the file. Secrets belong into variables or the file: everybody can read a command line.

\b
Examples:
  gradewire serve
  gradewire serve --port 0 --http-port 0            any free ports; the address is printed
  gradewire serve --config server.toml --memory-max-bytes 1GiB
  GRADEWIRE_REDIS_URL=redis://cache:6379 gradewire serve --print-settings

\b
Exit codes: 0 stopped by a signal, 1 cannot start (port taken, …), 2 a setting is wrong.
""",
)
@click.option("--print-settings", is_flag=True, help="Print all settings as TOML, secrets as stars, and exit.")
@click.pass_context
def serve_command(ctx: click.Context, /, *, print_settings: bool, **values: Any) -> None:
    """Start a server on this machine; SIGTERM or Ctrl-C stops it in order, a second one at once."""
    embedded = embedded_module("serving")
    given = {name: value for name, value in values.items() if value is not None}
    with one_line_errors():
        if print_settings:
            click.echo(embedded.print_settings(given), nl=False)
            return
        code = embedded.run_server(given, ready=lambda address: click.echo(f"gradewire is ready on {address}"))
    ctx.exit(code)
