"""The judges of a directory, read without any of the packages that build or run them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gradewire_models.errors import ModelBrokenError, ModelNotBuiltError
from gradewire_models.judges.catalog import FORMS, Form, catalog_judges
from gradewire_models.judges.description import (
    DESCRIPTION_FILE,
    GGUF_FILE,
    ONNX_FILE,
    TOKENIZER_FILE,
    Description,
    read_description,
)
from gradewire_models.repository.built import default_repository, find_directory, list_sound
from gradewire_models.repository.digest import record_fault

_HASHED_BYTES = 16 << 20  # files up to this size are read whole at every load


@dataclass(frozen=True, slots=True)
class BuiltJudge:
    """One judge of a repository.

    Attributes:
        name: The judge's name, also its directory's.
        title: One line for people.
        directory: Where the judge lies.
        forms: Which forms are there, the quicker first: ``"int8"``, ``"gguf"``.
        onnx_path: The int8 form's graph, its weights beside it in ``model.onnx.data``; None without that form. Its
            inputs and outputs are described in docs/reference/judge-models.md.
        gguf_path: The GGUF file; None without that form.
        tokenizer_path: tokenizer.json: byte-level BPE without padding, truncation or added tokens.
        digests: Form by form, 64 hex characters over everything that decides an answer.
        numeric_classes: Form by form, the arithmetic.
        chat_template: How a conversation is written down: ``"chatml"``.
        context_tokens: Longest prompt and answer together, in tokens.
        eos_ids: Tokens that end an answer.
        licence: SPDX identifier of the weights' licence.
        test_only: Whether it judges no better than chance and serves tests only.
        remarks: What a user should know, a sentence each.
        build_hint: The command that builds it.
        bytes: Size of all its files.
    """

    name: str
    title: str
    directory: Path
    forms: tuple[Form, ...]
    onnx_path: Path | None
    gguf_path: Path | None
    tokenizer_path: Path
    digests: Mapping[Form, str]
    numeric_classes: Mapping[Form, str]
    chat_template: str
    context_tokens: int
    eos_ids: tuple[int, ...]
    licence: str
    test_only: bool
    remarks: tuple[str, ...]
    build_hint: str
    bytes: int


def default_judge_repository(encoders: Path | None = None) -> Path:
    """Return the directory of judges that is used where none is named: ``judges`` beside the repository of encoders."""
    return (encoders or default_repository()).parent / "judges"


def list_judges(repository: Path) -> list[BuiltJudge]:
    """List the judges of a repository by name.

    Files are checked by size. A judge that is broken is left out and logged as a warning, once for each thing that is
    wrong with it; `load_judge` says what it is. A repository that does not exist holds no judges.
    """
    return list_sound(repository, DESCRIPTION_FILE, lambda directory: _describe(directory)[0])


def load_judge(repository: Path, name: str, *, every_byte: bool = False) -> BuiltJudge:
    """Describe one judge after checking its files: all by size, the graph and the tokenizer by digest.

    With `every_byte` the weights are checked by digest too (seconds, not milliseconds).

    Raises:
        ModelNotBuiltError: It is not there; the message says how to build it.
        ModelBrokenError: Files and description disagree; the message says how to replace it.
    """
    directory = find_directory(repository, name, DESCRIPTION_FILE)
    if directory is None:
        raise ModelNotBuiltError(f"judge {name!r} is not built in {repository}; {_way_out(name)}")
    judge, described = _describe(directory)
    for path, record in described.files.items():
        is_read = every_byte or record.bytes <= _HASHED_BYTES
        if is_read and (fault := record_fault(directory / path, record)):
            raise _broken(directory, fault)
    return judge


def _describe(directory: Path) -> tuple[BuiltJudge, Description]:
    try:
        described = read_description(directory)
        for path, expected in described.files.items():
            if (size := (directory / path).stat().st_size) != expected.bytes:
                raise _broken(directory, f"{path} has {size} bytes, its description says {expected.bytes}")
    except (OSError, ValueError) as error:
        raise _broken(directory, str(error)) from error
    if described.name != directory.name:
        raise _broken(directory, f"{DESCRIPTION_FILE} describes {described.name!r}")
    # What is said of a judge may be said better by a newer release than by the one that built it.
    entry = catalog_judges().get(described.name)
    return BuiltJudge(
        name=described.name,
        title=entry.title if entry else described.title,
        directory=directory,
        forms=tuple(form for form in FORMS if form in described.forms),
        onnx_path=directory / ONNX_FILE if "int8" in described.forms else None,
        gguf_path=directory / GGUF_FILE if "gguf" in described.forms else None,
        tokenizer_path=directory / TOKENIZER_FILE,
        digests={form: described.digest(form) for form in described.forms},
        numeric_classes=described.numeric_classes,
        chat_template=described.facts.chat_template,
        context_tokens=described.facts.context_tokens,
        eos_ids=described.facts.eos_ids,
        licence=described.licence,
        test_only=described.test_only,
        remarks=entry.remarks if entry else described.remarks,
        build_hint=f"gradewire models build {described.name}",
        bytes=sum(expected.bytes for expected in described.files.values()),
    ), described


def _way_out(name: str) -> str:
    judges = catalog_judges()
    if name not in judges:
        return f"the catalog of judges has {', '.join(judges)}"
    return f"build it with: {judges[name].build_hint}" if judges[name].buildable else judges[name].build_hint


def _broken(directory: Path, reason: str) -> ModelBrokenError:
    return ModelBrokenError(f"judge {directory.name!r} is broken: {reason}; replace it: {_way_out(directory.name)}")
