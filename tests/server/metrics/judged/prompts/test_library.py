"""Which file a `prompt` parameter means."""

import pytest
from tests.support.judges.prompts import LAVE, VERDICT

from gradewire_proto.conventions.prompt_files import MAX_PROMPT_BYTES
from gradewire_server.domain.judge import Role
from gradewire_server.metrics.judged.prompt import fixed_turns
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS, PromptError, PromptLibrary, read_prompt
from gradewire_server.metrics.judged.prompts import library as prompt_library
from gradewire_server.metrics.judged.prompts.file import PromptFile
from gradewire_server.metrics.judged.prompts.shapes import COMPARE, DEMONSTRATION_SETS, SHAPES, SYNTHETIC
from gradewire_server.metrics.judged.view import View

METRICS = ("lave", "judge_grade", "judge_similarity", "judge_verdict", "compare", "synthetic")


@pytest.fixture
def library() -> PromptLibrary:
    return PromptLibrary([read_prompt(LAVE.encode())])


@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_has_a_prompt_of_its_own_with_all_variants(metric: str) -> None:
    file = PACKAGE_PROMPTS.find(metric, "")
    assert file.metric == metric
    assert file.title == (f"{metric}/1" if metric in {COMPARE, SYNTHETIC} else f"{metric}/2")
    assert set(file.variants) == set(SHAPES[metric])
    assert PACKAGE_PROMPTS.find(metric, file.title) is file
    assert PACKAGE_PROMPTS.find(metric, PACKAGE_PROMPTS.parameter(file)) is file
    assert file in PACKAGE_PROMPTS.files()


@pytest.mark.parametrize("metric", sorted({*SHAPES} - {COMPARE, SYNTHETIC}))
@pytest.mark.parametrize("digest", ["", "@3010f8d1c5c5"])
def test_of_a_prompt_that_was_removed_it_is_told_which_one_replaced_it(metric: str, digest: str) -> None:
    with pytest.raises(PromptError, match=f"^{metric}/1 is not known here; {metric}/2 replaced it: ask for that"):
        PACKAGE_PROMPTS.find(metric, f"{metric}/1{digest}")
    with pytest.raises(PromptError, match=f"^{metric}/3 is not known here; known: .*{metric}/2"):
        PACKAGE_PROMPTS.find(metric, f"{metric}/3")


@pytest.mark.parametrize(
    "title", [*(f"{metric}/2" for metric in sorted({*SHAPES} - {COMPARE, SYNTHETIC})), "lave_paper/1"]
)
def test_with_captions_instructions_speak_of_them_and_visual_demonstrations_have_some(title: str) -> None:
    metric = "lave" if title.startswith("lave") else title.partition("/")[0]
    file = PACKAGE_PROMPTS.find(metric, title)
    for name, variant in file.variants.items():
        if not variant.demonstrations:
            continue
        assert "image shows" in variant.system_with_caption
        assert "image shows" not in variant.system
        for kind in ("short", "binary"):
            turns = fixed_turns(file, name, kind, View(caption=True))
            asked = [turn.text for turn in turns if turn.role is Role.USER]
            assert len(asked) == 8
            assert all(text.startswith("Image: ") for text in asked)


def test_lave_has_demonstrations_of_each_kind() -> None:
    assert set(PACKAGE_PROMPTS.find("lave", "").demonstrations) == set(DEMONSTRATION_SETS)


def test_by_name_and_digest(library: PromptLibrary) -> None:
    file = read_prompt(LAVE.encode())
    for prompt in ("test-lave/1", f"test-lave/1@{file.digest}", f"test-lave/1@{file.digest[:8].upper()}"):
        assert library.find("lave", prompt).digest == file.digest
    assert library.parameter(file) == f"test-lave/1@{file.digest}"


def test_a_whole_text_is_read_once_right_or_wrong(library: PromptLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def reading(data: bytes) -> PromptFile:
        read.append(data)
        return read_prompt(data)

    monkeypatch.setattr(prompt_library, "read_prompt", reading)
    wrong = LAVE.replace("format = 1", "format = 77")
    for _ in range(3):
        library.find("lave", f"{LAVE}\n# read once")
        with pytest.raises(PromptError, match="format: 77 is not known") as caught:
            library.find("lave", wrong)
        assert caught.value.place == "format"
        assert len(caught.traceback) < 6
    assert len(read) == 2


def test_a_whole_text(library: PromptLibrary) -> None:
    other = LAVE.replace("Rate it.", "Rate this.")
    file = library.find("lave", other)
    assert file.variants["rating"].system == "Rate this."
    # Another file of the same name: only its text names it.
    assert library.parameter(file) == other
    assert library.find("lave", other) is file
    assert library.parameter(library.find("lave", LAVE)).startswith("test-lave/1@")


@pytest.mark.parametrize(
    "prompt",
    [
        "test-lave/2",
        "test-lave/1@" + "0" * 64,
        "test-lave/1@12",
        "test-lave",
        "lave.toml",
        "../../etc/passwd",
        "a = 1",
        VERDICT,
        "=" * (MAX_PROMPT_BYTES + 1),
        "=\ud800",
        "\x00",
        "",
    ],
    ids=lambda prompt: repr(prompt[:16]),
)
def test_what_cannot_be_used_is_refused(library: PromptLibrary, prompt: str) -> None:
    with pytest.raises(PromptError):
        library.find("lave", prompt)


def test_a_name_keeps_what_it_stands_for(library: PromptLibrary) -> None:
    again = library.with_file(read_prompt(LAVE.encode()))
    other = read_prompt(LAVE.replace("Rate it.", "Rate this.").encode())
    with pytest.raises(PromptError, match="another test-lave/1"):
        library.with_file(other)
    assert again.find("lave", "test-lave/1").text == LAVE
    assert len(again.files()) == 1


def test_a_file_is_added_to_another_library(library: PromptLibrary) -> None:
    verdict = read_prompt(VERDICT.encode())
    assert library.with_file(verdict).find(verdict.metric, verdict.title) is verdict
    with pytest.raises(PromptError, match="not known here"):
        library.find(verdict.metric, verdict.title)
