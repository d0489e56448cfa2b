"""Read the judges in ``judges.toml`` as typed, checked values."""

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

Form: TypeAlias = Literal["int8", "gguf", "fp16", "int4"]
FORMS: tuple[Form, ...] = ("int8", "gguf", "fp16", "int4")
"""All forms. fp16 and int4 are for GPUs."""
CPU_FORMS: tuple[Form, ...] = ("int8", "gguf")
Text = Annotated[str, Field(min_length=1)]

_CATALOG_FILE = Path(__file__).with_name("judges.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogJudge:
    """A judge's entry in the catalog.

    Attributes:
        architecture: Architecture in GGUF's spelling, for example ``"qwen2"`` or ``"llama"``.
        chat_template: Format of a conversation; only ``"chatml"`` so far.
        context_tokens: Maximum total length of prompt and answer, in tokens.
        default: True only for the judge that is used if the caller chooses no judge.
        test_only: True if the judge is only for tests, because its verdicts are no better than chance.
        sources: Wheels with the GGUF file; () for a judge that only vLLM, Triton or an OpenAI-compatible server can
            run.
        sha256: Digest of the GGUF file, 64 hex characters; "" without `sources`.
        digests: Digests that a build must produce, by form. A form without a digest is not checked.
        numeric_classes: Arithmetic by form. Caches never mix answers from different classes.
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
        """True if `gradewire models build` can build this judge."""
        return bool(self.sources)

    @property
    def package(self) -> str:
        """The name of the download directory."""
        return self.name

    @property
    def build_hint(self) -> str:
        """The command that builds this judge, or the backends that can serve it."""
        if self.buildable:
            return f"gradewire models build {self.name}"
        return f"serve {self.origin} with vLLM, Triton or another OpenAI-compatible server, and choose this backend"


@cache
def catalog_judges(path: Path = _CATALOG_FILE) -> Mapping[str, CatalogJudge]:
    """Return the catalog's judges by name, in the file's order.

    Raises:
        CatalogError: The file is not readable; a field is missing, unknown or of a wrong type; a name or digest is
            malformed; or the catalog does not have exactly one default.
    """
    entries = read_toml(path, "the catalog of judges").get("judge", [])
    return by_name((read_entry(entry, _read, path, "judge") for entry in entries), path, "judge")


def default_judge() -> CatalogJudge:
    """Return the judge that is used if the caller chooses no judge."""
    return next(judge for judge in catalog_judges().values() if judge.default)


def find_judge(name: str) -> CatalogJudge:
    """Look a judge up by name.

    Raises:
        CatalogError: The catalog has no such judge.
    """
    return find(catalog_judges(), name, "judge")


def _read(entry: dict[str, Any]) -> CatalogJudge:
    judge = read_table(CatalogJudge, entry)
    if judge.buildable and not (judge.sha256 and judge.bytes and judge.download_bytes and judge.eos_tokens):
        raise ValueError("a judge that can be built needs sha256, bytes, download_bytes and eos_tokens")
    if judge.buildable and set(judge.numeric_classes) != set(FORMS):
        raise ValueError(f"a judge that can be built needs numeric_classes for {', '.join(FORMS)}")
    return judge
