"""``judge.json``: what is said of a built judge, and the digest that each of its forms has."""

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
GOLDEN_FILE = "int8/golden.npz"
GRAPH_VERSION = 1
"""Raised when the graph's inputs, outputs or arithmetic change: a runtime that knows another one refuses."""

_FORMAT = "gradewire-judge/1"


Files: TypeAlias = Mapping[str, FileRecord]


@dataclass(frozen=True, slots=True)
class JudgeMetadata:
    """Facts of a judge that its weights decide; `context_tokens` is the longest prompt and answer together."""

    chat_template: str
    context_tokens: int
    eos_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """The content of ``judge.json``.

    Attributes:
        name: The judge's name.
        title: One line for people.
        licence: SPDX identifier.
        origin: Where the weights were published first.
        test_only: Whether it serves tests only.
        remarks: What a user should know.
        facts: What its weights say.
        tokenizer: Of tokenizer.json.
        forms: Files of each form that is there, by path in the judge's directory.
        numeric_classes: The arithmetic of each form that is there.
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
        """The files, by path in the judge's directory."""
        return {
            TOKENIZER_FILE: self.tokenizer,
            **{path: each for files in self.forms.values() for path, each in files.items()},
        }

    def digest(self, form: Form) -> str:
        """Digest of all that decides an answer of `form`, 64 hex characters; judges of one digest answer alike.

        It covers the form's files, the tokenizer, the chat template's kind, the arithmetic and the graph's version.
        """
        files = sorted((path, record.sha256) for path, record in self.forms[form].items())
        parts: list[Any] = [
            _FORMAT,
            form,
            files,
            self.tokenizer.sha256,
            self.facts.chat_template,
            self.numeric_classes[form],
            GRAPH_VERSION if form == "int8" else 0,
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode("ascii")).hexdigest()


def write_description(description: Description, directory: Path) -> None:
    """Write ``judge.json``; raises OSError."""
    values = {"format": _FORMAT, **asdict(description)}
    values["digests"] = {form: description.digest(form) for form in description.forms}
    text = json.dumps(values, indent=2, ensure_ascii=False)
    (directory / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")


def read_description(directory: Path) -> Description:
    """Read what `write_description` wrote.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is no description, one of another format, or was changed after the build.
    """
    values = json.loads((directory / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    try:
        if values.pop("format") != _FORMAT:
            raise ValueError("it is of another format")  # noqa: TRY301 - reported as the other faults are
        digests = values.pop("digests")
        description = read_table(Description, values, extra="ignore")
        found = {form: description.digest(form) for form in description.forms}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{DESCRIPTION_FILE} is not what a build writes: {error}") from error
    if not found or found != digests:
        raise ValueError(f"{DESCRIPTION_FILE} was changed after the build: its digests do not fit its values")
    return description
