"""Low-rank adapters (Hu et al. 2021, LoRA) that are merged into an encoder's weights when its model is built.

Those gradewire ships lie here, a folder each; a user's lie wherever `gradewire models train sfve` wrote them. Light:
standard library only, as the catalog, which names them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gradewire_models.catalog.metadata import AdapterMetadata

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
HEAD_WEIGHTS = "head.safetensors"
"""Of a grader: the linear layer behind its encoder."""
ADAPTER_METADATA = "gradewire.json"
"""What training says of an adapter beyond PEFT's two files; an adapter from elsewhere has none."""


@dataclass(frozen=True, slots=True)
class AdapterSource:
    """Where an adapter lies and what has to be found there.

    Attributes:
        base: Name of the catalog's model into whose weights it is merged.
        directory: Holds the files.
        files: SHA-256 of PEFT's two files, and of a grader's head, by file name.
        text_form: What the encoder was trained to read: ``"sfve"`` for "Question: … Answer: …", ``"grader"`` for
            question, reference and answer together; empty for plain texts or where nobody says.
    """

    base: str
    directory: Path
    files: Mapping[str, str]
    text_form: str = ""

    @property
    def sha256(self) -> str:
        """SHA-256 over all files' digests, 64 hex characters: one adapter, one value."""
        lines = "".join(f"{self.files[name]}  {name}\n" for name in sorted(self.files))
        return hashlib.sha256(lines.encode("ascii")).hexdigest()

    @property
    def metadata(self) -> AdapterMetadata:
        """What a model's description says of it."""
        return AdapterMetadata(self.base, self.sha256, self.text_form)


def adapter_files(kind: str) -> tuple[str, ...]:
    """Names of the files that decide what a model with an adapter computes, of an encoder or of a grader."""
    return (ADAPTER_WEIGHTS, ADAPTER_CONFIG, *((HEAD_WEIGHTS,) if kind == "grader" else ()))


def shipped_adapter(name: str) -> Path:
    """Directory of an adapter that comes with gradewire, whether it is there or not."""
    return Path(__file__).parent / name
