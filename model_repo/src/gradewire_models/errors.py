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
    """An error for a malformed catalog, or a model that the catalog does not list."""


class ModelNotBuiltError(ModelError):
    """An error for a model that the repository does not contain."""


class ModelBrokenError(ModelError):
    """An error for a model whose files do not match its description."""


class BuildError(ModelError):
    """An error for a failed build; the repository is unchanged."""


class DownloadError(BuildError):
    """An error for a package that could not be downloaded, or is not in the named directory."""


class DigestMismatchError(BuildError):
    """An error for a file whose SHA-256 is not the one in the catalog."""


class VerificationError(BuildError):
    """An error for a built model that does not match the reference computation."""


class ExportError(BuildError):
    """An error for a model that cannot be exported as requested; the message says why and what to do instead."""
