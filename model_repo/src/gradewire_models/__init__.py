"""The model repository: what models there are, which of them are built, and how to build them.

Reading (`catalog`, `repository`) is light and imports neither onnx nor onnxruntime; everything that builds or checks a
model lives in `gradewire_models.build`.
"""

from gradewire_models.catalog.loading import CatalogModel, Source, default_model, load_catalog
from gradewire_models.errors import CatalogError, ModelBrokenError, ModelError, ModelNotBuiltError
from gradewire_models.repository.built import BuiltModel, default_repository, list_built, load_built

__all__ = [
    "BuiltModel",
    "CatalogError",
    "CatalogModel",
    "ModelBrokenError",
    "ModelError",
    "ModelNotBuiltError",
    "Source",
    "default_model",
    "default_repository",
    "list_built",
    "load_built",
    "load_catalog",
]
