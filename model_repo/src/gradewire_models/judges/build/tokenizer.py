"""Makes tokenizer.json out of the vocabulary in a GGUF file."""

from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from gradewire_models.errors import BuildError
from gradewire_models.judges.build.weights import JudgeWeights

# Kinds of token, as GGUF numbers them.
_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5

# Where words are cut before merges are applied: English contractions, words with what stands before them, single
# digits, punctuation, line ends, white space.
_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def make_tokenizer(weights: JudgeWeights) -> Tokenizer:
    """Byte-level BPE with the file's vocabulary, merges and special tokens.

    It gives the ids that llama.cpp gives: no normalisation, no token added in front. Special tokens within a text are
    recognised; with ``encode_special_tokens = True`` they are plain text, as anything that a user wrote should be.

    Raises:
        BuildError: The file's vocabulary is of another kind.
    """
    if weights.field("tokenizer.ggml.model") != "gpt2":
        raise BuildError("the vocabulary of this GGUF file is not byte-level BPE")
    tokens, kinds = weights.field("tokenizer.ggml.tokens"), weights.field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in weights.field("tokenizer.ggml.merges")]
    # Ids that only fill the embedding up have no text.
    vocabulary = {
        token: number for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind != _UNUSED
    }
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = _words(str(weights.field("tokenizer.ggml.pre")))
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind in {_CONTROL, _USER_DEFINED}]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def write_tokenizer(weights: JudgeWeights, path: Path) -> None:
    """Writes tokenizer.json; the same vocabulary gives the same bytes.

    Raises:
        OSError: It cannot be written.
        BuildError: As `make_tokenizer`.
    """
    path.write_text(make_tokenizer(weights).to_str(pretty=False), encoding="utf-8")


def _words(kind: str) -> pre_tokenizers.PreTokenizer:
    if kind == "qwen2":
        cut: pre_tokenizers.PreTokenizer = pre_tokenizers.Split(Regex(_QWEN2_WORDS), "isolated")
        return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if kind == "smollm":
        cut = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    raise BuildError(f"the GGUF file cuts words the way of {kind!r}, which is not known here")
