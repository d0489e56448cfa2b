"""Tokenizers made from GGUF files against llama.cpp's own reading of the same file."""

import json
import random
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.judges.build.tiny_judges import TinyJudge, write_gguf
from tests.support.judges.smollm2 import smollm2_gguf
from tests.support.servers.llama_server import LlamaServer
from tokenizers import Tokenizer

from gradewire_models.errors import BuildError
from gradewire_models.judges.build.weights import JudgeWeights, make_tokenizer, write_tokenizer

WRITTEN = (
    "The capital of France is Paris.",
    "  two  spaces,\ttabs\nand\r\n\r\nline ends  ",
    "1234567890 12,345.67 ²³ ½ Ⅷ ٣٤٥ 1st",
    "don't I'LL we've it\u2019s 'S ''''s",
    "日本語のテキスト。中文 한국어 ไทย हिन्दी עברית العربية Ελληνικά Русский",
    "🙂👍🏽👨‍👩‍👧‍👦🇩🇪 e\u0301 cafe\u0301 \u200b\u200d\ufeff \u3000\u00a0\u2003x \u0085\u2028",
    "\x01\x02\x1b[0m <|im_start|> <|im_end|>a<|endoftext|> <|im_start <repo_name>x",
    "a" * 2000,
    "!!!???...---===+++ $%&/()=`\u00b4*'#",
)
PIECES = [*"aBéß中あ한9٣ \n\t'\u2019-_🙂\u0301жกनि.!²\u00a0", "  ", "the", "'s", "<|im_end|>", "<|", "|>"]


def texts() -> list[str]:
    rng = random.Random(7)  # noqa: S311 - texts, not keys
    drawn = ["".join(rng.choices(PIECES, k=rng.randint(1, 40))) for _ in range(250)]
    return [*WRITTEN, *drawn]


@pytest.fixture(scope="module")
def smollm2() -> Tokenizer:
    return make_tokenizer(JudgeWeights(smollm2_gguf()))


@pytest.fixture(scope="module")
def llama() -> Iterator[Callable[[str, bool], list[int]]]:
    with LlamaServer() as server:

        def tokenize(text: str, special: bool) -> list[int]:  # noqa: FBT001 - as llama.cpp names it
            body = {"content": text, "add_special": False, "parse_special": special}
            request = urllib.request.Request(  # noqa: S310 - a server of our own
                f"{server.url.removesuffix('/v1')}/tokenize",
                json.dumps(body).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"},
            )
            with urllib.request.urlopen(request) as reply:  # noqa: S310 - as above
                found: list[int] = json.load(reply)["tokens"]
            return found

        yield tokenize


@pytest.mark.parametrize("special", [True, False])
def test_ids_are_those_of_llama_cpp(smollm2: Tokenizer, llama: Callable[[str, bool], list[int]], special: bool) -> None:  # noqa: FBT001 - a parameter of the test
    smollm2.encode_special_tokens = not special
    for text in texts():
        assert smollm2.encode(text).ids == llama(text, special), text


def test_what_a_user_writes_never_becomes_a_special_token(smollm2: Tokenizer) -> None:
    smollm2.encode_special_tokens = True
    assert not set(smollm2.encode("<|im_start|>system\n<|im_end|><|endoftext|>").ids) & set(range(17))
    smollm2.encode_special_tokens = False
    assert smollm2.encode("<|im_start|>a<|im_end|>").ids[::2] == [1, 2]


@pytest.fixture(scope="module")
def tiny(qwen2: TinyJudge) -> Tokenizer:
    return make_tokenizer(JudgeWeights(qwen2.gguf))


@given(text=st.text(max_size=60))
def test_plain_text_comes_back_as_it_was(text: str, tiny: Tokenizer) -> None:
    tiny.encode_special_tokens = True
    assert tiny.decode(tiny.encode(text).ids, skip_special_tokens=False) == text


def test_ids_that_fill_the_embedding_up_have_no_text(qwen2: TinyJudge) -> None:
    weights = JudgeWeights(qwen2.gguf)
    tokenizer = make_tokenizer(weights)
    assert tokenizer.token_to_id("[PAD0]") is None
    assert tokenizer.get_vocab_size() == weights.sizes.vocabulary - 1


def test_the_file_reads_back_and_is_the_same_every_time(qwen2: TinyJudge, tmp_path: Path) -> None:
    weights = JudgeWeights(qwen2.gguf)
    for name in ("one.json", "two.json"):
        write_tokenizer(weights, tmp_path / name)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    read = Tokenizer.from_file(str(tmp_path / "one.json"))
    assert read.encode("the <|im_end|>\n").ids == make_tokenizer(weights).encode("the <|im_end|>\n").ids


def test_an_unknown_way_of_cutting_words_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", "qwen2", words="deepseek-coder")
    with pytest.raises(BuildError, match="'deepseek-coder', which are not supported"):
        make_tokenizer(JudgeWeights(tmp_path / "m.gguf"))
