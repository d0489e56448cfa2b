"""What is told where a framework is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from gradewire.errors import MissingExtra


@contextmanager
def needed_by(module: str, install: str = "") -> Iterator[None]:
    """Around the imports of a framework: names what to install where one fails.

    Args:
        module: What needs it.
        install: What pip calls it, where that is not the name of its package.

    Raises:
        MissingExtra: The framework is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = install or (error.name or "").partition(".")[0]
        raise MissingExtra(f"{module} needs {error.name}, which is not installed: pip install '{package}'") from error
