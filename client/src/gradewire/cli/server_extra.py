"""Imports of server and models, which are installed separately."""

from importlib import import_module
from types import ModuleType
from typing import Literal

from gradewire.cli.problems import InputError


def missing_server(error: ImportError) -> InputError:
    """The error for a user who has the light client only; an error in our own packages is raised as it is."""
    if (error.name or "").partition(".")[0] == "gradewire":
        raise error
    return InputError(f"this needs {error.name}, which is not installed: pip install 'gradewire[server]'")


def embedded_module(name: Literal["engine", "fits", "prompts"] = "engine") -> ModuleType:
    """A module of `gradewire._embedded`, imported when first asked for: it loads the server's libraries.

    Raises:
        InputError: The server's part is not installed; says how to get it.
    """
    try:
        return import_module(f"gradewire._embedded.{name}")
    except ImportError as error:
        raise missing_server(error) from error
