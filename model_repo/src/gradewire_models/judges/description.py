"""Write and read ``judge.json``: the description of a built judge, and the digest of each form."""

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
"""The version of the graph's inputs, outputs and arithmetic. A runtime refuses other versions."""

_FORMAT = "gradewire-judge/1"


Files: TypeAlias = Mapping[str, FileRecord]


@dataclass(frozen=True, slots=True)
class JudgeMetadata:
    """Properties that a judge's weights decide; `context_tokens` limits prompt and answer together."""

    chat_template: str
    context_tokens: int
    eos_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """The content of ``judge.json``.

    Attributes:
        name: The judge's name.
        title: Description in one line.
        licence: SPDX identifier.
        origin: First publication of the weights.
        test_only: True if it only serves tests.
        remarks: Notes for users.
        facts: Properties that its weights decide.
        tokenizer: Record of tokenizer.json.
        forms: Files of each built form, by path in the judge's directory.
        numeric_classes: Arithmetic of each built form.
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
        """Return the digest of all that decides an answer of `form`, 64 hex characters.

        It covers the form's files, the tokenizer, the kind of chat template, the arithmetic and the graph's version.
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
            GRAPH_VERSION if form == "int8" else 0,
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode("ascii")).hexdigest()


def write_description(description: Description, directory: Path) -> None:
    """Write ``judge.json``.

    Raises:
        OSError: The file cannot be written.
    """
    values = {"format": _FORMAT, **asdict(description)}
    values["digests"] = {form: description.digest(form) for form in description.forms}
    text = json.dumps(values, indent=2, ensure_ascii=False)
    (directory / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")


def read_description(directory: Path) -> Description:
    """Read a description from `write_description`.

    Raises:
        OSError: The file is missing or cannot be read.
        ValueError: The file is no description, has another format, or was changed after the build.
    """
    values = json.loads((directory / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    try:
        if values.pop("format") != _FORMAT:
            raise ValueError("it has another format")  # noqa: TRY301 - reported like the other errors
        digests = values.pop("digests")
        description = read_table(Description, values, extra="ignore")
        found = {form: description.digest(form) for form in description.forms}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{DESCRIPTION_FILE} is invalid: {error}") from error
    if not found or found != digests:
        raise ValueError(f"{DESCRIPTION_FILE} was changed after the build: digests and values do not match")
    return description
