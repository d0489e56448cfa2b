"""Read the judges in a repository, without packages that build or run judges."""

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
    graph_file,
    read_description,
)
from gradewire_models.repository.built import default_repository, find_directory, list_sound
from gradewire_models.repository.digest import record_fault

_HASHED_BYTES = 16 << 20  # `load_judge` always hashes files up to this size


@dataclass(frozen=True, slots=True)
class BuiltJudge:
    """A judge in a repository. For other fields, see `CatalogJudge`.

    Attributes:
        forms: Built forms in the order of `FORMS`.
        onnx_path: The int8 form's graph, with weights in ``model.onnx.data`` next to it; None without this form. For
            inputs and outputs, see `gradewire_models.judges.build.graph.write_graph`.
        gguf_path: The GGUF file; None without this form.
        tokenizer_path: File tokenizer.json: byte-level BPE without padding, truncation or added tokens.
        digests: For each form, the SHA-256 of everything that determines an answer, 64 hex characters.
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

    def path(self, form: Form) -> Path:
        """Return a built form's main file, a graph or the GGUF file."""
        return self.directory / (graph_file(form) or GGUF_FILE)


def default_judge_repository(encoders: Path | None = None) -> Path:
    """Return the default directory of judges: ``judges`` next to the encoders' repository."""
    return (encoders or default_repository()).parent / "judges"


def list_judges(repository: Path) -> list[BuiltJudge]:
    """List a repository's judges, sorted by name; return [] if the repository is missing.

    Only the files' sizes are checked. Broken judges are skipped, and each new reason is logged once as a warning.
    """
    return list_sound(repository, DESCRIPTION_FILE, lambda directory: _describe(directory)[0])


def load_judge(repository: Path, name: str, *, every_byte: bool = False) -> BuiltJudge:
    """Describe a judge after checking all files' sizes, and the digests of the graph and the tokenizer.

    If `every_byte` is True, also check the weights' digests, which takes seconds instead of milliseconds.

    Raises:
        ModelNotBuiltError: The judge is missing.
        ModelBrokenError: The files do not match the description.
    """
    directory = find_directory(repository, name, DESCRIPTION_FILE)
    if directory is None:
        raise ModelNotBuiltError(f"judge {name!r} is not built in {repository}. {_way_out(name)}")
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
                raise _broken(directory, f"{path} has {size} bytes, but its description says {expected.bytes}")
    except (OSError, ValueError) as error:
        raise _broken(directory, str(error)) from error
    if described.name != directory.name:
        raise _broken(directory, f"{DESCRIPTION_FILE} describes {described.name!r}")
    # Prefer the catalog's title and notes, because the catalog may be from a newer release than the description.
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
        return f"The catalog of judges has {', '.join(judges)}"
    return f"Run: {judges[name].build_hint}" if judges[name].buildable else f"To use it, {judges[name].build_hint}"


def _broken(directory: Path, reason: str) -> ModelBrokenError:
    return ModelBrokenError(f"judge {directory.name!r} is broken: {reason}. {_way_out(directory.name)}")
