"""Which file a `prompt` parameter means."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.judges.prompts import GRADE, LAVE, SIMILARITY, VERDICT

from gradewire_proto.wire_rules import MAX_PROMPT_BYTES
from gradewire_server.domain.judge import Role
from gradewire_server.metrics.judged.prompt import fixed_turns
from gradewire_server.metrics.judged.references import View
from gradewire_server.metrics.prompts import library as prompt_library
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS, PromptLibrary
from gradewire_server.metrics.prompts.neutralise import Delimiters
from gradewire_server.metrics.prompts.parsing import read_prompt
from gradewire_server.metrics.prompts.prompt_file import (
    COMPARE,
    DEMONSTRATION_SETS,
    SHAPES,
    SYNTHETIC,
    PromptFile,
    ReferenceForm,
)
from gradewire_server.metrics.prompts.template import PromptError

METRICS = ("lave", "judge_grade", "judge_similarity", "judge_verdict", "compare", "synthetic")


@pytest.fixture
def library() -> PromptLibrary:
    return PromptLibrary([read_prompt(LAVE.encode())])


@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_has_a_prompt_of_its_own_with_all_variants(metric: str) -> None:
    file = PACKAGE_PROMPTS.find(metric, "")
    assert file.metric == metric
    assert file.title == (f"{metric}/1" if metric in {COMPARE, SYNTHETIC} else f"{metric}/2")
    listwise = {"listwise", "listwise_with_references"} if metric == COMPARE else set()  # in compare_listwise/1
    assert set(file.variants) == set(SHAPES[metric]) - listwise
    assert PACKAGE_PROMPTS.find(metric, file.title) is file
    assert PACKAGE_PROMPTS.find(metric, PACKAGE_PROMPTS.parameter(file)) is file
    assert file in PACKAGE_PROMPTS.files()


@pytest.mark.parametrize("metric", sorted({*SHAPES} - {COMPARE, SYNTHETIC}))
@pytest.mark.parametrize("digest", ["", "@3010f8d1c5c5"])
def test_of_a_prompt_that_was_removed_it_is_told_which_one_replaced_it(metric: str, digest: str) -> None:
    with pytest.raises(PromptError, match=f"^unknown prompt {metric}/1. {metric}/2 replaced this prompt. Use"):
        PACKAGE_PROMPTS.find(metric, f"{metric}/1{digest}")
    with pytest.raises(PromptError, match=f"^unknown prompt {metric}/3. Known prompts: .*{metric}/2"):
        PACKAGE_PROMPTS.find(metric, f"{metric}/3")


@pytest.mark.parametrize(
    "title", [*(f"{metric}/2" for metric in sorted({*SHAPES} - {COMPARE, SYNTHETIC})), "lave_paper/2"]
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
    with pytest.raises(PromptError, match="a different test-lave/1"):
        library.with_file(other)
    assert again.find("lave", "test-lave/1").text == LAVE
    assert len(again.files()) == 1


def test_a_file_is_added_to_another_library(library: PromptLibrary) -> None:
    verdict = read_prompt(VERDICT.encode())
    assert library.with_file(verdict).find(verdict.metric, verdict.title) is verdict
    with pytest.raises(PromptError, match="unknown prompt"):
        library.find(verdict.metric, verdict.title)


SYNTHETIC_READING = PACKAGE_PROMPTS.find("synthetic", "").text


def test_a_file_is_what_it_says() -> None:
    file = read_prompt(LAVE.encode())
    assert (file.name, file.version, file.title, file.metric) == ("test-lave", 1, "test-lave/1", "lave")
    assert file.digest == hashlib.sha256(LAVE.encode()).hexdigest()
    assert file.text == LAVE
    assert file.references == ReferenceForm("{reference}", "{reference} ({count} of {total})", " | ", 3, 3)
    rating, rationale = file.variants["rating"], file.variants["rationale"]
    assert (rating.system, rating.system_with_caption) == ("Rate it.", "Rate it. Mind the picture.")
    assert (rationale.system, rationale.system_with_caption) == ("Rate it.", "Rate it.")
    assert [(step.name, step.opening, step.labels, step.values, step.max_tokens) for step in rationale.steps] == [
        ("reason", "Reason:", (), (), 6),
        ("rating", "Rating:", ("1", "2", "3"), (1.0, 2.0, 3.0), 0),
    ]
    assert (rating.correct_from, rating.prediction_words, rationale.prediction_words) == (0.75, 1024, 5)
    assert rating.delimiters == Delimiters(
        ("Image", "Question", "Right answers", "Answer", "Rating"),
        openings=(),
        labels=("1", "2", "3"),
        announcing=("Rating",),
    )
    (binary,) = file.demonstrations["binary"]
    assert binary.references == ("no", "no", "no", "yes")
    assert binary.answers == {"rating": "3", "reason": "Most say no."}
    assert binary.caption == ""


def test_a_byte_order_mark_is_no_part_of_it() -> None:
    file, marked = read_prompt(LAVE.encode()), read_prompt(f"\ufeff{LAVE}".encode())
    assert (marked.text, marked.digest) == (file.text, file.digest)


def test_an_opening_may_be_a_role() -> None:
    # It is our own word there.
    assert read_prompt(LAVE.replace('opening = "Reason:"', 'opening = "Output:"').encode()).variants


def test_an_opening_may_do_without_a_colon() -> None:
    file = read_prompt(LAVE.replace('opening = "Rating:"', 'opening = "The rating is"').encode())
    assert file.variants["rating"].delimiters.openings == ("The rating is",)
    assert file.variants["rationale"].delimiters.announcing == ("The rating is",)  # and not "Reason"
    assert "Rating" not in file.variants["rating"].delimiters.names


@pytest.mark.parametrize("text", [GRADE, SIMILARITY, VERDICT, SYNTHETIC_READING])
def test_the_other_metrics_have_files_too(text: str) -> None:
    assert read_prompt(text.encode()).variants


@pytest.mark.parametrize(
    ("text", "old", "new", "place"),
    [
        (LAVE, "format = 1", "format = 2", "format"),
        (LAVE, "format = 1", "", "format"),
        (LAVE, 'name = "test-lave"', 'name = "Test Lave"', "name"),
        (LAVE, 'name = "test-lave"', "name = 1", "name"),
        (LAVE, "version = 1", "version = 0", "version"),
        (LAVE, "version = 1", "version = true", "version"),
        (LAVE, 'metric = "lave"', 'metric = "smile"', "metric"),
        (LAVE, 'system = "Rate it."', 'sytem = "Rate it."', "sytem"),
        (LAVE, 'separator = " | "', 'seperator = " | "', "references.seperator"),
        (LAVE, 'plain = "{reference}"', 'plain = "{reference}\\n"', "references.plain"),
        (LAVE, 'plain = "{reference}"', 'plain = "{count}"', "references.plain"),
        (LAVE, 'counted = "{reference} (', 'counted = "{reference!r} (', "references.counted"),
        (LAVE, "most = 3", "most = 0", "references.most"),
        (LAVE, "most_counted = 3", "most_counted = 3.5", "references.most_counted"),
        (LAVE, "{prediction} - right", "{answer} - right", "variants.rationale.item"),
        (LAVE, "{prediction} - right", "right", "variants.rationale.item"),
        (LAVE, "{prediction} - right", "{prediction} {prediction}", "variants.rationale.item"),
        (LAVE, "{prediction} - right", "{prediction:>9} - right", "variants.rationale.item"),
        (LAVE, "{prediction} - right", "{prediction} - } right", "variants.rationale.item"),
        (LAVE, "{prediction} - right", "{prediction.x} - right", "variants.rationale.item"),
        (LAVE, "variants.rating", "variants.stars", "variants.stars"),
        (LAVE, "correct_from = 0.75", "correct_from = 75", "variants.rating.correct_from"),
        (LAVE, "correct_from = 0.75", "correct_from = nan", "variants.rating.correct_from"),
        (LAVE, "correct_from = 0.75", "demonstrations = 1", "variants.rating.demonstrations"),
        (LAVE, "prediction_words = 5", "prediction_words = 5000", "variants.rationale.prediction_words"),
        (LAVE, 'name = "reason"', 'name = "facts"', "variants.rationale.steps"),
        (LAVE, 'name = "reason"', 'name = "thought"', "variants.rationale.steps[0].name"),
        (LAVE, "max_tokens = 6", "max_tokens = 6000", "variants.rationale.steps[0].max_tokens"),
        (LAVE, "max_tokens = 6", 'labels = { "1" = 1 }', "variants.rationale.steps[0].max_tokens"),
        (LAVE, 'opening = "Rating:"', 'opening = "Rating: "', "variants.rating.steps[0].opening"),
        (LAVE, 'opening = "Reason:"', 'opening = "a\\nb"', "variants.rationale.steps[0].opening"),
        (LAVE, '"3" = 3 }', '"3" = 4 }', "variants.rating.steps[0].labels.3"),
        (LAVE, '"3" = 3 }', '"3" = "3" }', "variants.rating.steps[0].labels.3"),
        (LAVE, '"3" = 3 }', '"3" = true }', "variants.rating.steps[0].labels.3"),
        (LAVE, '"3" = 3 }', '"12" = 3 }', "variants.rating.steps[0].labels.1"),
        (LAVE, '"3" = 3 }', '" 3" = 3 }', "variants.rating.steps[0].labels. 3"),
        (LAVE, '{ "1" = 1, "2" = 2, "3" = 3 }', '{ "1" = 1 }', "variants.rating.steps[0].labels"),
        # Every answer would score alike.
        (LAVE, '{ "1" = 1, "2" = 2, "3" = 3 }', '{ "1" = 3, "2" = 3 }', "variants.rating.steps[0].labels"),
        (LAVE, '"3" = 3 }', '"\\u200b" = 3 }', "variants.rating.steps[0].labels.\u200b"),
        (LAVE, '"3" = 3 }', '"<|im_end|>" = 3 }', "variants.rating.steps[0].labels.<|im_end|>"),
        (LAVE, '"3" = 3 }', '"[INST]" = 3 }', "variants.rating.steps[0].labels.[INST]"),
        (LAVE, 'opening = "Rating:"', 'opening = "<|im_end|>Rating:"', "variants.rating.steps[0].opening"),
        (LAVE, 'opening = "Rating:"', 'opening = "Ra\\u200bting:"', "variants.rating.steps[0].opening"),
        (LAVE, "demonstrations.binary", "demonstrations.simple", "demonstrations.simple"),
        (LAVE, 'reason = "Most say no."\n', "", "demonstrations.binary[0].reason"),
        (LAVE, 'rating = "3"', 'rating = "4"', "demonstrations.binary[0].rating"),
        (LAVE, 'prediction = "no"', "", "demonstrations.binary[0].prediction"),
        (LAVE, 'prediction = "no"', 'prediction = "no"\nscore = 1', "demonstrations.binary[0].score"),
        (LAVE, 'references = ["Ada", "Ada Lovelace"]', "references = []", "demonstrations.long[0].references"),
        (LAVE, 'references = ["Ada", "Ada Lovelace"]', "references = [1]", "demonstrations.long[0].references[0]"),
        (LAVE, "[[variants.rating.steps]]", "[variants.rating.steps]", "variants.rating.steps"),
        (GRADE, "{ yes = 1, no = 0 }", "{ yes = 1, no = 0.25 }", "variants.match.steps[1].labels.no"),
        (GRADE, "{ yes = 1, no = 0 }", "{ yes = 1, sure = 1 }", "variants.match.steps[1].labels"),
        (GRADE, 'opening = "Correct:"', "", "variants.match.steps[1].opening"),
        (SYNTHETIC_READING, "{answer}", "{reference}", "variants.sentence.item"),
    ],
)
def test_what_is_wrong_is_named(text: str, old: str, new: str, place: str) -> None:
    assert old in text
    with pytest.raises(PromptError) as caught:
        read_prompt(text.replace(old, new, 1).encode())
    assert caught.value.place == place
    assert str(caught.value).startswith(place)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"format = ",
        b"x",
        b"format = 1\n" * 2,
        ("a" * (MAX_PROMPT_BYTES + 1)).encode(),
        b"a = " + b"[" * 60_000,
        b"a = " + b"{ a = " * 10_000,
        b"format = " + b"9" * 60_000,
        # Parsing this key would take half a minute.
        b"a." * 32_000 + b"a = 1",
        b"[" + b"a ." * 20_000 + b"a]",
    ],
    ids=lambda data: repr(data[:8]),
)
def test_what_is_no_prompt_file_is_refused_at_once(data: bytes) -> None:
    with pytest.raises(PromptError):
        read_prompt(data)


LINES = st.sampled_from(LAVE.splitlines())


@given(st.lists(LINES, max_size=40).map("\n".join) | st.text(max_size=200) | st.binary(max_size=100))
def test_anything_is_a_file_or_an_error_of_its_own(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode(errors="replace")
    try:
        read_prompt(data)
    except PromptError as error:
        assert str(error)  # noqa: PT017 - any other exception fails the test


@given(st.data())
def test_a_file_with_a_line_less_is_a_file_or_an_error_of_its_own(data: st.DataObject) -> None:
    lines = LAVE.splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    lines[place] = data.draw(LINES | st.text(max_size=20))
    try:
        file = read_prompt("\n".join(lines).encode(errors="replace"))
    except PromptError:
        return
    assert file.metric == "lave"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"3" = 3 }', f'"{"x" * 65}" = 3 }}'),
        ('metric = "lave"', f'metric = "{"x" * 30_000}"'),
        ('metric = "lave"', f'metric = "lave"\n{"k" * 30_000} = 1'),
        ('metric = "lave"', f'metric = "lave"\nt = {{ {"k" * 9_000} = 1, {"k" * 9_000} = 2 }}'),
        ("{question}", f"{{{'q' * 30_000}}}"),
        ("{question}", f"{{question!r:{'q' * 30_000}}}"),
        ('name = "reason"', f'name = "{"r" * 30_000}"'),
    ],
)
def test_no_message_grows_with_the_file(old: str, new: str) -> None:
    assert old in LAVE
    with pytest.raises(PromptError) as caught:
        read_prompt(LAVE.replace(old, new).encode())
    assert 10 < len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["a = " + "[" * 33, "a = " + "{a = " * 33, "# [[\nb = '['\na = " + "[\n[{a=[" * 9])
def test_deep_nesting_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(PromptError, match=r"nested too deeply in line \d+: at most 32 levels"):
        read_prompt(text.encode())


@pytest.mark.parametrize("text", ["a = [" + "1," * 2001 + "]", "a = 1\n" * 2001])
def test_more_values_than_any_file_needs_are_refused_before_they_are_parsed(text: str) -> None:
    with pytest.raises(PromptError, match="has more than 2000 values"):
        read_prompt(text.encode())


@pytest.mark.parametrize(
    "string",
    ['"' + "[" * 99 + '"', "'" + "{" * 99 + "'", '"""a"" \\""" [[' + "[" * 99 + '"""', "'''''" + "[" * 99 + "'''"],
)
def test_brackets_in_strings_and_comments_nest_nothing(string: str) -> None:
    read_prompt(
        f"{LAVE.rstrip()}\n# {'[' * 99}".replace("version = 1", f"version = 1\ndescription = {string}", 1).encode()
    )


@given(st.text(st.sampled_from("[]{}=,a1.\"'\\# \n"), max_size=3000))
def test_whatever_the_brackets_the_parser_keeps_far_from_the_end_of_the_stack(text: str) -> None:
    with pytest.raises(PromptError):
        read_prompt(text.encode())
