import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from gradewire_models.errors import ExportError
from gradewire_models.export.folder import EncoderFolder, SourceFolder
from gradewire_models.export.plan import ExportOptions, check_options, make_plan, notes_on

FOLDER = EncoderFolder(
    directory=Path("somewhere"),
    model_type="bert",
    pooling="mean",
    default_prompt="",
    prompts={},
    counts_prompt=True,
    max_tokens=256,
    lower_case=False,
    licence="mit",
    weight_sha256={"model.safetensors": "aa"},
)
LOCAL = SourceFolder(Path("somewhere/my-encoder"), "my-encoder", commit="")
HUB = SourceFolder(Path("cache"), "people/encoder-v1", commit="f" * 40)


def test_the_folder_decides_what_nobody_else_does() -> None:
    plan = make_plan(FOLDER, ExportOptions(), LOCAL)
    assert (plan.name, plan.pooling, plan.prefix, plan.max_tokens) == ("my-encoder", "mean", "", 256)
    assert (plan.earlier_layers, plan.licence, notes_on(FOLDER, ExportOptions())) == ((), "mit", [])
    assert plan.source == "my-encoder: model.safetensors sha256:aa"
    assert plan.build_command == "gradewire models export somewhere/my-encoder"


@pytest.mark.parametrize(
    ("name", "expected"), [("", "my-encoder-fp16-cuda"), ("n", "n-fp16-cuda"), ("n-fp16-cuda", "n-fp16-cuda")]
)
def test_a_model_for_gpus_says_so_in_its_name_and_in_its_command(name: str, expected: str) -> None:
    plan = make_plan(FOLDER, ExportOptions(name=name, numeric_class="fp16-cuda"), LOCAL)
    assert plan.name == expected
    assert plan.build_command.endswith("--target gpu --precision fp16 --accelerator cuda")


def test_options_win_and_are_in_the_command_that_makes_it_again() -> None:
    options = ExportOptions(
        name="other", pooling="mean", prefix="a b: ", max_tokens=64, token_layers=(3, 1, 3), licence="Apache-2.0"
    )
    plan = make_plan(FOLDER, options, HUB)
    assert (plan.name, plan.prefix, plan.max_tokens, plan.licence) == ("other", "a b: ", 64, "Apache-2.0")
    assert plan.earlier_layers == (1, 3)
    assert plan.source == f"people/encoder-v1@{'f' * 40}"
    words = shlex.split(plan.build_command)
    assert words[:6] == ["gradewire", "models", "export", "people/encoder-v1", "--revision", "f" * 40]
    assert words[words.index("--prefix") + 1] == "a b: "


def test_a_prompt_of_the_folder_is_a_prefix_until_it_is_switched_off() -> None:
    folder = replace(FOLDER, default_prompt="query: ", prompts={"query": "query: "})
    assert make_plan(folder, ExportOptions(), LOCAL).prefix == "query: "
    assert make_plan(folder, ExportOptions(prefix=""), LOCAL).prefix == ""


def test_a_suffix_of_the_folder_stays_until_it_is_switched_off() -> None:
    folder = replace(FOLDER, suffix=" in a word")
    assert make_plan(FOLDER, ExportOptions(), LOCAL).suffix == ""
    assert make_plan(folder, ExportOptions(), LOCAL).suffix == " in a word"
    plan = make_plan(folder, ExportOptions(suffix=""), LOCAL)
    assert plan.suffix == ""
    words = shlex.split(plan.build_command)
    assert words[words.index("--suffix") + 1] == ""


def test_what_somebody_might_want_otherwise_is_noted() -> None:
    folder = replace(FOLDER, max_tokens=8192, prompts={"query": "query: ", "text": ""}, licence="")
    plan = make_plan(folder, ExportOptions(), LOCAL)
    assert plan.max_tokens == 512
    cut, prompts, licence = notes_on(folder, ExportOptions())
    assert [
        "Allow up to 8192" in cut,
        "prompts for query" in prompts,
        "licence is unknown" in licence,
    ] == [True] * 3
    settled = ExportOptions(prefix="", max_tokens=8192, licence="mit")
    assert notes_on(folder, settled) == []
    assert make_plan(folder, settled, LOCAL).max_tokens == 8192


@pytest.mark.parametrize(
    ("folder", "options", "source", "says"),
    [
        (replace(FOLDER, pooling=None), ExportOptions(), LOCAL, r"--pooling mean\|cls\|last\|pooler"),
        (FOLDER, ExportOptions(), replace(LOCAL, origin="with space"), "with --name"),
        (FOLDER, ExportOptions(), replace(LOCAL, origin=""), "with --name"),
        (FOLDER, ExportOptions(), replace(HUB, origin="x/all-MiniLM-L6-v2"), "name of a catalog model"),
        (replace(FOLDER, counts_prompt=False), ExportOptions(prefix="p: "), LOCAL, "excludes a prompt's tokens"),
    ],
)
def test_what_cannot_be_decided_is_asked_for(
    folder: EncoderFolder, options: ExportOptions, source: SourceFolder, says: str
) -> None:
    with pytest.raises(ExportError, match=says):
        make_plan(folder, options, source)


@pytest.mark.parametrize(
    "options", [ExportOptions(name="../up"), ExportOptions(max_tokens=0), ExportOptions(token_layers=(0,))]
)
def test_options_out_of_range_are_refused_before_anything_is_fetched(options: ExportOptions) -> None:
    with pytest.raises(ExportError):
        check_options(options)
