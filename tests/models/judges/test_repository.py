import json
import logging
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from gradewire_models.errors import ModelBrokenError, ModelNotBuiltError
from gradewire_models.judges.description import (
    Description,
    JudgeMetadata,
    read_description,
    write_description,
)
from gradewire_models.judges.repository import default_judge_repository, list_judges, load_judge
from gradewire_models.repository.digest import FileRecord

FACTS = JudgeMetadata("chatml", 512, (1, 2))


def place(repository: Path, name: str = "made-up") -> Description:
    """A judge of three files that nobody could run, which nobody does here."""
    directory = repository / name
    (directory / "int8").mkdir(parents=True)
    files = {}
    for path in ("tokenizer.json", "int8/model.onnx", "int8/model.onnx.data"):
        content = f"{name} {path}".encode()
        (directory / path).write_bytes(content)
        files[path] = FileRecord(len(content), sha256(content).hexdigest())
    description = Description(
        name=name,
        title="A judge of no catalog",
        licence="MIT",
        origin="somebody/made-up",
        test_only=False,
        remarks=("Made up.",),
        facts=FACTS,
        tokenizer=files.pop("tokenizer.json"),
        forms={"int8": files},
        numeric_classes={"int8": "int8-row-cpu"},
    )
    write_description(description, directory)
    return description


def test_a_description_reads_back_as_it_was_written(tmp_path: Path) -> None:
    description = place(tmp_path)
    assert read_description(tmp_path / "made-up") == description


def test_a_judge_is_described(tmp_path: Path) -> None:
    description = place(tmp_path)
    judge = load_judge(tmp_path, "made-up")
    assert judge.onnx_path == tmp_path / "made-up/int8/model.onnx"
    assert (judge.gguf_path, judge.forms) == (None, ("int8",))
    assert judge.digests == {"int8": description.digest("int8")}
    assert (judge.title, judge.remarks) == ("A judge of no catalog", ("Made up.",))
    assert [found.name for found in list_judges(tmp_path)] == ["made-up"]


def test_what_the_catalog_says_of_a_judge_comes_before_what_was_said_when_it_was_built(tmp_path: Path) -> None:
    place(tmp_path, "smollm2-135m-instruct")
    judge = load_judge(tmp_path, "smollm2-135m-instruct")
    assert judge.title.startswith("SmolLM2")
    assert "no better than chance" in judge.remarks[0]


def test_the_digest_covers_all_that_decides_an_answer(tmp_path: Path) -> None:
    one = place(tmp_path)
    files = one.forms["int8"]
    others = [
        replace(one, tokenizer=FileRecord(one.tokenizer.bytes, "0" * 64)),
        replace(one, facts=replace(FACTS, chat_template="other")),
        replace(one, numeric_classes={"int8": "int8-row-gpu"}),
        *(replace(one, forms={"int8": {**files, path: FileRecord(1, "0" * 64)}}) for path in files),
    ]
    assert len({one.digest("int8"), *(other.digest("int8") for other in others)}) == len(others) + 1
    assert replace(one, title="another", remarks=()).digest("int8") == one.digest("int8")


def test_one_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelNotBuiltError, match="gradewire models build smollm2-135m-instruct"):
        load_judge(tmp_path, "smollm2-135m-instruct")
    with pytest.raises(ModelNotBuiltError, match="serve Qwen/"):
        load_judge(tmp_path, "qwen2.5-7b-instruct-awq")
    for name in ("", "..", "a/b", "unheard-of"):
        with pytest.raises(ModelNotBuiltError, match="The catalog of judges has qwen2"):
            load_judge(tmp_path, name)
    assert list_judges(tmp_path / "not there") == []


def change_value(directory: Path) -> None:
    path = directory / "judge.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    said["facts"]["chat_template"] = "alpaca"
    path.write_text(json.dumps(said), encoding="utf-8")


def change_format(directory: Path) -> None:
    path = directory / "judge.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace("gradewire-judge/1", "gradewire-judge/9"), encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda directory: (directory / "int8/model.onnx").write_bytes(b"longer than it was, much"), "has 24 bytes"),
        (lambda directory: (directory / "int8/model.onnx").unlink(), "No such file"),
        (lambda directory: (directory / "judge.json").write_text("{}", encoding="utf-8"), "judge.json is invalid"),
        (lambda directory: (directory / "judge.json").write_text("[1]", encoding="utf-8"), "judge.json is invalid"),
        (lambda directory: (directory / "judge.json").write_bytes(b"\xff{"), "codec can't decode"),
        (change_value, "was changed after the build"),
        (change_format, "different format"),
    ],
)
def test_a_broken_one_is_told_once_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], object], said: str
) -> None:
    place(tmp_path)
    place(tmp_path, "whole")
    spoil(tmp_path / "made-up")
    with pytest.raises(ModelBrokenError, match=said):
        load_judge(tmp_path, "made-up")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [judge.name for judge in list_judges(tmp_path)] == ["whole"]
    assert len(caplog.records) == 1


def test_bytes_of_the_right_number_are_looked_at_too(tmp_path: Path) -> None:
    place(tmp_path)
    path = tmp_path / "made-up/int8/model.onnx"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(ModelBrokenError, match=r"int8/model\.onnx has SHA-256"):
        load_judge(tmp_path, "made-up")


def test_a_directory_of_another_name_is_not_believed(tmp_path: Path) -> None:
    place(tmp_path)
    (tmp_path / "made-up").rename(tmp_path / "renamed")
    with pytest.raises(ModelBrokenError, match="describes 'made-up'"):
        load_judge(tmp_path, "renamed")


def test_judges_lie_beside_the_encoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(tmp_path / "models"))
    assert default_judge_repository() == tmp_path / "judges"
    assert default_judge_repository(Path("/srv/encoders")) == Path("/srv/judges")


def test_reading_needs_nothing_that_builds_or_runs_models() -> None:
    program = (
        "import sys, gradewire_models.judges.repository as j; j.catalog_judges(); "
        "print(sorted({'numpy', 'onnx', 'onnxruntime', 'gguf', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
