"""Where encoders come from and how they are run: all that differs between this process and Triton."""

from collections.abc import Sequence
from typing import Protocol

from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.result import Failure
from gradewire_server.encoders.encoder import Encoder


class NotNowError(Exception):
    """A model is described here and cannot be used now; its source has it loaded again as soon as it can be.

    Attributes:
        model: The model.
        failure: What callers are told. MODEL_UNAVAILABLE: as things stand it is the wrong model; UNAVAILABLE: nobody
            knows yet.
    """

    def __init__(self, model: BuiltModel, failure: Failure) -> None:
        super().__init__(failure.message)
        self.model = model
        self.failure = failure


class UnusableError(Exception):
    """A model is whole and yet of no use here, until it is built again; the message is for callers."""


class ModelSource(Protocol):
    """A source of models; used on one event loop."""

    def listed(self) -> Sequence[BuiltModel]:
        """Models that are described here; broken ones are left out. Reads small files."""

    def describe(self, name: str) -> BuiltModel:
        """One model; raises ModelNotBuiltError or ModelBrokenError."""

    async def open(self, name: str, *, namespace: str) -> Encoder:
        """Gets a model ready to run.

        Args:
            name: Of the model.
            namespace: See `CacheConfig.namespace`.

        Raises:
            ModelError: It is not here, or is broken.
            UnusableError: It is here, and nothing for this source.
            NotNowError: It is here, and cannot be used now.
        """

    def trouble(self, name: str) -> str:
        """Why a model that was opened cannot compute now; empty when it can."""

    async def close(self) -> None:
        """Gives back what it holds; all encoders are closed by then."""
