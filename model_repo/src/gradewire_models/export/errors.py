"""What an export raises beside the errors of every build."""

from gradewire_models.errors import BuildError


class ExportError(BuildError):
    """The model cannot be exported as it is asked for; the message says why and what to do instead."""
