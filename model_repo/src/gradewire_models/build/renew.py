"""Compare a built model's description with a fresh one, and rewrite an outdated description."""

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

# These fields may differ between releases for the same model.
_ANY_RELEASE = ("config_version", "catalog_version")
_SHOWN_CHARACTERS = 300


def find_differences(model: BuiltModel, expected: CatalogModel | None) -> list[str]:
    """Return how a model's config.pbtxt and warm-up files differ from the files that a build would write today.

    Ignore what operators may change: copies, GPUs, threads, queues, batching, and all parameters and fields that
    gradewire does not write. `expected` is None for an exported model.

    Raises:
        OSError: A file is not readable.
        ValueError: A file is invalid.
    """
    said, meant = (_what_matters(config) for config in (_read(model), _meant(model, expected, AS_IT_IS)))
    fields = [
        f"{name} is {_shown(said.get(name, 'missing'))}, but must be {_shown(meant.get(name, 'missing'))}"
        for name in dict.fromkeys([*meant, *said])
        if said.get(name) != meant.get(name)
    ]
    for name, content in warmup_files(model.max_tokens).items():
        path = model.directory / name
        if not path.is_file() or path.read_bytes() != content:
            fields.append(f"{name} is {'a different file' if path.exists() else 'missing'}")
    return fields


def renew(model: BuiltModel, expected: CatalogModel | None, copies: Copies = AS_IT_IS) -> bool:
    """Rewrite config.pbtxt and warm-up files if they are outdated or `copies` sets a value; return True if rewritten.

    The numbers of copies and threads stay unchanged unless `copies` sets them. All other manual changes are lost.

    Raises:
        OSError: A file is not readable or writable.
        ValueError: A file is invalid.
    """
    of_this_release = own_parameters(_read(model)).get("config_version") == CONFIG_VERSION
    if copies == AS_IT_IS and of_this_release and not find_differences(model, expected):
        return False
    config = _meant(model, expected, copies)
    write_warmup(model.directory, model.max_tokens)
    # Replace the file in one step, for concurrent readers.
    written = model.directory / f".{CONFIG_FILE}.new"
    write_config(written, config)
    written.replace(model.directory / CONFIG_FILE)
    return True


def renew_exported(repository: Path, name: str, copies: Copies = AS_IT_IS) -> tuple[BuiltModel, bool]:
    """Renew an exported model; return the model, and True if files were rewritten. Wait for a running export.

    Raises:
        ModelError: The model is missing or broken.
    """
    try:
        with workspace(repository, name, ignore):
            model = load_built(repository, name)
            written = renew(model, None, copies)
    except (OSError, ValueError) as error:
        raise BuildError(f"cannot renew the description of {name} in {repository}: {error}. Export it again") from error
    return load_built(repository, name), written


def _meant(model: BuiltModel, expected: CatalogModel | None, copies: Copies) -> ModelConfig:
    standing = _read(model)
    try:
        fingerprint = read_fingerprint(model.onnx_path)
    except DecodeError as error:
        raise ValueError(f"{model.onnx_path} is not an ONNX graph: {error}") from error
    if fingerprint is None:
        raise ValueError(f"{model.onnx_path} has no fingerprint")
    files = replace(files_in(own_parameters(standing)), fingerprint=fingerprint)
    wanted = _copies_of(standing, copies)
    if expected is not None:
        # Keep users' calibrations, which only the description contains.
        kept = merge(expected.metadata.calibrations, of_users(model.calibrations))
        metadata = replace(expected.metadata, calibrations=kept)
    else:
        metadata = _as_golden(model)
    config = make_config(metadata, files, serving_of_class(metadata.numeric_class, wanted))
    for name, text in to_parameters((), model.unreadable).items():
        config.parameters[PREFIX + name].CopyFrom(ModelParameter(string_value=text))
    return config


def _as_golden(model: BuiltModel) -> EncoderMetadata:
    # Read the shapes from the golden vectors, because the description may be wrong.
    golden = load_golden(model.directory / GOLDEN_FILE)
    # A grader has no token vectors, so its layers come from the description.
    *earlier, last = sorted(golden.tokens_by_layer) or [model.layers]
    dims = int(golden.sentences.shape[1])
    return replace(model, dims=dims, layers=last, earlier_layers=tuple(earlier), catalog_version=0)


def _copies_of(config: ModelConfig, wanted: Copies) -> Copies:
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
