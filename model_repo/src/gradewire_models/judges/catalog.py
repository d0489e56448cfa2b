"""The judges of ``judges.toml`` as typed, checked values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from gradewire_models.catalog.entries import Source
from gradewire_models.catalog.table import (
    Count,
    Name,
    Sha256,
    Sha256OrNone,
    by_name,
    find,
    read_entry,
    read_table,
    read_toml,
)

Form: TypeAlias = Literal["int8", "gguf"]
FORMS: tuple[Form, ...] = ("int8", "gguf")
Text = Annotated[str, Field(min_length=1)]

_CATALOG_FILE = Path(__file__).with_name("judges.toml")


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

    name: Name
    title: str
    origin: str
    licence: str
    architecture: str
    chat_template: Literal["chatml"]
    context_tokens: Count
    default: bool = False
    test_only: bool = False
    remarks: tuple[Text, ...]
    sources: tuple[Source, ...] = ()
    file: str = ""
    sha256: Sha256OrNone = ""
    bytes: int = 0
    download_bytes: int = 0
    eos_tokens: tuple[Text, ...] = ()
    digests: Mapping[Form, Sha256] = field(default_factory=dict)
    numeric_classes: Mapping[Form, str] = field(default_factory=dict)

    @property
    def buildable(self) -> bool:
        """True where `gradewire models build` can make it."""
        return bool(self.sources)

    @property
    def package(self) -> str:
        """Name of the directory for its downloads."""
        return self.name

    @property
    def build_hint(self) -> str:
        """The way to get this judge: the command that builds it, or the backend that has to serve it."""
        if self.buildable:
            return f"gradewire models build {self.name}"
        return f"serve {self.origin} with vLLM, Triton or another OpenAI-compatible server, and name that backend"


@cache
def catalog_judges(path: Path = _CATALOG_FILE) -> Mapping[str, CatalogJudge]:
    """Read the catalog of judges, by name in the order of the file.

    Raises:
        CatalogError: The file cannot be read, a field is missing, unknown or of a wrong kind, a name or digest is
            malformed, or there is not exactly one default.
    """
    entries = read_toml(path, "the catalog of judges").get("judge", [])
    return by_name((read_entry(entry, _read, path, "judge") for entry in entries), path, "judge")


def default_judge() -> CatalogJudge:
    """Return the judge that is meant where none is named."""
    return next(judge for judge in catalog_judges().values() if judge.default)


def find_judge(name: str) -> CatalogJudge:
    """Look a judge up by name.

    Raises:
        CatalogError: The catalog has no such judge; the message lists those it has.
    """
    return find(catalog_judges(), name, "judge")


def _read(entry: dict[str, Any]) -> CatalogJudge:
    judge = read_table(CatalogJudge, entry)
    if judge.buildable and not (judge.sha256 and judge.bytes and judge.download_bytes and judge.eos_tokens):
        raise ValueError("a judge that can be built has sha256, bytes, download_bytes and eos_tokens")
    if judge.buildable and set(judge.numeric_classes) != set(FORMS):
        raise ValueError(f"a judge that can be built has numeric_classes for {', '.join(FORMS)}")
    return judge
