"""Trains SFVE's encoders. Only the training itself needs the extra ``train``: making examples needs no torch."""

from gradewire_models.errors import ModelError


class TrainingError(ModelError):
    """A training that cannot be run as requested; the message names the field, file or line and what to do."""
