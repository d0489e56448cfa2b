"""Everything this package raises on purpose.

ModelError
 ├─ CatalogError          the catalog is not what it should be, or has no such model
 ├─ ModelNotBuiltError    no such model in the repository; the message says how to build it
 ├─ ModelBrokenError      a model is there but is not what it says it is; the message says how to replace it
 └─ BuildError            a build could not be finished; nothing of it is left behind
     ├─ DownloadError     a package could not be fetched or found
     ├─ DigestMismatchError   bytes are not the ones the catalog pins
     ├─ VerificationError the built model does not compute what it should
     └─ ExportError       an encoder cannot be exported as it is asked for
"""


class ModelError(Exception):
    """Base of all errors of the model repository."""


class CatalogError(ModelError):
    """The catalog is malformed or does not list the model."""


class ModelNotBuiltError(ModelError):
    """The repository does not hold the model."""


class ModelBrokenError(ModelError):
    """The repository holds the model, but its files and its description disagree."""


class BuildError(ModelError):
    """A build could not be finished; the repository is as it was before."""


class DownloadError(BuildError):
    """A package could not be fetched, or is not in the directory that was named."""


class DigestMismatchError(BuildError):
    """A file's SHA-256 is not the one the catalog pins."""


class VerificationError(BuildError):
    """The model that came out does not agree with the reference computation."""


class ExportError(BuildError):
    """The model cannot be exported as it is asked for; the message says why and what to do instead."""
