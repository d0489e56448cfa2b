"""Errors of a Triton server of ours.

TritonError
 ├─ EnvironmentBrokenError   what it runs on cannot be installed here; the message says why
 └─ TritonStartError         it did not start; the message ends with the end of its log
"""

from gradewire_models.errors import ModelError


class TritonError(ModelError):
    """Base of all errors of this package."""


class EnvironmentBrokenError(TritonError):
    """The environment that Triton runs in cannot be made on this machine."""


class TritonStartError(TritonError):
    """Triton ended, or was not ready in time."""
