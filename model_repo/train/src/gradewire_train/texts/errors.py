"""What making training texts raises."""

from gradewire_models.errors import ModelError


class TextsError(ModelError):
    """Training texts cannot be made or read; the message names the file, its line and its field, and what to do."""
