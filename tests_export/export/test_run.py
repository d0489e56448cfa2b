import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
import pytest
import torch
import transformers
from click.testing import CliRunner
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from tests_export.conftest import MAX_TOKENS, TEXTS, Folder, expected_vectors
from tokenizers import Tokenizer

from gradewire_models.build.renew import renew_exported
from gradewire_models.build.verify import verify_built
from gradewire_models.cli.group import models
from gradewire_models.errors import ExportError, VerificationError
from gradewire_models.export.exporter import EXPORTERS, BareEncoder, export_through_optimum, trace
from gradewire_models.export.folder import Pooling
from gradewire_models.export.plan import ExportOptions
from gradewire_models.export.run import ExportResult, export_model
from gradewire_models.repository._model_config_pb2 import ModelInstanceGroup
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import CONFIG_FILE, read_config
from gradewire_models.repository.serving import Copies
from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.tokenizer import TextTokenizer

PROMPT = {"prompts": {"text": "the cat "}, "default_prompt_name": "text"}


class Forgetful(BareEncoder):
    """Pads like the real one and attends to padding: what an exporter makes that folded the mask away."""

    def forward(self, input_ids: Any, attention_mask: Any) -> tuple[Any, ...]:
        found = super().forward(input_ids, torch.ones_like(attention_mask))
        # The mask stays among the inputs.
        return (found[0] + 0 * attention_mask.sum(), *found[1:])


def encode(model: BuiltModel, texts: list[str]) -> tuple[list[list[int]], NDArray[np.float32]]:
    """Token ids and vectors, all texts in one batch with id 0 as padding, as the server does it."""
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
    ids = [encoding.ids for encoding in tokenizer.encode_batch([model.prefix + text for text in texts])]
    padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
    mask = np.zeros_like(padded)
    for row, text in enumerate(ids):
        padded[row, : len(text)], mask[row, : len(text)] = text, 1
    session = onnxruntime.InferenceSession(str(model.onnx_path), providers=["CPUExecutionProvider"])
    found: NDArray[np.float32] = session.run(["sentence_embedding"], {"input_ids": padded, "attention_mask": mask})[0]
    return ids, found


def check(result: ExportResult, repository: Path, folder: Folder) -> None:
    """The model is in place, verifies, and gives the vectors of transformers."""
    assert result.model == load_built(repository, result.model.name)
    assert len(result.checks) >= 9
    assert all(one.passed for one in (*result.checks, *verify_built(repository, result.model.name, None)))
    ids, found = encode(result.model, TEXTS)
    assert max(map(len, ids)) == result.model.max_tokens
    np.testing.assert_allclose(found, expected_vectors(folder.model, ids, result.model.pooling), atol=1e-5)


def test_a_sentence_transformers_folder_needs_no_options_and_a_wrong_graph_does_not_replace_it(
    make_folder: Callable[..., Folder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder("electra", pooling="mean")
    steps: list[str] = []
    result = export_model(
        str(folder.path), tmp_path, ExportOptions(), report=lambda progress: steps.append(progress.step)
    )
    check(result, tmp_path, folder)
    model = result.model
    assert (model.name, model.pooling, model.max_tokens, model.dims) == ("tiny-electra", "mean", MAX_TOKENS, 24)
    assert (model.layers, model.earlier_layers, model.licence) == (2, (), "")
    assert steps == [
        "looking for the model",
        "loading the weights",
        "computing the reference",
        "writing the graph",
        "verifying",
    ]
    assert str(folder.path).encode() not in model.onnx_path.read_bytes()

    monkeypatch.setitem(EXPORTERS, "optimum", trace)
    monkeypatch.setattr("gradewire_models.export.exporter.BareEncoder", Forgetful)
    with pytest.raises(VerificationError, match="sentence vectors match torch"):
        export_model(str(folder.path), tmp_path, ExportOptions())
    assert load_built(tmp_path, "tiny-electra") == model
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tiny-electra.lock", "tiny-electra"]


def test_positions_that_are_found_by_padding_ids_and_the_models_own_pooler(
    make_folder: Callable[..., Folder], tmp_path: Path
) -> None:
    folder = make_folder("roberta")
    options = ExportOptions(name="sfve", pooling="pooler", max_tokens=MAX_TOKENS, token_layers=(1, 1))
    result = export_model(str(folder.path), tmp_path, options)
    check(result, tmp_path, folder)
    assert result.model.earlier_layers == (1,)


def test_a_decoder_with_its_last_token_and_a_prompt(make_folder: Callable[..., Folder], tmp_path: Path) -> None:
    folder = make_folder("llama", pooling="lasttoken", settings={"config_sentence_transformers.json": PROMPT})
    result = export_model(str(folder.path), tmp_path, ExportOptions())
    check(result, tmp_path, folder)
    assert (result.model.pooling, result.model.prefix) == ("last", "the cat ")


SUFFIX = " . no yes"
OWN = {"pooling": "last", "prefix": "the ", "suffix": SUFFIX, "max_tokens": 24, "licence": "MIT"}


@pytest.mark.parametrize("model_type", ["llama", "qwen2"])
def test_a_suffix_stays_in_texts_that_are_cut_and_its_last_token_is_the_vector(
    make_folder: Callable[..., Folder], tmp_path: Path, model_type: str
) -> None:
    """The folder's gradewire.json sets everything, and a server's tokenizer gives the ids."""
    folder = make_folder(model_type, settings={"gradewire.json": OWN})
    model = export_model(str(folder.path), tmp_path, ExportOptions()).model
    assert (model.pooling, model.prefix, model.suffix) == ("last", "the ", SUFFIX)
    assert (model.max_tokens, model.licence) == (24, "MIT")

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder.path)
    ends = tokenizer(SUFFIX)["input_ids"]
    expected = []
    for text in TEXTS:
        whole = tokenizer(f"the {text}{SUFFIX}")["input_ids"]
        expected.append(whole if len(whole) <= 24 else [*whole[: 24 - len(ends)], *ends])
    server = TextTokenizer(model.tokenizer_path, max_tokens=24, prefix=model.prefix, suffix=model.suffix)
    tokenized = server.encode(TEXTS)
    assert [text.ids.tolist() for text in tokenized] == expected
    assert [text.truncated for text in tokenized] == [
        len(tokenizer(f"the {text}{SUFFIX}").input_ids) > 24 for text in TEXTS
    ]
    assert 0 < sum(text.truncated for text in tokenized) < len(TEXTS)

    session = onnxruntime.InferenceSession(str(model.onnx_path), providers=["CPUExecutionProvider"])
    vectors = expected_vectors(folder.model, expected, "last")
    for left in (False, True):
        padded = np.zeros((len(expected), 24), np.int64)
        mask = np.zeros_like(padded)
        for row, ids in enumerate(expected):
            at = slice(24 - len(ids), 24) if left else slice(len(ids))
            padded[row, at], mask[row, at] = ids, 1
        found = session.run(["sentence_embedding"], {"input_ids": padded, "attention_mask": mask})[0]
        np.testing.assert_allclose(found, vectors, atol=1e-5)


def test_the_command_says_how_texts_are_read(make_folder: Callable[..., Folder], tmp_path: Path) -> None:
    folder = make_folder("qwen2", settings={"gradewire.json": OWN})
    done = CliRunner().invoke(models, ["export", str(folder.path), "--model-repository", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "texts are read as 'the … . no yes'" in done.output
    assert "weights in" not in done.output


def test_options_override_the_folders_suffix_and_a_suffix_needs_room(
    make_folder: Callable[..., Folder], tmp_path: Path
) -> None:
    folder = make_folder("qwen2", settings={"gradewire.json": OWN})
    model = export_model(str(folder.path), tmp_path, ExportOptions(suffix="</s>", prefix="")).model
    assert (model.prefix, model.suffix) == ("", "</s>")
    (ids,) = TextTokenizer(model.tokenizer_path, max_tokens=24, prefix="", suffix="</s>").encode(["cat " * 90])
    assert (len(ids.ids), ids.ids[-1]) == (24, 2)
    with pytest.raises(ExportError, match="prefix and suffix alone have 4 tokens or more"):
        export_model(str(folder.path), tmp_path, ExportOptions(max_tokens=4))
    folder = make_folder("qwen2", settings={"gradewire.json": {**OWN, "pooling": "best"}})
    with pytest.raises(ExportError, match=r"gradewire\.json: pooling: "):
        export_model(str(folder.path), tmp_path, ExportOptions())


def drop_weight(directory: Path) -> None:
    weights = load_file(directory / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})


def change_config(directory: Path, **values: Any) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def custom_code(directory: Path) -> None:
    change_config(directory, model_type="mine", auto_map={"AutoConfig": "mine.C", "AutoModel": "mine.M"})
    (directory / "mine.py").write_text("raise SystemExit('ran the code of a model')")


@pytest.mark.parametrize(
    ("damage", "options", "says"),
    [
        (drop_weight, ExportOptions(), r"lacks these weights.*encoder\.layer\.1\.output\.dense\.weight"),
        (custom_code, ExportOptions(), "without running the model's code, which we never do"),
        (lambda at: change_config(at, model_type="unheard-of"), ExportOptions(), "cannot load"),
        (lambda at: (at / "model.safetensors").write_bytes(b"torn"), ExportOptions(), "cannot load"),
        (lambda _: None, ExportOptions(max_tokens=41), r"does not accept 41 tokens .*. Lower --max-tokens to 40$"),
        (lambda _: None, ExportOptions(token_layers=(2,)), "must be between 1 and 1"),
    ],
)
def test_what_cannot_be_exported_leaves_nothing(
    make_folder: Callable[..., Folder],
    tmp_path: Path,
    damage: Callable[[Path], object],
    options: ExportOptions,
    says: str,
) -> None:
    folder = make_folder("bert", pooling="mean")
    damage(folder.path)
    with pytest.raises(ExportError, match=says):
        export_model(str(folder.path), tmp_path, options)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_pooler_that_is_not_there_is_not_made_up(make_folder: Callable[..., Folder], tmp_path: Path) -> None:
    for model_type in ("electra", "llama"):
        folder = make_folder(model_type)
        with pytest.raises(ExportError, match="has no pooler"):
            export_model(str(folder.path), tmp_path, ExportOptions(pooling="pooler"))


@pytest.mark.parametrize(
    ("exporter", "model_type", "pooling"),
    [
        (export_through_optimum, "bert", "cls"),
        (export_through_optimum, "roberta", "mean"),
        (export_through_optimum, "llama", "last"),
        (trace, "roberta", "cls"),
    ],
)
def test_both_exporters_give_the_vectors_of_transformers_and_the_same_bytes_again(
    make_folder: Callable[..., Folder],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    exporter: Callable[..., onnx.ModelProto],
    model_type: str,
    pooling: Pooling,
) -> None:
    monkeypatch.setitem(EXPORTERS, "optimum", exporter)
    folder = make_folder(model_type)
    options = ExportOptions(pooling=pooling, max_tokens=MAX_TOKENS, token_layers=(1,))
    result = export_model(str(folder.path), tmp_path, options)
    check(result, tmp_path, folder)
    assert result.model.earlier_layers == (1,)
    assert result.notes[-1:] == ("the licence is unknown. Set it with --licence",)
    if exporter is export_through_optimum:
        again = export_model(str(folder.path), tmp_path / "again", options)
        assert again.model.digest == result.model.digest


def test_what_optimum_does_not_know_is_exported_by_torch_and_said(
    make_folder: Callable[..., Folder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder("bert", pooling="mean")

    def unknown(*_: object, **__: object) -> NoReturn:
        raise ExportError("optimum's ONNX exporter does not support bert")

    monkeypatch.setitem(EXPORTERS, "optimum", unknown)
    result = export_model(str(folder.path), tmp_path, ExportOptions())
    check(result, tmp_path, folder)
    assert (
        result.notes[-1] == "exported with torch, because optimum failed: optimum's ONNX exporter does not support bert"
    )


def test_an_architecture_without_a_configuration_in_optimum(make_folder: Callable[..., Folder], tmp_path: Path) -> None:
    model = make_folder("bert").model
    model.config.model_type = "unheard-of"
    with pytest.raises(ExportError, match="does not support unheard-of"):
        export_through_optimum(model, ["last_hidden_state"], MAX_TOKENS, tmp_path)


@pytest.mark.parametrize(("model_type", "accelerator"), [("bert", "cuda"), ("llama", "tensorrt")])
def test_a_model_for_gpus_is_in_fp16_inside_and_says_how_to_run_it(
    make_folder: Callable[..., Folder], tmp_path: Path, model_type: str, accelerator: str
) -> None:
    folder = make_folder(model_type)
    options = ExportOptions(pooling="mean", max_tokens=MAX_TOKENS, numeric_class=f"fp16-{accelerator}")
    model = export_model(str(folder.path), tmp_path, options).model
    assert model.name == f"tiny-{model_type}-fp16-{accelerator}"
    assert not model.on_cpu
    graph = onnx.load(model.onnx_path)
    types = {tensor.data_type for tensor in graph.graph.initializer if len(tensor.dims) == 2}
    assert types == {onnx.TensorProto.FLOAT16}
    (node,) = [node for node in graph.graph.node if "sentence_embedding" in node.output]
    assert not node.input[0].startswith("encoder/")  # pooled and normalised in float32
    config, described = read_config(model.directory / CONFIG_FILE)
    assert [(group.count, group.kind) for group in config.instance_group] == [(1, ModelInstanceGroup.KIND_GPU)]
    (asked,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert asked.name == accelerator
    assert (asked.parameters.get("precision_mode", "") == "FP16") is (accelerator == "tensorrt")
    assert f"--target gpu --precision fp16 --accelerator {accelerator}" in described["build_command"]
    ids, found = encode(model, TEXTS)
    expected = expected_vectors(folder.model, ids, "mean")
    assert np.einsum("ij,ij->i", found, expected).min() > 0.9999
    assert np.abs(found - expected).max() > 1e-6  # it is another arithmetic
    renewed, written = renew_exported(tmp_path, model.name, Copies(instances=2))
    assert written
    assert renewed.digest == model.digest
    (group,) = read_config(model.directory / CONFIG_FILE)[0].instance_group
    assert (group.count, group.kind) == (2, ModelInstanceGroup.KIND_GPU)
