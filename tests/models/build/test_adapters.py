import hashlib
import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tests.models.build.tiny_adapters import ALPHA, RANK, settings_of, shapes_of, tensors_of, write_adapter
from tests.models.catalog.test_loading import TEXT
from tests.support.examples import example_count
from tests.support.models.tiny_models import LAYERS, MAX_TOKENS, Package

from gradewire_models.build.adapters import merge_adapter, read_adapter_config, user_adapted
from gradewire_models.build.install import BuildResult, build_model
from gradewire_models.build.reference import load_golden
from gradewire_models.build.renew import renew_exported
from gradewire_models.build.verify import verify_built
from gradewire_models.build.weights import linear_layers
from gradewire_models.catalog.entries import ADAPTER_CONFIG, ADAPTER_WEIGHTS, AdapterMetadata, AdapterSource
from gradewire_models.catalog.loading import find_model, load_catalog
from gradewire_models.cli import build as cli_build
from gradewire_models.cli.group import models
from gradewire_models.errors import BuildError, CatalogError, DigestMismatchError, VerificationError
from gradewire_models.repository.config import read_config
from gradewire_models.repository.digest import file_sha256
from gradewire_models.repository.serving import Copies


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return write_adapter(tmp_path / "adapter", "bert")


def merged(bert: Package, adapter: Path) -> dict[str, np.ndarray]:
    return merge_adapter(load_file(bert.weights), adapter, linear_layers(bert.model))


def change_tensors(adapter: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    tensors = dict(load_file(adapter / ADAPTER_WEIGHTS))
    change(tensors)
    save_file(tensors, adapter / ADAPTER_WEIGHTS)


def change_settings(adapter: Path, **changes: Any) -> None:
    (adapter / ADAPTER_CONFIG).write_text(json.dumps(settings_of("bert", **changes)), encoding="utf-8")


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_weights_get_the_scaled_product_and_nothing_else_changes(
    packages: dict[str, Package], tmp_path: Path, architecture: Any
) -> None:
    package = packages[architecture]
    adapter = write_adapter(tmp_path / "adapter", architecture)
    before, low = load_file(package.weights), tensors_of(architecture)
    after = merge_adapter(before, adapter, linear_layers(package.model))
    changed = {f"{name}.weight" for name in shapes_of(architecture)}
    assert {name for name, tensor in after.items() if not np.array_equal(tensor, before[name])} == changed
    for name in shapes_of(architecture):
        narrow, wide = (low[f"base_model.model.{name}.lora_{side}.weight"].astype(np.float64) for side in "AB")
        expected = before[f"{name}.weight"].astype(np.float64) + ALPHA / RANK * (wide @ narrow)
        found = after[f"{name}.weight"]
        assert found.dtype == np.float32
        # Rounded once: no further from the exact value than its nearest float32, but for float64's own last bits.
        assert np.all(np.abs(found - expected) <= np.spacing(np.abs(found)) * 0.5000001)


def test_layers_to_transform_leaves_the_others_alone(bert: Package, adapter: Path) -> None:
    change_settings(adapter, layers_to_transform=[1, LAYERS - 1])
    change_tensors(adapter, lambda tensors: [tensors.pop(name) for name in list(tensors) if ".layer.0." in name])
    before, after = load_file(bert.weights), merged(bert, adapter)
    moved = {name.split(".")[2] for name in after if not np.array_equal(after[name], before[name])}
    assert moved == {"1", str(LAYERS - 1)}


def test_matrices_in_float32_and_a_pooler_nobody_reads_are_taken(bert: Package, adapter: Path) -> None:
    before = merged(bert, adapter)
    pooler = {f"base_model.model.pooler.dense.lora_{side}.weight": np.ones((2, 2), np.float32) for side in "AB"}
    change_tensors(
        adapter,
        lambda tensors: tensors.update({k: v.astype(np.float32) for k, v in tensors.items()}, **pooler),
    )
    after = merged(bert, adapter)
    assert all(np.array_equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"peft_type": "IA3"}, "peft_type must be 'LORA', not 'IA3'"),
        ({"r": 0}, "r must be greater than or equal to 1, not 0"),
        ({"r": True}, "r must be a valid integer"),
        ({"r": "8"}, "r must be a valid integer"),
        ({"lora_alpha": 0}, "lora_alpha must be greater than 0"),
        ({"lora_alpha": float("nan")}, "lora_alpha must be"),
        ({"lora_alpha": 10**400}, "lora_alpha must be"),
        ({"target_modules": ".*query"}, "target_modules must be a valid array"),
        ({"target_modules": []}, "target_modules must have at least 1 item"),
        (
            {"target_modules": ["gate_proj"]},
            r"target_modules \['gate_proj'\] in layers all match no linear",
        ),
        ({"layers_to_transform": [LAYERS]}, "match no linear layer of this encoder"),
        ({"layers_to_transform": "1"}, "layers_to_transform must be a valid"),
        ({"bias": "all"}, 'bias is "all", which cannot be merged into the weights'),
        ({"use_dora": True}, "use_dora is true, which cannot"),
        ({"use_rslora": True}, "use_rslora is true, which cannot"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out is true, which cannot"),
        ({"modules_to_save": ["embeddings"]}, "modules_to_save is"),
        ({"rank_pattern": {"query": 4}}, "rank_pattern is"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights must be"),
        ({"what_comes_next_year": {"k": "v" * 500}}, "what_comes_next_year is"),
        ({"base_model_name_or_path": 5}, "base_model_name_or_path must be a valid string"),
    ],
)
def test_a_setting_that_cannot_be_merged_is_named(
    bert: Package, adapter: Path, changes: dict[str, Any], says: str
) -> None:
    change_settings(adapter, **changes)
    with pytest.raises(BuildError, match=says) as raised:
        merged(bert, adapter)
    assert ADAPTER_CONFIG in str(raised.value)
    assert len(str(raised.value)) < 500


FIRST = "base_model.model.encoder.layer.0.attention.self.query.lora_A.weight"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tensors: tensors.pop(FIRST), "query.lora_A.weight is missing"),
        (
            lambda tensors: tensors.update({"more": np.zeros(1, np.float32)}),
            "more belongs to none of the adapted layers",
        ),
        (lambda tensors: tensors.update({FIRST: tensors[FIRST][:1]}), r"must be F16 or F32 \[3, 24\], found F16 \[1"),
        (lambda tensors: tensors.update({FIRST: tensors[FIRST].astype(np.int32)}), "found I32"),
        (lambda tensors: tensors.update({FIRST: tensors[FIRST] * np.nan}), "NaN or infinite"),
        (lambda tensors: tensors.update({FIRST: np.full_like(tensors[FIRST], np.inf)}), "NaN or infinite"),
        (
            lambda tensors: tensors.update({k: np.full(v.shape, 3e38, np.float32) for k, v in tensors.items()}),
            "range",
        ),
    ],
)
def test_matrices_that_do_not_fit_are_named(
    bert: Package, adapter: Path, change: Callable[[dict[str, np.ndarray]], object], says: str
) -> None:
    change_tensors(adapter, change)
    with pytest.raises(BuildError, match=says) as raised:
        merged(bert, adapter)
    assert ADAPTER_WEIGHTS in str(raised.value)


class _Bomb:
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (open, ("/nonexistent/loaded", "w"))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 100, b"\xff" * 8 + b"{}", pickle.dumps(_Bomb()), (10**9).to_bytes(8, "little") + b"{", b"{" * 5000],
)
def test_a_file_that_is_none_is_an_error_of_ours(bert: Package, adapter: Path, content: bytes) -> None:
    (adapter / ADAPTER_WEIGHTS).write_bytes(content)
    with pytest.raises(BuildError, match="cannot read the adapter"):
        merged(bert, adapter)


def test_a_huge_file_is_not_read(bert: Package, adapter: Path) -> None:
    for name, size in ((ADAPTER_WEIGHTS, 1 << 40), (ADAPTER_CONFIG, 1 << 32)):
        content = (adapter / name).read_bytes()
        with (adapter / name).open("r+b") as sparse:
            sparse.truncate(size)
        with pytest.raises(BuildError, match=f"{name} has {size} bytes"):
            merged(bert, adapter)
        (adapter / name).write_bytes(content)


def test_weights_of_another_shape_than_the_catalog_says_are_named(bert: Package, adapter: Path) -> None:
    deeper = replace(bert.model, layers=LAYERS + 1)
    with pytest.raises(BuildError, match=rf"have no encoder\.layer\.{LAYERS}\."):
        merge_adapter(load_file(bert.weights), adapter, linear_layers(deeper))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=example_count(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.sampled_from([*settings_of("bert"), "anything"]), value=_json)
def test_any_setting_is_read_or_refused_by_name(adapter: Path, field: str, value: object) -> None:
    change_settings(adapter, **{field: value})
    try:
        found = read_adapter_config(adapter / ADAPTER_CONFIG)
    except BuildError as error:
        assert field in str(error)  # noqa: PT017 - either way is right, and this one says why
    else:
        assert found.r >= 1
        assert found.scale > 0
        assert found.target_modules


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, '{"peft_type": "LORA", "r": ' + "9" * 5000 + "}"])
def test_settings_that_are_no_json_object_are_an_error_of_ours(adapter: Path, text: str) -> None:
    (adapter / ADAPTER_CONFIG).write_text(text, encoding="utf-8")
    with pytest.raises(BuildError, match=ADAPTER_CONFIG):
        read_adapter_config(adapter / ADAPTER_CONFIG)


SAID = {"base": "tiny-bert", "licence": "MIT", "max_tokens": 50, "recipe_sha256": "0" * 64, "text_form": "sfve"}


@pytest.fixture
def adapter_user_adapter(tmp_path: Path) -> Path:
    return write_adapter(tmp_path / "my-adapter", "bert", said=SAID)


@pytest.fixture
def build(bert: Package, adapter_user_adapter: Path, tmp_path: Path) -> Callable[..., BuildResult]:
    """Builds the adapter on the tiny BERT into tmp_path/repository."""

    def run(name: str = "") -> BuildResult:
        return build_model(
            user_adapted(adapter_user_adapter, bert.model, name), tmp_path / "repository", wheels=bert.wheels
        )

    return run


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_the_graph_agrees_with_a_reference_that_never_merges(
    packages: dict[str, Package], tiny_repository: Path, tmp_path: Path, architecture: Any
) -> None:
    base = packages[architecture]
    model = user_adapted(write_adapter(tmp_path / "mine", architecture), base.model)
    result = build_model(model, tmp_path / "repository", wheels=base.wheels)
    assert result.built
    assert {check.name for check in result.checks} > {"sentence vectors", "token vectors", "batch invariance"}
    assert all(check.passed for check in result.checks)
    # And the adapter is no ornament: the vectors are far from the base's.
    of_base = load_golden(tiny_repository / base.model.name / "golden.npz")
    golden = load_golden(result.model.directory / "golden.npz")
    assert np.sum(golden.sentences * of_base.sentences, axis=1).min() < 0.95


def test_a_merge_gone_wrong_is_not_put_in_place(
    build: Callable[..., BuildResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flipped(weight: Any, narrow: Any, wide: Any, scale: float) -> Any:
        return (weight - scale * (wide @ narrow)).astype(np.float32)

    monkeypatch.setattr("gradewire_models.build.adapters._merge", flipped)
    with pytest.raises(VerificationError, match="lowest cosine"):
        build()
    assert not (tmp_path / "repository/my-adapter").exists()


def test_the_model_says_what_it_is_made_of(
    build: Callable[..., BuildResult], adapter_user_adapter: Path, bert: Package
) -> None:
    model = build().model
    pins = "".join(
        f"{file_sha256(adapter_user_adapter / name)}  {name}\n" for name in (ADAPTER_CONFIG, ADAPTER_WEIGHTS)
    )
    _, facts = read_config(model.directory / "config.pbtxt")
    assert facts["adapter_base"] == "tiny-bert"
    assert facts["adapter_sha256"] == hashlib.sha256(pins.encode()).hexdigest()
    assert (facts["text_form"], facts["licence"], facts["base"]) == ("sfve", "MIT", "")
    assert model.remarks == (
        'trained for metric sfve, on "Question: … Answer: …"; other metrics send texts in other formats',
    )
    assert facts["origin"] == f"{adapter_user_adapter} on random"
    assert (
        facts["build_command"] == f"gradewire models build --adapter {adapter_user_adapter} --name my-adapter tiny-bert"
    )
    assert facts["source"] == bert.model.sources[0].requirement
    assert (model.name, model.max_tokens, model.layers, model.bertscore, model.calibrations) == (
        *("my-adapter", 50, LAYERS),
        *(None, ()),
    )


def test_without_gradewires_own_file_the_base_decides(bert: Package, tmp_path: Path) -> None:
    model = user_adapted(write_adapter(tmp_path / "plain", "bert"), bert.model)
    assert (model.max_tokens, model.licence, model.adapter and model.adapter.text_form) == (MAX_TOKENS, "", "")
    assert AdapterMetadata(base="tiny-bert", sha256="0" * 64).remark == ""


def test_the_same_adapter_is_built_once_and_another_replaces_it(
    build: Callable[..., BuildResult], adapter_user_adapter: Path
) -> None:
    first, again = build("mine"), build("mine")
    assert (first.built, again.built) == (True, False)
    assert again.model.digest == first.model.digest
    write_adapter(adapter_user_adapter, "bert", seed=1, said=SAID)
    other = build("mine")
    assert (other.built, other.model.version) == (True, 2)
    assert other.model.digest != first.model.digest
    write_adapter(adapter_user_adapter, "bert", seed=1, said=SAID, lora_alpha=5)
    assert build("mine").model.digest != other.model.digest
    write_adapter(adapter_user_adapter, "bert", said=SAID)
    assert build("mine").model.digest == first.model.digest


def test_it_is_verified_and_described_anew_without_its_folder(
    build: Callable[..., BuildResult], adapter_user_adapter: Path, tmp_path: Path
) -> None:
    before = build("mine").model
    for path in adapter_user_adapter.iterdir():
        path.unlink()
    repository = tmp_path / "repository"
    assert all(check.passed for check in verify_built(repository, "mine", None))
    config = before.directory / "config.pbtxt"
    config.write_text(config.read_text().replace('"ONNX', '"X').replace("KIND_CPU", "KIND_GPU"))
    assert not all(check.passed for check in verify_built(repository, "mine", None))
    renewed, written = renew_exported(repository, "mine", Copies(instances=3))
    assert written
    assert (renewed.adapter, renewed.licence) == (before.adapter, "MIT")
    assert all(check.passed for check in verify_built(repository, "mine", None))


def test_an_adapter_that_changes_while_it_is_built_is_refused(
    bert: Package, adapter_user_adapter: Path, tmp_path: Path
) -> None:
    model = user_adapted(adapter_user_adapter, bert.model)
    write_adapter(adapter_user_adapter, "bert", seed=1)
    with pytest.raises(DigestMismatchError, match=ADAPTER_WEIGHTS):
        build_model(model, tmp_path / "repository", wheels=bert.wheels)
    assert not (tmp_path / "repository/my-adapter").exists()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda at: (at / ADAPTER_CONFIG).unlink(), "not an adapter in PEFT's format: adapter_config.json is missing"),
        (lambda at: (at / ADAPTER_WEIGHTS).rename(at / "adapter_model.bin"), "adapter_model.bin is a pickle, which"),
        (lambda at: write_adapter(at, "bert", base_model_name_or_path="/data/e5-small/"), "is '/data/e5-small/', not"),
        (lambda at: write_adapter(at, "bert", said={"base": "all-MiniLM-L6-v2"}), "belongs to 'all-MiniLM-L6-v2', not"),
        (
            lambda at: write_adapter(at, "bert", said={"base_sha256": "0" * 64}),
            "base_sha256 does not match the weights",
        ),
        (
            lambda at: write_adapter(at, "bert", said={"max_tokens": 0}),
            "max_tokens must be greater than",
        ),
        (
            lambda at: write_adapter(at, "bert", said={"max_tokens": MAX_TOKENS + 1}),
            f"at most {MAX_TOKENS}, the limit of",
        ),
        (lambda at: write_adapter(at, "bert", said={"licence": ["MIT"]}), "licence must be a valid string"),
        (lambda at: (at / "gradewire.json").write_text("[]"), "must contain a JSON object"),
    ],
)
def test_a_folder_that_is_no_adapter_of_this_base_is_refused(
    bert: Package, adapter_user_adapter: Path, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(adapter_user_adapter)
    with pytest.raises(BuildError, match=re.escape(says)):
        user_adapted(adapter_user_adapter, bert.model)


def test_names_and_bases_that_cannot_be_are_refused(bert: Package, adapter_user_adapter: Path) -> None:
    with pytest.raises(BuildError, match="is the name of a catalog model"):
        user_adapted(adapter_user_adapter, bert.model, "all-MiniLM-L6-v2")
    with pytest.raises(BuildError, match="is no valid model name"):
        user_adapted(adapter_user_adapter, bert.model, "../mine")
    with pytest.raises(BuildError, match="is no valid model name"):
        user_adapted(adapter_user_adapter, bert.model, "mine\n")
    with pytest.raises(BuildError, match=r"is built from all-MiniLM-L6-v2, .* Use all-MiniLM-L6-v2"):
        user_adapted(adapter_user_adapter, find_model("all-MiniLM-L6-v2-int8"))
    with pytest.raises(BuildError, match="is built from tiny-bert"):
        user_adapted(adapter_user_adapter, user_adapted(adapter_user_adapter, bert.model))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(models, [str(argument) for argument in arguments])


def test_the_command_builds_lists_and_verifies(
    bert: Package, adapter_user_adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A catalog of this test's own; all else is what users run.
    monkeypatch.setattr(cli_build, "find_model", {"tiny-bert": bert.model}.__getitem__)
    place = ("--model-repository", tmp_path / "repository")
    built = run(
        "build", "--adapter", adapter_user_adapter, "--name", "mine", "--wheels", bert.wheels, "tiny-bert", *place
    )
    assert built.exit_code == 0, built.output
    assert re.search(r"mine: built, digest [0-9a-f]{64}", built.output)
    assert re.search(r"mine: not in the catalog, adapter on tiny-bert, digest", run("list", *place).output)
    assert run("verify", "mine", *place).exit_code == 0
    assert "mine: already built" in run("build", "mine", *place).output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--name", "mine"], "--name needs --adapter"),
        (["--adapter", ".", "--all"], "--adapter needs a single catalog encoder"),
        (["--adapter", ".", "all-MiniLM-L6-v2", "all-mpnet-base-v2"], "--adapter needs a single catalog encoder"),
        (["--adapter", ".", "--target", "gpu"], "does not work with --all or --target gpu"),
        (["--adapter", ".", "--name", "mine", "smollm2-135m-instruct"], "--adapter needs a single catalog encoder"),
        (["--adapter", ".", "--name", "mine", "nothing"], "the catalog has no model 'nothing'"),
        (["--adapter", ".", "--name", "mine"], "is not an adapter in PEFT's format"),
        (["--adapter", "./nowhere"], "does not exist"),
    ],
)
def test_what_the_command_cannot_do_is_said(tmp_path: Path, arguments: list[str], says: str) -> None:
    result = run("build", *arguments, "--model-repository", tmp_path)
    assert result.exit_code != 0
    assert says in " ".join(result.output.split())


ENTRY = """
[[adapted]]
name = "mine"
base = "all-MiniLM-L6-v2"
title = "for tests"
licence = "MIT"
origin = "random"
max_tokens = 128
text_form = "sfve"
digest = ""

[adapted.files]
"adapter_config.json" = "{pin}"
"adapter_model.safetensors" = "{pin}"
""".replace("{pin}", "0" * 64)


def test_an_entry_of_the_catalog_is_its_base_with_other_weights(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(TEXT + ENTRY, encoding="utf-8")
    mine, base = load_catalog(path)["mine"], load_catalog(path)["all-MiniLM-L6-v2"]
    assert isinstance(mine.adapter, AdapterSource)
    assert (mine.adapter.base, mine.adapter.text_form, mine.max_tokens) == (base.name, "sfve", 128)
    assert (mine.sources, mine.files, mine.package) == (base.sources, base.files, base.name)
    assert (mine.default, mine.base, mine.build_hint) == (False, "", "gradewire models build mine")
    # Measured of the base's vectors: of no worth for these.
    assert base.bertscore is not None
    assert (mine.bertscore, mine.calibrations) == (None, ())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'base = "all-MiniLM-L6-v2"\ntitle = "for',
            'base = "ember"\ntitle = "for',
            "base must be a [[model]] in this catalog",
        ),
        ('base = "all-MiniLM-L6-v2"\ntitle = "for', 'title = "for', "base is missing"),
        ("max_tokens = 128\ntext", "max_tokens = 257\ntext", "max_tokens must be at most 256"),
        ('licence = "MIT"\n', "", "licence is missing"),
        ('licence = "MIT"\n', 'licence = "MIT"\ndims = 3\n', "dims is unknown"),
        ('text_form = "sfve"', "text_form = 1", "text_form must be a valid string"),
        ('name = "mine"', 'name = "all-mpnet-base-v2"', "listed twice"),
        ('name = "mine"', 'name = "../mine"', "name must be a name of letters"),
        ('"adapter_config.json" = "0', '"adapter_config.json" = "x', "64 lower-case hex"),
        ('"adapter_config.json"', '"pickle.bin"', "files must be adapter_model.safetensors and adapter_config.json"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "catalog.toml"
    assert ENTRY.count(old) == 1
    path.write_text(TEXT + ENTRY.replace(old, new), encoding="utf-8")
    with pytest.raises(CatalogError, match=re.escape(says)):
        load_catalog(path)


def test_shipped_adapters_are_the_pinned_ones_small_and_mergeable() -> None:
    for model in load_catalog().values():
        if model.adapter is not None:
            assert {name: file_sha256(model.adapter.directory / name) for name in model.adapter.files} == dict(
                model.adapter.files
            )
            # Everybody who installs the package downloads all of them.
            most = 12_000_000 if model.dims > 384 else 3_000_000
            assert sum(path.stat().st_size for path in model.adapter.directory.iterdir()) < most
            said = json.loads((model.adapter.directory / "gradewire.json").read_text(encoding="utf-8"))
            assert said["base_sha256"] == model.files["model.safetensors"]
            assert (said["max_tokens"], said["text_form"]) == (model.max_tokens, model.adapter.text_form)
            same = user_adapted(model.adapter.directory, find_model(model.adapter.base), "mine")
            assert replace(same.adapter, directory=model.adapter.directory) == model.adapter
