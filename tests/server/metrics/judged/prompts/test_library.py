"""Which file a `prompt` parameter means."""

import pytest
from tests.support.judges.prompts import LAVE, VERDICT

from gradewire_server.metrics.judged.prompts import MAX_BYTES, PROMPTS, PromptError, PromptShelf, read_prompt
from gradewire_server.metrics.judged.prompts.shapes import DEMONSTRATION_SETS, SHAPES

METRICS = ("lave", "judge_grade", "judge_similarity", "judge_verdict", "synthetic")


@pytest.fixture
def shelf() -> PromptShelf:
    shelf = PromptShelf()
    shelf.add(LAVE.encode())
    return shelf


@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_has_a_prompt_of_its_own_with_all_variants(metric: str) -> None:
    file = PROMPTS.find(metric, "")
    assert file.metric == metric
    assert file.title == f"{metric}/1"
    assert set(file.variants) == set(SHAPES[metric])
    assert PROMPTS.find(metric, file.title) is file
    assert PROMPTS.find(metric, PROMPTS.parameter(file)) is file
    assert file in PROMPTS.files()


def test_lave_has_demonstrations_of_each_kind() -> None:
    assert set(PROMPTS.find("lave", "").demonstrations) == set(DEMONSTRATION_SETS)


def test_by_name_and_digest(shelf: PromptShelf) -> None:
    file = read_prompt(LAVE.encode())
    for prompt in ("test-lave/1", f"test-lave/1@{file.digest}", f"test-lave/1@{file.digest[:8].upper()}"):
        assert shelf.find("lave", prompt).digest == file.digest
    assert shelf.parameter(file) == f"test-lave/1@{file.digest}"


def test_a_whole_text(shelf: PromptShelf) -> None:
    other = LAVE.replace("Rate it.", "Rate this.")
    file = shelf.find("lave", other)
    assert file.variants["rating"].system == "Rate this."
    # Another file of the same name: only its text names it.
    assert shelf.parameter(file) == other
    assert shelf.find("lave", other) is file
    assert shelf.parameter(shelf.find("lave", LAVE)).startswith("test-lave/1@")


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
        "=" * (MAX_BYTES + 1),
        "=\ud800",
        "\x00",
        "",
    ],
    ids=lambda prompt: repr(prompt[:16]),
)
def test_what_cannot_be_used_is_refused(shelf: PromptShelf, prompt: str) -> None:
    with pytest.raises(PromptError):
        shelf.find("lave", prompt)


def test_a_name_keeps_what_it_stands_for(shelf: PromptShelf) -> None:
    assert shelf.add(LAVE.encode()).title == "test-lave/1"
    with pytest.raises(PromptError, match="another test-lave/1"):
        shelf.add(LAVE.replace("Rate it.", "Rate this.").encode())
    assert shelf.find("lave", "test-lave/1").text == LAVE
    assert len(shelf.files()) == 1
