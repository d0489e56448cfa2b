"""The error that a training raises."""

from gradewire_models.errors import ModelError


class TrainingError(ModelError):
    """A training cannot be run as it is asked for; the message names the field, file or line and what to do."""
