"""The IDs from the memory of words must be those of the library, for every text."""

import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from gradewire_models.repository.built import load_built
from gradewire_server.encoders import word_pieces
from gradewire_server.encoders.word_pieces import WordPieces

_NASTY: Final = [
    *"aZ9 .,'-[]#@_$`~ \t\n\r",
    *("\x00", "\x01", "\x0b", "\x0c", "\x1c", "\x7f", "\x85", "\xa0", "\xad", "\u200b", "\u200d", "\u2028", "\u3000"),
    *(
        "é",
        "\u0301",
        "\u0345",
        "İ",
        "ß",
        "ẞ",
        "\u017f",
        "ﬁ",
        "½",
        "Ǆ",
        "中",
        "文",
        "한",
        "ก",
        "\u0e31",
        "क्ष",
        "🙂",
        "٣",
        "\u2019",
    ),
    *("\ufeff", "\ufffd", "\U0010ffff", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "[cls]", "##", "##ing"),
    *("hello", "World", "antidisestablishmentarianism", "x" * 32, "x" * 33, "y" * 101, "\u0301" * 40),
]
_TEXTS: Final = st.lists(
    st.one_of(
        st.lists(st.sampled_from(_NASTY), max_size=24).map("".join),
        st.text(max_size=24),
        st.lists(st.text("abcAB1", max_size=18), max_size=6).map(" ".join),
    ),
    max_size=8,
)
_UNKNOWN: Final = "[UNK]"
_VOCABULARY: Final = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *string.printable.split()[0], "ab", "##b", "##bc", "AB", "é"]


@pytest.fixture(scope="module")
def minilm_path(minilm: Path) -> Path:
    return load_built(minilm, "all-MiniLM-L6-v2").tokenizer_path


def cut_at(path: Path, max_tokens: int) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def bert(*, most: int = 40, **options: Any) -> Tokenizer:
    """A small tokenizer of BERT's kind."""
    vocabulary = {piece: number for number, piece in enumerate(_VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=_UNKNOWN, max_input_chars_per_word=most))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] [CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[UNK]"])
    return tokenizer


def of(tokenizer: Tokenizer) -> WordPieces:
    pieces = WordPieces.of(tokenizer)
    assert pieces is not None
    return pieces


def check(pieces: WordPieces, tokenizer: Tokenizer, texts: list[str], max_tokens: int) -> None:
    """Compare the IDs of texts with those of the library."""
    for text, found in zip(texts, pieces.encode(texts, max_tokens=max_tokens), strict=True):
        expected = tokenizer.encode(text)
        if found is not None:
            ids, cut = found
            assert np.frombuffer(ids, np.int32).tolist() == expected.ids
            assert cut == bool(expected.overflowing)


@pytest.mark.parametrize(
    ("max_tokens", "as_text"),
    [
        pytest.param(3, False, id="3-special tokens"),
        pytest.param(9, True, id="9-as text"),
        pytest.param(256, False, id="256-special tokens"),
    ],
)
def test_the_ids_are_those_of_the_library(minilm_path: Path, max_tokens: int, as_text: bool) -> None:  # noqa: FBT001 - a parameter
    tokenizer = cut_at(minilm_path, max_tokens)
    tokenizer.encode_special_tokens = as_text
    pieces = of(tokenizer)

    @settings(max_examples=example_count(100))
    @given(texts=_TEXTS)
    def compare(texts: list[str]) -> None:
        check(pieces, tokenizer, texts, max_tokens)

    compare()


@pytest.mark.parametrize(("around", "step"), [("a{}b", 1), ("a {} b", 3), ("{}[CLS]", 5)])
def test_characters_of_all_scripts_are_read_like_the_library_reads_them(
    minilm_path: Path, around: str, step: int
) -> None:
    tokenizer = cut_at(minilm_path, 256)
    pieces = of(tokenizer)
    points = [*range(0x3100), *range(0x3100, 0xD800, 61), *range(0xE000, 0x110000, 97)]
    characters = list(map(chr, points[::step]))
    texts = [around.format(each) for each in characters]
    for start in range(0, len(texts), 4096):
        part = texts[start : start + 4096]
        expected = tokenizer.encode_batch_fast(part)
        for found, each in zip(pieces.encode(part, max_tokens=256), expected, strict=True):
            assert found is not None
            assert np.frombuffer(found[0], np.int32).tolist() == each.ids


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("clean_text", [False, True])
@pytest.mark.parametrize("strip_accents", [False, None])
def test_other_normalizers_of_bert_are_followed(lowercase: bool, clean_text: bool, strip_accents: bool | None) -> None:  # noqa: FBT001 - parameters
    tokenizer = bert(lowercase=lowercase, clean_text=clean_text, strip_accents=strip_accents)
    tokenizer.enable_truncation(12)
    pieces = of(tokenizer)

    @settings(max_examples=example_count(40))
    @given(texts=_TEXTS)
    def compare(texts: list[str]) -> None:
        check(pieces, tokenizer, texts, 12)

    compare()


def test_a_long_word_is_left_to_the_library(minilm_path: Path) -> None:
    pieces = of(cut_at(minilm_path, 256))
    known, plain, chinese = pieces.encode(["cat " + "x" * 32, "cat " + "x" * 33, "中" * 33], max_tokens=256)
    assert known is not None
    assert plain is None
    assert chinese is None


@pytest.mark.parametrize("text", ["\ud800", "a cat \udfff"])
def test_a_lone_surrogate_has_the_library_s_error(minilm_path: Path, text: str) -> None:
    tokenizer = cut_at(minilm_path, 256)
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whichever the library raises
        tokenizer.encode(text)
    with pytest.raises(type(expected.value)):
        of(tokenizer).encode(["a cat", text], max_tokens=256)


def test_the_memory_starts_again_when_it_is_full(minilm_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_pieces, "_MOST_WORDS", 100)
    tokenizer = cut_at(minilm_path, 256)
    pieces = of(tokenizer)
    for start in range(0, 2000, 50):
        check(pieces, tokenizer, [f"w{number} the cat" for number in range(start, start + 50)], 256)
        assert len(pieces._known) <= 100 + 52


def test_threads_share_the_memory(minilm_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_pieces, "_MOST_WORDS", 60)
    tokenizer = cut_at(minilm_path, 256)
    pieces = of(tokenizer)
    texts = [" ".join(f"w{(number * step) % 97}" for number in range(9)) for step in range(1, 90)]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(check, pieces, tokenizer, texts, 256) for _ in range(12)]:
            done.result()


def _with(**parts: Any) -> Tokenizer:
    tokenizer = bert()
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer


def _with_token(token: AddedToken, *, special: bool = True) -> Tokenizer:
    tokenizer = bert()
    (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
    return tokenizer


@pytest.mark.parametrize(
    "tokenizer",
    [
        _with(normalizer=normalizers.NFKC()),
        _with(pre_tokenizer=pre_tokenizers.Whitespace()),
        _with(model=models.WordLevel({"a": 0, "[UNK]": 1}, unk_token=_UNKNOWN)),
        bert(most=31),
        _with_token(AddedToken("[A B]")),
        _with_token(AddedToken("[AB]", single_word=True)),
        _with_token(AddedToken("ab")),
        _with_token(AddedToken("[AB]"), special=False),
    ],
    ids=[
        "normalizer",
        "pre-tokenizer",
        "model",
        "short words",
        "with a space",
        "single word",
        "letters",
        "not special",
    ],
)
def test_other_tokenizers_are_left_to_the_library(tokenizer: Tokenizer) -> None:
    assert WordPieces.of(tokenizer) is None


def test_a_limit_below_one_token_is_left_to_the_library() -> None:
    tokenizer = bert()
    tokenizer.enable_truncation(3)
    assert WordPieces.of(tokenizer) is None
