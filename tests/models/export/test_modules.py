import json
from pathlib import Path
from typing import Any

import pytest

from gradewire_models.errors import ExportError
from gradewire_models.export.modules import read_modules

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
    with pytest.raises(ExportError, match="outside of the model's folder"):
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
        ([], MEAN, "names no Transformer"),
        ({"a": 1}, MEAN, "not a list of modules"),
        ([{"type": 3}], MEAN, "not a list of modules"),
        ([TRANSFORMER, POOLING], {"pooling_mode_max_tokens": True}, "pools by max"),
        ([TRANSFORMER, POOLING], {"pooling_mode": "weightedmean"}, "pools by weightedmean"),
        ([TRANSFORMER, POOLING], {"pooling_mode": ["cls", "mean"]}, "pools by cls and mean"),
        ([TRANSFORMER, POOLING], {}, "pools by nothing"),
        ([TRANSFORMER, POOLING], [], "should hold a JSON object"),
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
