"""The errors that this package raises.

ModelError
 ├─ CatalogError          the catalog is malformed, or has no such model
 ├─ ModelNotBuiltError    the repository has no such model; the message says how to build it
 ├─ ModelBrokenError      a model does not match its description; the message says how to replace it
 └─ BuildError            a build failed; the repository is unchanged
     ├─ DownloadError     a package could not be downloaded or found
     ├─ DigestMismatchError   a file's SHA-256 is not the one in the catalog
     ├─ VerificationError the built model does not compute what it should
     └─ ExportError       an encoder cannot be exported as requested
"""


class ModelError(Exception):
    """The base of all errors of the model repository."""


class CatalogError(ModelError):
    """Raised when the catalog is malformed or does not list a model."""


class ModelNotBuiltError(ModelError):
    """Raised when the repository does not contain a model."""


class ModelBrokenError(ModelError):
    """Raised when a model's files do not match its description."""


class BuildError(ModelError):
    """Raised when a build failed. The repository is unchanged."""


class DownloadError(BuildError):
    """Raised when a package could not be downloaded, or is not in the named directory."""


class DigestMismatchError(BuildError):
    """Raised when a file's SHA-256 is not the one in the catalog."""


class VerificationError(BuildError):
    """Raised when a built model does not match the reference computation."""


class ExportError(BuildError):
    """Raised when a model cannot be exported as requested. The message says why and what to do instead."""
