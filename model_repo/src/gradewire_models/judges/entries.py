"""One judge of the catalog, as a typed value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gradewire_models.catalog.entries import Source

Form: TypeAlias = Literal["int8", "gguf"]
FORMS: tuple[Form, ...] = ("int8", "gguf")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogJudge:
    """One judge as the catalog describes it.

    Attributes:
        name: The judge's name everywhere: requests, repository directory, commands.
        title: One line for people.
        origin: Where the weights were published first: a hub id.
        licence: SPDX identifier of the weights' licence.
        architecture: As in GGUF, e.g. ``"qwen2"`` or ``"llama"``.
        chat_template: How a conversation is written down; ``"chatml"`` is the only kind so far.
        context_tokens: Longest prompt and answer together, in tokens.
        default: Whether this judge is meant where none is named; true for exactly one.
        test_only: Whether it judges no better than chance and serves tests of the machinery.
        remarks: What a user should know, a sentence each.
        sources: The wheels that carry the GGUF file; none where the judge cannot be built but only be served by vLLM,
            Triton or an OpenAI-compatible server.
        file: Name under which the GGUF file was published.
        sha256: Digest of the GGUF file, 64 hex characters; empty without `sources`.
        bytes: Size of the GGUF file.
        download_bytes: Size of all sources together.
        eos_tokens: Tokens that end an answer.
        digests: What has to come out of a build, form by form; a form that is missing is not compared.
        numeric_classes: The arithmetic of each form; answers of different classes are never mixed.
    """

    name: str
    title: str
    origin: str
    licence: str
    architecture: str
    chat_template: str
    context_tokens: int
    default: bool = False
    test_only: bool = False
    remarks: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    file: str = ""
    sha256: str = ""
    bytes: int = 0
    download_bytes: int = 0
    eos_tokens: tuple[str, ...] = ()
    digests: Mapping[Form, str] = field(default_factory=dict)
    numeric_classes: Mapping[Form, str] = field(default_factory=dict)

    @property
    def buildable(self) -> bool:
        """Whether `gradewire models build` can make it."""
        return bool(self.sources)

    @property
    def package(self) -> str:
        """Name of the directory for its downloads."""
        return self.name

    @property
    def build_hint(self) -> str:
        """How to get this judge: the command that builds it, or where it has to be served."""
        if self.buildable:
            return f"gradewire models build {self.name}"
        return f"serve {self.origin} with vLLM, Triton or another OpenAI-compatible server, and name that backend"
