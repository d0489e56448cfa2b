"""The errors that this package raises.

ModelError ├─ CatalogError ├─ ModelNotBuiltError ├─ ModelBrokenError └─ BuildError
     ├─ DownloadError
     ├─ DigestMismatchError
     ├─ VerificationError
     └─ ExportError
"""


class ModelError(Exception):
    """The base of all errors of the model repository."""


class CatalogError(ModelError):
    """Raised when the catalog is malformed or does not list a model."""


class ModelNotBuiltError(ModelError):
    """Raised when the repository does not contain a model; the message states how to build it."""


class ModelBrokenError(ModelError):
    """Raised when a model's files do not match its description; the message states how to replace the model."""


class BuildError(ModelError):
    """Raised when a build failed. The repository is unchanged."""


class DownloadError(BuildError):
    """Raised when a package could not be downloaded, or is missing in the given directory."""


class DigestMismatchError(BuildError):
    """Raised when a file's SHA-256 differs from the digest in the catalog."""


class VerificationError(BuildError):
    """Raised when a built model does not match the reference computation."""


class ExportError(BuildError):
    """Raised when a model cannot be exported as requested; the message states the reason and the remedy."""
