"""Train encoders for the metrics `sfve` and `grader`. Training needs the extra ``train``; drawing texts does not."""

from gradewire_models.errors import ModelError


class TrainingError(ModelError):
    """An error for a training that cannot run; the message names the field, file or line and what to do."""
