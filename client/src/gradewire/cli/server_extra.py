"""The way to server and models, which are installed separately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from types import ModuleType


def missing_server(error: ImportError) -> InputError:
    """What to tell somebody who has the light client only; an error in our own packages is raised as it is."""
    if (error.name or "").partition(".")[0] == "gradewire":
        raise error
    return InputError(f"this needs {error.name}, which is not installed: pip install 'gradewire[server]'")


def embedded_module() -> ModuleType:
    """`gradewire._embedded.engine`, imported when first asked for.

    Raises:
        InputError: The server's part is not installed; says how to get it.
    """
    try:
        from gradewire._embedded import engine  # noqa: PLC0415 - loads the server's libraries
    except ImportError as error:
        raise missing_server(error) from error
    return engine


def fits_module() -> ModuleType:
    """`gradewire._embedded.fits`, as `embedded_module`."""
    try:
        from gradewire._embedded import fits  # noqa: PLC0415 - loads the server's libraries
    except ImportError as error:
        raise missing_server(error) from error
    return fits


def prompts_module() -> ModuleType:
    """`gradewire._embedded.prompts`, as `embedded_module`."""
    try:
        from gradewire._embedded import prompts  # noqa: PLC0415 - loads the server's libraries
    except ImportError as error:
        raise missing_server(error) from error
    return prompts
