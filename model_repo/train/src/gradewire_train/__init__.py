"""Train SFVE's encoders. Only training needs the extra ``train``; making examples needs no torch."""

from gradewire_models.errors import ModelError


class TrainingError(ModelError):
    """An error for a training that cannot run; the message names the field, file or line and what to do."""
