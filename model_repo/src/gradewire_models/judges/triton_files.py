"""Write the files that make a built judge's directory a Triton model: config.pbtxt and ``1/model.py``."""

import hashlib
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from tokenizers import Tokenizer

from gradewire_models.judges.catalog import Form
from gradewire_models.judges.cores import wire
from gradewire_models.judges.cores.rows import PADDED_FORMS
from gradewire_models.judges.description import TOKENIZER_FILE, Description, graph_file
from gradewire_models.repository._model_config_pb2 import (
    TYPE_FP64,
    TYPE_INT64,
    TYPE_STRING,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    ModelParameter,
    ModelQueuePolicy,
    ModelResponseCache,
)
from gradewire_models.repository.config import CONFIG_FILE, FIRST_VERSION, PREFIX, read_config, write_config
from gradewire_models.repository.serving import DEFAULT_TIMEOUT_US, MAX_QUEUE_SIZE, Copies

KIND = "judge"
"""The parameter ``gradewire.kind`` of a judge in Triton."""
MODEL_FILE = f"{FIRST_VERSION}/model.py"

# A batch answers all its questions at once, so a larger batch on a CPU would only delay the first answers.
_CPU_BATCH, _GPU_BATCH = 8, 64
# The sizes of runs on a CPU and on a GPU, without the prefix. The first is the embedded judge's.
_CPU_RUN_TOKENS, _GPU_RUN_TOKENS = 192, 8192

_PACKAGE = "gradewire_models"
_COPIED = ("__init__.py", "runtime.py", "processor.py", "judges/__init__.py")
_CORES = "judges/cores"
_ENTRY = "triton_model.py"
_OUTPUTS = {
    wire.PROBABILITIES: (TYPE_FP64, -1),
    wire.MASS: (TYPE_FP64, 1),
    wire.NEXT_ID: (TYPE_INT64, 1),
    wire.FINGERPRINT: (TYPE_INT64, 1),
    wire.TOKENIZER: (TYPE_STRING, 1),
}


def served_form(description: Description) -> Form | None:
    """Return the form that Triton serves: int8 if it is built, otherwise a form for GPUs; None without such a form."""
    forms: tuple[Form, ...] = ("int8", "fp16", "int4")
    return next((form for form in forms if form in description.forms), None)


def write_triton_files(
    directory: Path, description: Description, form: Form | None = None, copies: Copies | None = None
) -> bool:
    """Write or renew the files in a judge's `directory`; return True if a file changed.

    Without `form`, the form that is already served stays, or `served_form` is chosen. None in `copies` also keeps a
    value. A judge that is only built for llama.cpp gets no files.

    Raises:
        OSError: A file is not readable or writable.
        ValueError: The config.pbtxt in the directory is malformed.
    """
    config_path = directory / CONFIG_FILE
    standing = read_config(config_path) if config_path.is_file() else None
    if form is None:
        kept = standing[1].get("form") if standing else None
        form = next((each for each in description.forms if each == kept), served_form(description))
    if form is None or graph_file(form) is None:
        return False
    config = _config(directory, description, form, _copies(standing, copies or Copies()))
    wanted = {path: content for path, content in _code().items() if _content(directory / path) != content}
    changed = bool(wanted) or standing is None or standing[0] != config
    for path, content in wanted.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    if standing is None or standing[0] != config:
        write_config(config_path, config)
    return changed


def take_triton_files(source: Path, target: Path) -> None:
    """Copy the config.pbtxt of an earlier build, which has the operator's settings."""
    if (source / CONFIG_FILE).is_file():
        shutil.copyfile(source / CONFIG_FILE, target / CONFIG_FILE)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _code() -> dict[str, bytes]:
    """Return the code of a Triton model by path in the judge's directory."""
    package = files(_PACKAGE)
    cores = sorted(each.name for each in package.joinpath(_CORES).iterdir() if each.name.endswith(".py"))
    copied = [*_COPIED, *(f"{_CORES}/{name}" for name in cores if name != _ENTRY)]
    code = {f"{FIRST_VERSION}/{_PACKAGE}/{path}": package.joinpath(path).read_bytes() for path in copied}
    return code | {MODEL_FILE: package.joinpath(_CORES, _ENTRY).read_bytes()}


def _copies(standing: tuple[ModelConfig, Mapping[str, str]] | None, copies: Copies) -> tuple[int, int]:
    """Return the numbers of instances and threads."""
    instances, threads = 1, 1
    if standing is not None:
        instances = max(1, sum(group.count for group in standing[0].instance_group))
        threads = int(standing[1].get("threads", "1"))
    return copies.instances or instances, threads if copies.threads is None else copies.threads


def _config(directory: Path, description: Description, form: Form, copies: tuple[int, int]) -> ModelConfig:
    instances, threads = copies
    on_gpu = form in PADDED_FORMS
    graph = graph_file(form)
    vocabulary = Tokenizer.from_file(str(directory / TOKENIZER_FILE)).get_vocab(with_added_tokens=True)
    parameters = {
        "kind": KIND,
        "protocol": wire.PROTOCOL,
        "digest": description.digest(form),
        "numeric_class": description.numeric_classes[form],
        "form": form,
        "graph": str(graph),
        "graph_sha256": hashlib.sha256((directory / str(graph)).read_bytes()).hexdigest(),
        "tokenizer_sha256": description.tokenizer.sha256,
        "licence": description.licence,
        "chat_template": description.facts.chat_template,
        "eos_ids": " ".join(map(str, description.facts.eos_ids)),
        "max_tokens": str(description.facts.context_tokens),
        "vocabulary": str(max(vocabulary.values()) + 1),
        "threads": str(threads),
        "max_run_tokens": str(_GPU_RUN_TOKENS if on_gpu else _CPU_RUN_TOKENS),
    }
    config = ModelConfig(
        name=description.name,
        backend="python",
        max_batch_size=_GPU_BATCH if on_gpu else _CPU_BATCH,
        input=[
            # Triton's Python backend gets each request's own tensors, so their lengths may differ within a batch.
            ModelInput(name=wire.TOKENS, data_type=TYPE_INT64, dims=[-1], allow_ragged_batch=True),
            ModelInput(name=wire.LENGTHS, data_type=TYPE_INT64, dims=[4]),
        ],
        output=[ModelOutput(name=name, data_type=kind, dims=[size]) for name, (kind, size) in _OUTPUTS.items()],
        instance_group=[
            ModelInstanceGroup(
                count=instances, kind=ModelInstanceGroup.KIND_GPU if on_gpu else ModelInstanceGroup.KIND_CPU
            )
        ],
        dynamic_batching=ModelDynamicBatching(
            default_queue_policy=ModelQueuePolicy(
                timeout_action=ModelQueuePolicy.REJECT,
                default_timeout_microseconds=DEFAULT_TIMEOUT_US,
                allow_timeout_override=True,
                max_queue_size=MAX_QUEUE_SIZE,
            )
        ),
        # gradewire has its own cache of verdicts.
        response_cache=ModelResponseCache(enable=False),
    )
    for name, value in parameters.items():
        config.parameters[PREFIX + name].CopyFrom(ModelParameter(string_value=value))
    return config
