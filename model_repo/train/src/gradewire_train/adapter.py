"""What is trained: all weights, or PEFT's low-rank matrices beside some of them (Hu et al. 2021, LoRA)."""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import peft
import torch

from gradewire_train.encoder import TrainedEncoder
from gradewire_train.errors import TrainingError
from gradewire_train.recipes.grader_recipe import GraderTraining
from gradewire_train.recipes.recipe import Training


def prepare(encoder: TrainedEncoder, training: Training | GraderTraining) -> None:
    """Puts the adapter into `encoder`, whose matrices alone get gradients then; or lets all weights get them.

    Raises:
        TrainingError: No layer has such a name, or there are fewer layers.
    """
    model = encoder.model
    if training.method == "full":
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = training.dropout
        model.requires_grad_(True)  # noqa: FBT003 - torch's own signature
        return
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    ends = sorted(training.targets or {name.rpartition(".")[2] for name in linear})
    wanted = sorted(name for name in linear if name.rpartition(".")[2] in ends and _layer(name) >= training.first_layer)
    missing = [end for end in ends if not any(name.rpartition(".")[2] == end for name in linear)]
    if missing or not wanted:
        known = ", ".join(sorted({name.rpartition(".")[2] for name in linear}))
        raise TrainingError(
            f"targets, first_layer: no linear layer is left of {missing or ends} from layer {training.first_layer} on; "
            f"this encoder has {known} in {model.config.num_hidden_layers} layers"
        )
    shape = peft.LoraConfig(
        r=training.rank,
        lora_alpha=training.alpha,
        target_modules=wanted if training.first_layer else ends,
        lora_dropout=training.dropout,
        bias="none",
    )
    # The matrices are drawn here, whatever was drawn before.
    torch.manual_seed(training.seed)
    with _without_warnings():
        encoder.model = peft.get_peft_model(model, shape)


@contextmanager
def _without_warnings() -> Iterator[None]:
    # PEFT reads a property that transformers is about to rename, and expects a file about added tokens.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
        warnings.filterwarnings("ignore", message="Could not find a config file", category=UserWarning)
        yield


def _layer(name: str) -> int:
    numbers = [int(part) for part in name.split(".") if part.isdecimal()]
    return numbers[0] if numbers else -1


def trained_weights(model: Any) -> dict[str, Any]:
    """A copy of all that is trained, by name, on the CPU."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters() if parameter.requires_grad}


def set_weights(model: Any, weights: Mapping[str, Any]) -> None:
    """Puts trained weights back.

    Raises:
        TrainingError: They are not those of this model: other names or shapes.
    """
    own = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if {name: each.shape for name, each in own.items()} != {name: each.shape for name, each in weights.items()}:
        raise TrainingError("the checkpoint's weights are not those of this recipe: another rank, targets or base")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])


def save_trained(encoder: TrainedEncoder, training: Training | GraderTraining, directory: Path) -> None:
    """Writes what was trained.

    An adapter in PEFT's format, its matrices in float16; all weights as a folder of transformers with the files of
    sentence-transformers, which ``gradewire models export`` reads. The directory is made when it is not there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if isinstance(training, GraderTraining) or training.method == "adapter":
        with _without_warnings():
            matrices = peft.get_peft_model_state_dict(encoder.model)
            weights = {name: each.to(torch.float16).contiguous() for name, each in matrices.items()}
            encoder.model.save_pretrained(directory, state_dict=weights, safe_serialization=True)
        # safetensors makes the file readable by its owner only.
        (directory / "adapter_model.safetensors").chmod(0o644)
        _plain_adapter_config(directory / "adapter_config.json", encoder.base.origin)
        # PEFT's empty card has the base's path on this machine.
        (directory / "README.md").unlink(missing_ok=True)
        return
    encoder.model.save_pretrained(directory)
    encoder.tokenizer.save(str(directory / "tokenizer.json"))
    _write(
        directory / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": training.max_tokens},
    )
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate(kinds.items())
    ]
    _write(directory / "modules.json", modules)
    _write(directory / "sentence_bert_config.json", {"max_seq_length": training.max_tokens})
    (directory / "1_Pooling").mkdir(exist_ok=True)
    mode = {"last": "lasttoken"}.get(encoder.pooling, encoder.pooling)
    _write(directory / "1_Pooling" / "config.json", {"pooling_mode": mode})


def _plain_adapter_config(path: Path, base: str) -> None:
    # PEFT writes a set in no order, and the base's path on this machine.
    found = json.loads(path.read_text(encoding="utf-8"))
    found["target_modules"] = sorted(found["target_modules"])
    found["base_model_name_or_path"] = base
    _write(path, dict(sorted(found.items())))


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
