"""Train encoders for the metrics `sfve` and `grader`. Training needs the extra ``train``; drawing texts does not."""

from gradewire_models.errors import ModelError


class TrainingError(ModelError):
    """Raised when training cannot run; the message states the field, the file or the line, and the remedy."""
