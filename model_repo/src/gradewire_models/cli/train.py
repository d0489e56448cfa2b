"""The group ``gradewire models train``, whose commands are those of the distribution gradewire-train."""

from importlib import import_module
from importlib.util import find_spec

import click

from gradewire_models.cli.options import MissingPackageError


class _TrainGroup(click.Group):
    """Stands for the commands of `gradewire_train`, which is imported when one of them is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return _commands().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None where there is none of that name."""
        return _commands().get_command(ctx, cmd_name)


def _commands() -> click.Group:
    # By name: nothing but this command knows the package that trains, a distribution of its own.
    found = find_spec("gradewire_train")
    # A folder of byte code that an older checkout left behind is a namespace, without an origin.
    if found is None or found.origin is None:
        raise MissingPackageError(
            "training needs the package gradewire-train, which is not installed: pip install 'gradewire[train]'"
        )
    group = import_module("gradewire_train.cli").train
    if not isinstance(group, click.Group):
        raise TypeError("the commands of gradewire_train are not a group")
    return group


@click.group(cls=_TrainGroup)
def train() -> None:
    """Train encoders for the metric `sfve`, and look at what they are trained on."""
