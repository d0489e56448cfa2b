"""The group ``gradewire models train``, with the commands of the distribution gradewire-train."""

from importlib import import_module
from importlib.util import find_spec

import click

from gradewire_models.cli.options import MissingPackageError


class _TrainGroup(click.Group):
    """A group that imports the commands of `gradewire_train` when one of them is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return _commands().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None if the name is unknown."""
        return _commands().get_command(ctx, cmd_name)


def _commands() -> click.Group:
    # Import by name, because the training package is a distribution of its own and may be missing.
    found = find_spec("gradewire_train")
    # Byte code left in a folder by an older checkout makes a namespace package without an origin.
    if found is None or found.origin is None:
        raise MissingPackageError("the package gradewire-train is not installed. Run: pip install 'gradewire[train]'")
    group = import_module("gradewire_train.cli").train
    if not isinstance(group, click.Group):
        raise TypeError("the commands of gradewire_train are not a group")
    return group


@click.group(cls=_TrainGroup)
def train() -> None:
    """Train encoders for the metric `sfve`, and show their training material."""
