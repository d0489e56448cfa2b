import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradewire_models.errors import ExportError
from gradewire_models.export.folder import find_source, read_folder, read_modules


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A sentence-transformers folder as they are published; its weights are never read here."""
    write(tmp_path / "config.json", {"model_type": "bert", "max_position_embeddings": 512})
    types = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in zip(paths, types, strict=True)
    ]
    write(tmp_path / "modules.json", modules)
    write(tmp_path / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 384, "do_lower_case": False})
    write(tmp_path / "README.md", "---\ntags: [a]\nlicense: apache-2.0\n---\n# A model\nlicense: mit\n")
    write(tmp_path / "model.safetensors", "weights")
    return tmp_path


def test_everything_a_folder_says(encoder: Path) -> None:
    folder = read_folder(encoder)
    assert (folder.directory, folder.model_type, folder.pooling) == (encoder, "bert", "cls")
    assert (folder.max_tokens, folder.lower_case, folder.licence) == (384, False, "apache-2.0")
    assert (folder.default_prompt, folder.prompts) == ("", {})
    assert folder.weight_sha256 == {"model.safetensors": hashlib.sha256(b"weights").hexdigest()}


def test_prompts_and_the_one_that_goes_before_every_text(encoder: Path) -> None:
    settings = {"prompts": {"query": "Find: ", "document": ""}, "default_prompt_name": "query"}
    write(encoder / "config_sentence_transformers.json", settings)
    folder = read_folder(encoder)
    assert (folder.default_prompt, folder.prompts) == ("Find: ", {"query": "Find: ", "document": ""})
    write(encoder / "config_sentence_transformers.json", {**settings, "default_prompt_name": None})
    assert read_folder(encoder).default_prompt == ""


def test_the_limit_of_the_text_comes_from_the_first_file_that_knows(encoder: Path) -> None:
    (encoder / "sentence_bert_config.json").rename(encoder / "sentence_roberta_config.json")
    write(encoder / "tokenizer_config.json", {"model_max_length": 128})
    assert read_folder(encoder).max_tokens == 384
    (encoder / "sentence_roberta_config.json").unlink()
    assert read_folder(encoder).max_tokens == 128
    write(encoder / "tokenizer_config.json", {"model_max_length": 10**30})
    assert read_folder(encoder).max_tokens == 512
    write(encoder / "config.json", {"model_type": "bert"})
    assert read_folder(encoder).max_tokens is None


@pytest.mark.parametrize("card", [None, "# No front matter\nlicense: mit\n", "---\ntags: [a]\n---\n"])
def test_a_licence_nobody_states_is_not_guessed(encoder: Path, card: str | None) -> None:
    (encoder / "README.md").unlink()
    if card is not None:
        write(encoder / "README.md", card)
    assert read_folder(encoder).licence == ""


def test_a_pooling_that_is_given_wins(encoder: Path) -> None:
    assert read_folder(encoder, pooling="last").pooling == "last"


def swap_weights(directory: Path, name: str) -> None:
    (directory / "model.safetensors").rename(directory / name)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda at: (at / "config.json").unlink(), "has no model_type"),
        (lambda at: write(at / "config.json", {"model_type": "t5", "is_encoder_decoder": True}), "encoder-decoder"),
        (lambda at: swap_weights(at, "pytorch_model.bin"), "pickle"),
        (lambda at: (at / "model.safetensors").unlink(), "no weights"),
        (lambda at: write(at / "adapter_config.json", {}), "adapter"),
        (lambda at: write(at / "sentence_bert_config.json", {"transformer_task": "fill-mask"}), "'fill-mask'"),
        (
            lambda at: write(at / "config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": "x"}),
            "default_prompt_name 'x' is not a prompt",
        ),
    ],
)
def test_what_is_not_exported_is_said(encoder: Path, damage: Callable[[Path], object], says: str) -> None:
    damage(encoder)
    with pytest.raises(ExportError, match=says):
        read_folder(encoder)


def test_a_directory_is_itself_and_its_path_is_not_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my-encoder").mkdir()
    source = find_source(str(tmp_path / "my-encoder"))
    assert (source.directory, source.origin, source.commit) == (tmp_path / "my-encoder", "my-encoder", "")
    monkeypatch.chdir(tmp_path / "my-encoder")
    assert find_source(".").origin == "my-encoder"


@pytest.mark.parametrize("wanted", ["./nowhere", "/nowhere", "a/b/c", "../x", "", "-x", "x y"])
def test_what_is_neither_directory_nor_id_is_refused_without_a_network(
    wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")  # beside a checkout there may be anything
    with pytest.raises(ExportError, match="neither a directory nor a hub ID"):
        find_source(wanted)


def test_a_directory_has_no_revisions(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="Leave out --revision"):
        find_source(str(tmp_path), revision="main")


TRANSFORMER = {"path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
DENSE = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}
MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}


def folder(directory: Path, modules: Any, pooling: Any = None) -> Path:
    (directory / "1_Pooling").mkdir()
    (directory / "modules.json").write_text(json.dumps(modules))
    (directory / "1_Pooling/config.json").write_text(json.dumps(MEAN if pooling is None else pooling))
    return directory


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [
        (MEAN, "mean"),
        ({"pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}, "last"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),
        ({"pooling_mode": "cls", "embedding_dimension": 8}, "cls"),
        ({"pooling_mode": ["lasttoken"]}, "last"),
    ],
)
def test_old_and_new_settings_of_pooling(tmp_path: Path, settings: dict[str, Any], pooling: str) -> None:
    chain = read_modules(folder(tmp_path, [TRANSFORMER, POOLING], settings), pooling_is_given=False)
    assert (chain.transformer, chain.pooling, chain.counts_prompt) == (tmp_path, pooling, True)


def test_the_encoder_may_lie_in_a_directory_of_its_own_and_under_a_newer_name(tmp_path: Path) -> None:
    modules = [
        {"path": "0_Transformer", "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.sentence_transformer.modules.pooling.Pooling"},
        NORMALIZE,
    ]
    pooling = {"pooling_mode": "mean", "include_prompt": False}
    chain = read_modules(folder(tmp_path, modules, pooling), pooling_is_given=False)
    assert (chain.transformer, chain.pooling, chain.counts_prompt) == (tmp_path / "0_Transformer", "mean", False)


@pytest.mark.parametrize("where", ["../other", "/etc", "1_Pooling/../../other"])
@pytest.mark.parametrize("module", [TRANSFORMER, POOLING])
def test_a_module_outside_of_the_folder_is_not_read(tmp_path: Path, where: str, module: dict[str, str]) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    modules = [{**each, "path": where} if each is module else each for each in (TRANSFORMER, POOLING)]
    with pytest.raises(ExportError, match="outside the model's folder"):
        read_modules(folder(inside, modules), pooling_is_given=False)


def test_a_plain_folder_has_no_pooling(tmp_path: Path) -> None:
    chain = read_modules(tmp_path, pooling_is_given=False)
    assert (chain.transformer, chain.pooling) == (tmp_path, None)


@pytest.mark.parametrize(
    ("modules", "pooling", "says"),
    [
        ([TRANSFORMER, POOLING, DENSE], MEAN, "'Dense' at '2_Dense'"),
        ([TRANSFORMER, TRANSFORMER], MEAN, "'Transformer'"),
        ([POOLING], MEAN, "'Pooling'"),
        ([], MEAN, "has no Transformer"),
        ({"a": 1}, MEAN, "not a list of modules"),
        ([{"type": 3}], MEAN, "not a list of modules"),
        ([TRANSFORMER, POOLING], {"pooling_mode_max_tokens": True}, "pools by max"),
        ([TRANSFORMER, POOLING], {"pooling_mode": "weightedmean"}, "pools by weightedmean"),
        ([TRANSFORMER, POOLING], {"pooling_mode": ["cls", "mean"]}, "pools by cls and mean"),
        ([TRANSFORMER, POOLING], {}, "pools by nothing"),
        ([TRANSFORMER, POOLING], [], "must contain a JSON object"),
    ],
)
def test_what_the_graph_cannot_express_is_refused_by_name(
    tmp_path: Path, modules: Any, pooling: Any, says: str
) -> None:
    with pytest.raises(ExportError, match=says):
        read_modules(folder(tmp_path, modules, pooling), pooling_is_given=False)


def test_a_pooling_that_is_given_replaces_one_that_cannot_be_exported(tmp_path: Path) -> None:
    directory = folder(tmp_path, [TRANSFORMER, POOLING], {"pooling_mode_max_tokens": True})
    assert read_modules(directory, pooling_is_given=True).pooling is None


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 4])
def test_a_file_that_is_not_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "modules.json").write_bytes(content)
    with pytest.raises(ExportError, match=r"cannot read .*modules\.json"):
        read_modules(tmp_path, pooling_is_given=False)
