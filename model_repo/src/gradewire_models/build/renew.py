"""The description of a model that is there: where it differs from what a build would write, and how it is renewed."""

import hashlib
from dataclasses import replace
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from gradewire_models.build.progress import ignore
from gradewire_models.build.publish import read_fingerprint, workspace
from gradewire_models.build.reference import GOLDEN_FILE, load_golden
from gradewire_models.catalog.calibration import merge, of_users
from gradewire_models.catalog.entries import CatalogModel, EncoderMetadata
from gradewire_models.errors import BuildError
from gradewire_models.repository._model_config_pb2 import ModelConfig, ModelParameter
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import (
    CONFIG_FILE,
    CONFIG_VERSION,
    PREFIX,
    accelerators_in,
    files_in,
    kinds_in,
    make_config,
    own_parameters,
    read_config,
    tensors_in,
    to_parameters,
    write_config,
)
from gradewire_models.repository.serving import (
    AS_IT_IS,
    THREADS_PARAMETER,
    Copies,
    serving_of_class,
    warmup_files,
    write_warmup,
)

# What another release would say otherwise of the same model, to nobody's harm.
_ANY_RELEASE = ("config_version", "catalog_version")
_SHOWN_CHARACTERS = 300


def find_differences(model: BuiltModel, expected: CatalogModel | None) -> list[str]:
    """Compare a model's config.pbtxt and its warm-up files with what a build would write today; one line a difference.

    How many copies run, on which GPUs, with how many threads, how requests queue and gather, and parameters and fields
    that gradewire does not write are the operator's: they may differ. `expected` is None for an exported model, of
    which licence and origin stand nowhere else.

    Raises:
        OSError: A file cannot be read.
        ValueError: One is not what it should be.
    """
    said, meant = (_what_matters(config) for config in (_read(model), _meant(model, expected, AS_IT_IS)))
    fields = [
        f"{name} is {_shown(said.get(name, 'not there'))}, not {_shown(meant.get(name, 'there'))}"
        for name in dict.fromkeys([*meant, *said])
        if said.get(name) != meant.get(name)
    ]
    for name, content in warmup_files(model.max_tokens).items():
        path = model.directory / name
        if not path.is_file() or path.read_bytes() != content:
            fields.append(f"{name} is {'another file' if path.exists() else 'not there'}")
    return fields


def renew(model: BuiltModel, expected: CatalogModel | None, copies: Copies = AS_IT_IS) -> bool:
    """Rewrite config.pbtxt and warm-up files where they differ, or other `copies` are wanted; return whether it did.

    Copies and threads stay as they are unless `copies` says otherwise; other changes made by hand go.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: One is not what it should be.
    """
    of_this_release = own_parameters(_read(model)).get("config_version") == CONFIG_VERSION
    if copies == AS_IT_IS and of_this_release and not find_differences(model, expected):
        return False
    config = _meant(model, expected, copies)
    write_warmup(model.directory, model.max_tokens)
    # Readers see the old file or the new one, whole.
    written = model.directory / f".{CONFIG_FILE}.new"
    write_config(written, config)
    written.replace(model.directory / CONFIG_FILE)
    return True


def renew_exported(repository: Path, name: str, copies: Copies = AS_IT_IS) -> tuple[BuiltModel, bool]:
    """Renew a model of no catalog and say whether anything was written; waits while it is being built or exported.

    Raises:
        ModelError: It is not there or broken; the message says how to replace it.
    """
    try:
        with workspace(repository, name, ignore):
            model = load_built(repository, name)
            written = renew(model, None, copies)
    except (OSError, ValueError) as error:
        raise BuildError(f"cannot renew the description of {name} in {repository}: {error}; export it again") from error
    return load_built(repository, name), written


def _meant(model: BuiltModel, expected: CatalogModel | None, copies: Copies) -> ModelConfig:
    standing = _read(model)
    try:
        fingerprint = read_fingerprint(model.onnx_path)
    except DecodeError as error:
        raise ValueError(f"{model.onnx_path} is no graph: {error}") from error
    if fingerprint is None:
        raise ValueError(f"{model.onnx_path} does not name itself")
    files = replace(files_in(own_parameters(standing)), fingerprint=fingerprint)
    wanted = _copies_of(standing, copies)
    if expected is not None:
        # What users fitted is nowhere else.
        kept = merge(expected.metadata.calibrations, of_users(model.calibrations))
        metadata = replace(expected.metadata, calibrations=kept)
    else:
        metadata = _as_golden(model)
    config = make_config(metadata, files, serving_of_class(metadata.numeric_class, wanted))
    for name, text in to_parameters((), model.unreadable).items():
        config.parameters[PREFIX + name].CopyFrom(ModelParameter(string_value=text))
    return config


def _as_golden(model: BuiltModel) -> EncoderMetadata:
    # Shapes as its golden vectors have them: the description is what is in doubt.
    golden = load_golden(model.directory / GOLDEN_FILE)
    # A grader has no token vectors, and so none that tell.
    *earlier, last = sorted(golden.tokens_by_layer) or [model.layers]
    dims = int(golden.sentences.shape[1])
    return replace(model, dims=dims, layers=last, earlier_layers=tuple(earlier), catalog_version=0)


def _copies_of(config: ModelConfig, wanted: Copies) -> Copies:
    """Return the copies that are wanted, and where nothing is, those that there are."""
    threads = config.parameters[THREADS_PARAMETER].string_value if THREADS_PARAMETER in config.parameters else ""
    return Copies(
        instances=wanted.instances or sum(group.count for group in config.instance_group) or None,
        threads=int(threads) if wanted.threads is None and threads.isdecimal() else wanted.threads,
    )


def _shown(value: str) -> str:
    if len(value) <= _SHOWN_CHARACTERS:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{value[:_SHOWN_CHARACTERS]}… ({len(value)} characters, SHA-256 {digest})"


def _what_matters(config: ModelConfig) -> dict[str, str]:
    own = {name: value for name, value in own_parameters(config).items() if name not in _ANY_RELEASE}
    return {
        "name": repr(config.name),
        "backend": repr(config.backend),
        "max_batch_size": str(config.max_batch_size),
        **tensors_in(config),
        "instance_group kind": " and ".join(sorted(kinds_in(config))) or "nothing",
        "accelerators": repr(accelerators_in(config)),
        "version_policy": repr(_line(config.version_policy)),
        "response_cache": repr(_line(config.response_cache)),
        **{f"model_warmup {warmup.name}": repr(_line(warmup)) for warmup in config.model_warmup},
        **{f"gradewire.{name}": repr(value) for name, value in own.items()},
    }


def _line(message: Message) -> str:
    return str(text_format.MessageToString(message, as_one_line=True))


def _read(model: BuiltModel) -> ModelConfig:
    return read_config(model.directory / CONFIG_FILE)[0]
