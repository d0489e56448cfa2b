"""The models of a library that are of one kind: what embeds is never given a grader, nor the other way round."""

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from gradewire_models.catalog.loading import grader_models
from gradewire_server.domain.ports import ModelIndex, ModelStatus
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.library import ModelLibrary

_OTHER = {"encoder": "a grader, which reads question, reference and answer together", "grader": "an encoder"}


class ModelsOfKind(ModelIndex):
    """A view of a library.

    Args:
        library: Of encoders and graders.
        kind: "encoder" or "grader".
    """

    def __init__(self, library: ModelLibrary, kind: str) -> None:
        self._library = library
        self._kind = kind
        self._default = library.default
        if kind == "grader":
            self._default = next((model.name for model in grader_models()), "")

    @override
    def statuses(self) -> Sequence[ModelStatus]:
        return [
            replace(status, is_default=status.name == self._default)
            for status in self._library.statuses()
            if status.kind == self._kind
        ]

    @override
    def status(self, name: str) -> ModelStatus | Failure:
        name = name or self._default
        found = self._library.status(name)
        if isinstance(found, Failure) or found.kind == self._kind:
            return found
        known = ", ".join(status.name for status in self.statuses()) or "none"
        return Failure(
            Status.MODEL_UNAVAILABLE,
            f"model {found.name} is {_OTHER[self._kind]}; {self._kind}s known here are: {known}",
        )
