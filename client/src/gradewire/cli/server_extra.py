"""Imports of server and models, which are installed separately."""

from importlib import import_module
from types import ModuleType
from typing import Literal

from gradewire.cli.problems import InputError


def embedded_module(name: Literal["engine", "fits", "prompts"] = "engine") -> ModuleType:
    """A module of `gradewire._embedded`, imported when first asked for: it loads the server's libraries.

    Raises:
        InputError: The server's part is not installed; says how to get it.
    """
    try:
        return import_module(f"gradewire._embedded.{name}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "gradewire":
            raise  # an error in our own packages
        message = f"this needs {error.name}, which is not installed: pip install 'gradewire[server]'"
        raise InputError(message) from error
