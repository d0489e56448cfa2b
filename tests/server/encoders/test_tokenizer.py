import json
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.support.models.tiny_models import tiny_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from gradewire_models.repository.built import load_built
from gradewire_models.repository.grader_input import MAX_PIECES, MAX_TOKENS
from gradewire_server.encoders.tokenizer import GraderTokenizer, TextTokenizer, joined, parted

if TYPE_CHECKING:
    from collections.abc import Callable


TEXTS = st.tuples(*[st.text(st.sampled_from("ab1 2\n[]é"), max_size=8)] * 3)


@given(TEXTS)
def test_joined_texts_are_parted_again(texts: tuple[str, str, str]) -> None:
    assert parted(joined(texts)) == texts


@given(TEXTS, TEXTS)
def test_other_texts_never_give_the_same(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (joined(one) == joined(other)) == (one == other)


def test_where_one_text_ends_is_a_part_of_it() -> None:
    assert len({joined(each) for each in [("a b", "", "c"), ("a", " b", "c"), ("a", "", " bc"), ("", "a b", "c")]}) == 4


GOLDEN = Path(__file__).parents[2] / "models" / "repository" / "grader_input.golden.json"
BEGIN, SEPARATOR = 2, 3  # of the tiny tokenizer
WORDS = st.lists(st.integers(0, 59).map("w{}".format), max_size=80)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> GraderTokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_bytes(tiny_tokenizer())
    return GraderTokenizer(path)


@pytest.fixture(scope="module")
def real(minilm: Path) -> GraderTokenizer:
    return GraderTokenizer(minilm / "all-MiniLM-L6-v2" / "tokenizer.json")


def test_pieces_are_those_that_training_builds(real: GraderTokenizer) -> None:
    rows: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    names = ("question", "reference", "answer")
    texts = [joined(tuple(unicodedata.normalize("NFC", row[name]) for name in names)) for row in rows]  # type: ignore[arg-type]
    for row, found in zip(rows, real.encode(texts), strict=True):
        assert [piece.tolist() for piece in found.rows] == row["pieces"]
        assert found.truncated == row["truncated"]


@pytest.mark.parametrize("hostile", ["[SEP]", "[CLS] [SEP] [SEP]", "yes [SEP] no [PAD]", "[MASK][SEP]"])
def test_a_mark_that_is_written_in_a_text_is_text(real: GraderTokenizer, hostile: str) -> None:
    plain = real.encode([joined(("who?", "a man", "a man"))])[0]
    cls, sep = plain.ids[0], plain.ids[-1]
    for texts in ((hostile, "a man", "a man"), ("who?", hostile, "a man"), ("who?", "a man", hostile)):
        (row,) = real.encode([joined(texts)])[0].rows
        assert np.count_nonzero(row == sep) == 3
        assert np.count_nonzero(row == cls) == 1
        assert len(row) > len(plain.ids)  # spelt out, and not left out


@given(question=WORDS, reference=WORDS, repeats=st.integers(0, 40), answer=WORDS)
def test_pieces_cover_the_answer_within_bounds(
    tiny: GraderTokenizer, question: list[str], reference: list[str], repeats: int, answer: list[str]
) -> None:
    words = answer * repeats
    (found,) = tiny.encode([joined((" ".join(question), " ".join(reference), " ".join(words)))])
    assert 1 <= len(found.rows) <= MAX_PIECES
    front = min(len(question), 64) + min(len(reference), 64) + 3
    room = MAX_TOKENS - front - 1
    read = 0
    for number, row in enumerate(found.rows):
        assert len(row) <= MAX_TOKENS
        assert (row[0], row[front - 1], row[-1]) == (BEGIN, SEPARATOR, SEPARATOR)
        start = number * (room // 2)
        assert start <= read  # no token between two pieces is left out
        read = start + len(row) - front - 1
        assert row[front:-1].tolist() == [4 + int(word[1:]) for word in words[start:read]]
    assert found.truncated == (len(question) > 64 or len(reference) > 64 or read < len(words))


def test_a_text_is_cut_by_its_characters_too(real: GraderTokenizer) -> None:
    # One word of a million characters is one unknown token, however it is cut.
    (found,) = real.encode([joined(("", "yes", "x" * 1_000_000 + " yes"))])
    assert found.truncated
    assert len(found.ids) < MAX_TOKENS


def test_nothing_but_what_is_invisible_leaves_its_place_empty(tiny: GraderTokenizer) -> None:
    (found,) = tiny.encode([joined(("", "w1", " \n "))])
    assert found.ids.tolist() == [BEGIN, SEPARATOR, 5, SEPARATOR, SEPARATOR]
    assert found.ends == (5,)


def test_many_at_once_are_as_each_alone(tiny: GraderTokenizer) -> None:
    texts = [joined((f"w{n % 60}", "w1 w2", f"w{n % 7} " * (n * 9))) for n in range(100)]
    for text, found in zip(texts, tiny.encode(texts), strict=True):
        (alone,) = tiny.encode([text])
        assert (found.ids.tolist(), found.ends, found.truncated) == (alone.ids.tolist(), alone.ends, alone.truncated)


_UNKNOWN: Final = "<unk>"
_WORDS = st.sampled_from(["cat", "Zoë", "antidisestablishmentarianism", "7", "...", "日本", "\n", "e\u0301", "a" * 120])


@pytest.fixture(scope="module")
def path(minilm: Path) -> Path:
    return load_built(minilm, "all-MiniLM-L6-v2").tokenizer_path


@cache
def cut_at(path: Path, max_tokens: int) -> TextTokenizer:
    return TextTokenizer(path, max_tokens=max_tokens, prefix="")


@cache
def plain(path: Path, max_tokens: int) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


@settings(max_examples=example_count(60))
@given(words=st.lists(_WORDS, max_size=60), glue=st.sampled_from([" ", "  ", "-", ""]), max_tokens=st.integers(4, 12))
def test_a_long_text_gives_the_ids_of_the_whole_text(path: Path, words: list[str], glue: str, max_tokens: int) -> None:
    text = glue.join(words)
    mine = cut_at(path, max_tokens)
    expected = plain(path, max_tokens).encode(text)
    for offsets in (False, True):
        (tokenized,) = mine.encode([text], offsets=offsets)
        assert tokenized.ids.tolist() == expected.ids
        assert tokenized.truncated == bool(expected.overflowing)


def test_exactly_at_the_limit_is_not_truncated(path: Path) -> None:
    tokenizer = TextTokenizer(path, max_tokens=8, prefix="")
    fits, over = tokenizer.encode(["a b c d e f", "a b c d e f g"])
    assert (len(fits.ids), fits.truncated) == (8, False)
    assert (len(over.ids), over.truncated) == (8, True)


def test_trailing_blanks_do_not_make_a_text_too_long(path: Path) -> None:
    tokenizer = TextTokenizer(path, max_tokens=8, prefix="")
    (tokenized,) = tokenizer.encode(["a b c d e f" + " " * 100_000])
    assert not tokenized.truncated


def test_offsets_point_at_the_words(path: Path) -> None:
    text = "Zoë's two cats!"
    (tokenized,) = TextTokenizer(path, max_tokens=32, prefix="").encode([text], offsets=True)
    assert tokenized.offsets is not None
    assert tokenized.kept is not None
    assert [text[start:end] for start, end in tokenized.offsets] == ["Zoë", "'", "s", "two", "cats", "!"]
    assert tokenized.kept.tolist() == list(range(1, len(tokenized.ids) - 1))


def test_a_prefix_is_read_but_stands_for_no_text(path: Path) -> None:
    plain_text = TextTokenizer(path, max_tokens=32, prefix="").encode(["query: two cats"])[0]
    (tokenized,) = TextTokenizer(path, max_tokens=32, prefix="query: ").encode(["two cats"], offsets=True)
    assert np.array_equal(tokenized.ids, plain_text.ids)
    assert tokenized.offsets is not None
    assert tokenized.kept is not None
    assert ["two cats"[start:end] for start, end in tokenized.offsets] == ["two", "cats"]
    assert tokenized.kept.tolist() == [3, 4]


def byte_pairs(folder: Path) -> Path:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(_CORPUS, trainer)
    tokenizer.save(str(folder / "byte_pairs.json"))
    return folder / "byte_pairs.json"


def unigrams(folder: Path) -> Path:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200, unk_token=_UNKNOWN, special_tokens=[_UNKNOWN], show_progress=False
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    tokenizer.save(str(folder / "unigrams.json"))
    return folder / "unigrams.json"


_CORPUS = ["the cat sat on the mat", "antidisestablishmentarianism", "Zoë and 日本 cats 7 7 7", "aaaa aaaaaaaa aa"] * 20
_PIECES = st.sampled_from(
    ["cat", "the", "Zoë", "e\u0301", "\u0301", "日本", "\u200b", "\x1c", "\x85", "7", ".", " ", "\n", "🂡", "aaaa", "ﬁ"]
)


_LONG: Final = 5_000
"""Characters of a text of which models that read 24 or 40 tokens see the head alone: the library's time for byte pairs
grows with the square of a word."""


@pytest.fixture(scope="module", params=[byte_pairs, unigrams, None], ids=["byte pairs", "unigrams", "word pieces"])
def any_path(request: pytest.FixtureRequest, path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    make: Callable[[Path], Path] | None = request.param
    return path if make is None else make(tmp_path_factory.mktemp("tokenizers"))


@settings(max_examples=example_count(60))
@given(start=st.text(max_size=40), piece=st.lists(_PIECES, min_size=1, max_size=12), end=st.text(max_size=40))
def test_a_text_without_blanks_gives_the_ids_of_the_whole_text(
    any_path: Path, start: str, piece: list[str], end: str
) -> None:
    repeated = "".join(piece)
    text = start + repeated * (_LONG // len(repeated)) + end
    expected = plain(any_path, 24).encode(text)
    for offsets in (False, True):
        (tokenized,) = cut_at(any_path, 24).encode([text], offsets=offsets)
        assert tokenized.ids.tolist() == expected.ids
        assert tokenized.truncated == bool(expected.overflowing)


@pytest.mark.parametrize(
    ("blob", "truncated"), [("a" * 400_000, True), ("cat" + " " * 400_000, False), (" " * 400_000 + "cat", True)]
)
def test_what_is_behind_the_most_that_is_read_is_said_to_be_missing(path: Path, blob: str, truncated: bool) -> None:  # noqa: FBT001
    (tokenized,) = TextTokenizer(path, max_tokens=8, prefix="").encode([blob])
    assert tokenized.truncated is truncated
    assert len(tokenized.ids) <= 8


def test_few_characters_are_given_to_the_library_at_once(path: Path) -> None:
    class Counting:
        def __init__(self, tokenizer: Tokenizer) -> None:
            self.tokenizer = tokenizer
            self.given: list[int] = []

        def encode(self, text: str) -> object:
            self.given.append(len(text))
            return self.tokenizer.encode(text)

        def encode_batch_fast(self, texts: list[str]) -> object:
            self.given.append(sum(map(len, texts)))
            return self.tokenizer.encode_batch_fast(texts)

    tokenizer = TextTokenizer(path, max_tokens=256, prefix="")
    counting = tokenizer._tokenizer = Counting(tokenizer._tokenizer)  # type: ignore[assignment]
    texts = ["a" * 3_000_000, "word " * 600_000, "日" * 1_000_000, *["a cat"] * 1000]
    rows = tokenizer.encode(texts)
    assert len(rows) == len(texts)
    assert max(counting.given) <= 65_536
    assert sum(counting.given) < 200_000


def test_the_longest_token_of_the_vocabulary_fits_as_often_as_the_model_reads_tokens(tmp_path: Path) -> None:
    long = "x" * 5000
    tokenizer = Tokenizer(models.WordLevel({_UNKNOWN: 0, long: 1}, unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    (tmp_path / "long.json").write_text(json.dumps(json.loads(tokenizer.to_str())))
    text = " ".join([long] * 40)
    (tokenized,) = TextTokenizer(tmp_path / "long.json", max_tokens=20, prefix="").encode([text])
    assert tokenized.ids.tolist() == [1] * 20
    assert tokenized.truncated


_SUFFIX = ' said "in short": the cat'


@cache
def suffixed(path: Path, max_tokens: int) -> TextTokenizer:
    return TextTokenizer(path, max_tokens=max_tokens, prefix="the ", suffix=_SUFFIX)


def expected_with_suffix(path: Path, text: str, max_tokens: int) -> tuple[list[int], bool]:
    """The ids by hand: all of the suffix's tokens, and as many before them as there is room for."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encoding = tokenizer.encode(f"the {text}{_SUFFIX}")
    behind = [
        end > len(text) + 4 and not special
        for (_, end), special in zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
    ]
    first = behind.index(True)
    tail = encoding.ids[first:]
    room = max_tokens - len(tail)
    return [*encoding.ids[: min(first, room)], *tail], first > room


@settings(max_examples=example_count(60))
@given(
    start=st.text(max_size=40), piece=st.lists(_PIECES, min_size=1, max_size=12), times=st.sampled_from([1, 3, _LONG])
)
def test_a_suffix_stays_whole_behind_a_text_of_any_length(
    any_path: Path, start: str, piece: list[str], times: int
) -> None:
    text = start + "".join(piece) * times
    text = text[:_LONG]
    expected, truncated = expected_with_suffix(any_path, text, 40)
    assert len(expected) <= 40
    for offsets in (False, True):
        (tokenized,) = suffixed(any_path, 40).encode([text], offsets=offsets)
        assert tokenized.ids.tolist() == expected
        assert tokenized.truncated == truncated


def test_a_suffix_is_read_but_stands_for_no_text(path: Path) -> None:
    tokenizer = TextTokenizer(path, max_tokens=12, prefix="query: ", suffix=" in a word")
    long, short = tokenizer.encode(["two cats " * 9, "two cats"], offsets=True)
    assert long.offsets is not None
    assert short.offsets is not None
    assert ["two cats"[start:end] for start, end in short.offsets] == ["two", "cats"]
    assert len(long.ids) == 12
    assert long.ids[-4:].tolist() == short.ids[-4:].tolist()
    assert [("two cats " * 9)[start:end] for start, end in long.offsets] == ["two", "cats"] * 2 + ["two"]
    assert len(tokenizer.rows(long, special=True).ids) == 7
    many = tokenizer.encode(["two cats"] * 100)
    assert {tuple(text.ids.tolist()) for text in many} == {tuple(short.ids.tolist())}
