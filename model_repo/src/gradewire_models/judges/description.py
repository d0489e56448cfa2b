"""Write and read ``judge.json``, a built judge's description with its digests."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from gradewire_models.catalog.table import read_table
from gradewire_models.judges.catalog import Form
from gradewire_models.repository.digest import FileRecord

DESCRIPTION_FILE = "judge.json"
TOKENIZER_FILE = "tokenizer.json"
GGUF_FILE = "model.gguf"
ONNX_FILE = "int8/model.onnx"
ONNX_DATA_FILE = "int8/model.onnx.data"
GRAPH_VERSIONS: Mapping[Form, int] = {"int8": 1, "gguf": 0, "fp16": 1, "int4": 1}
"""Versions of the graphs' inputs, outputs and arithmetic. A change of a version changes the digests of its form."""

_FORMAT = "gradewire-judge/1"


Files: TypeAlias = Mapping[str, FileRecord]


@dataclass(frozen=True, slots=True)
class JudgeMetadata:
    """A judge's properties that depend on its weights; `context_tokens` limits prompt and answer together."""

    chat_template: str
    context_tokens: int
    eos_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """The content of ``judge.json``.

    Attributes:
        tokenizer: Size and digest of tokenizer.json.
        forms: Size and digest of each built form's files, by their paths in the judge's directory.
    """

    name: str
    title: str
    licence: str
    origin: str
    test_only: bool
    remarks: tuple[str, ...]
    facts: JudgeMetadata
    tokenizer: FileRecord
    forms: Mapping[Form, Files]
    numeric_classes: Mapping[Form, str]

    @property
    def files(self) -> Files:
        """The size and digest of each file, by its path in the judge's directory."""
        return {
            TOKENIZER_FILE: self.tokenizer,
            **{path: each for files in self.forms.values() for path, each in files.items()},
        }

    def digest(self, form: Form) -> str:
        """Return a SHA-256, 64 hex characters, of everything that determines the answers of `form`.

        Judges with equal digests give equal answers.
        """
        files = sorted((path, record.sha256) for path, record in self.forms[form].items())
        parts: list[Any] = [
            _FORMAT,
            form,
            files,
            self.tokenizer.sha256,
            self.facts.chat_template,
            self.numeric_classes[form],
            GRAPH_VERSIONS[form],
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode("ascii")).hexdigest()


def graph_file(form: Form) -> str | None:
    """Return the path of a form's graph in the judge's directory, or None for a form without a graph."""
    return None if form == "gguf" else f"{form}/model.onnx"


def golden_file(form: Form) -> str:
    """Return the path of the golden logits of a form with a graph."""
    return f"{form}/golden.npz"


def write_description(description: Description, directory: Path) -> None:
    """Write ``judge.json``.

    Raises:
        OSError: The file is not writable.
    """
    values = {"format": _FORMAT, **asdict(description)}
    values["digests"] = {form: description.digest(form) for form in description.forms}
    text = json.dumps(values, indent=2, ensure_ascii=False)
    (directory / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")


def read_description(directory: Path) -> Description:
    """Read a description that `write_description` wrote.

    Raises:
        OSError: The file is missing or not readable.
        ValueError: The file is not a description, has a different format, or was changed after the build.
    """
    values = json.loads((directory / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    try:
        if values.pop("format") != _FORMAT:
            raise ValueError("it has a different format")  # noqa: TRY301 - reported like all other errors
        digests = values.pop("digests")
        description = read_table(Description, values, extra="ignore")
        found = {form: description.digest(form) for form in description.forms}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{DESCRIPTION_FILE} is invalid: {error}") from error
    if not found or found != digests:
        raise ValueError(f"{DESCRIPTION_FILE} was changed after the build: digests and values do not match")
    return description
