"""Read a language model's sizes, weights and tokenizer from its GGUF file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from numpy.typing import NDArray
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from gradewire_models.errors import BuildError
from gradewire_models.judges.build.shapes import LayerWeights, Matrix, Sizes, WeightSource

_ARCHITECTURES = ("qwen2", "llama")
_BLOCK_ROWS = 8192

# GGUF's numbers for token types.
_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5

# BPE never merges tokens of different words. A word is an English contraction, letters with a leading character, a
# single digit, punctuation, line ends or white space.
_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class JudgeWeights(WeightSource):
    """A memory-mapped GGUF file that dequantises tensors on access.

    Raises:
        BuildError: The file is not a GGUF file, or the graph writer does not support its architecture.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._reader = GGUFReader(path)
        except (OSError, ValueError, IndexError, KeyError) as error:
            raise BuildError(f"cannot read {path} as GGUF: {error}") from error
        self._path = path
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.sizes = self._read_sizes()

    def field(self, name: str) -> Any:
        """Return a value of the file's header.

        Raises:
            BuildError: The header lacks this field.
        """
        found = self._reader.fields.get(name)
        if found is None:
            raise BuildError(f"{self._path} has no field {name}")
        return found.contents()

    def tensor(self, name: str, *shape: int) -> Matrix:
        """Return a whole tensor in float32.

        Raises:
            BuildError: The tensor is missing or does not have this `shape`.
        """
        found = self._find(name, *shape)
        return dequantize(found.data, found.tensor_type).reshape(shape).astype(np.float32)

    def rows(self, name: str, picked: NDArray[np.int64]) -> Matrix:
        """Return the rows `picked` of a table [vocabulary, dims], as float32 [len(picked), dims]."""
        found = self._find(name, self.sizes.vocabulary, self.sizes.dims)
        return dequantize(found.data[picked], found.tensor_type).astype(np.float32)

    def row_blocks(self, name: str) -> Iterator[Matrix]:
        """Yield a table [vocabulary, dims] in blocks of rows, to limit memory."""
        found = self._find(name, self.sizes.vocabulary, self.sizes.dims)
        for start in range(0, self.sizes.vocabulary, _BLOCK_ROWS):
            yield dequantize(found.data[start : start + _BLOCK_ROWS], found.tensor_type).astype(np.float32)

    @property
    def head_name(self) -> str:
        """The name of the tensor for logits: the head or, without a head, the embedding."""
        return "output.weight" if "output.weight" in self._tensors else "token_embd.weight"

    def layer(self, index: int) -> LayerWeights:
        """Return the weights of a layer.

        Raises:
            BuildError: A tensor is missing or does not match the header.
        """
        sizes = self.sizes
        queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        dims, wide = sizes.dims, sizes.feed_forward_dims

        def take(part: str, *shape: int) -> Matrix:
            return self.tensor(f"blk.{index}.{part}", *shape)

        biased = f"blk.{index}.attn_q.bias" in self._tensors
        return LayerWeights(
            attention_norm=take("attn_norm.weight", dims),
            query_key=np.concatenate([take("attn_q.weight", queries, dims), take("attn_k.weight", keys, dims)]),
            query_key_bias=(
                np.concatenate([take("attn_q.bias", queries), take("attn_k.bias", keys)]) if biased else None
            ),
            value=take("attn_v.weight", keys, dims),
            value_bias=take("attn_v.bias", keys) if biased else None,
            attention_out=take("attn_output.weight", dims, queries),
            feed_forward_norm=take("ffn_norm.weight", dims),
            gate=take("ffn_gate.weight", wide, dims),
            up=take("ffn_up.weight", wide, dims),
            down=take("ffn_down.weight", dims, wide),
        )

    def _find(self, name: str, *shape: int) -> Any:
        found = self._tensors.get(name)
        # GGUF lists the innermost dimension first.
        if found is None or tuple(int(size) for size in found.shape[::-1]) != shape:
            said = "is missing" if found is None else f"has shape {[int(size) for size in found.shape[::-1]]}"
            raise BuildError(f"{self._path}: {name} must have shape {list(shape)}, but it {said}")
        return found

    def _read_sizes(self) -> Sizes:
        architecture = str(self.field("general.architecture"))
        if architecture not in _ARCHITECTURES:
            raise BuildError(
                f"{self._path} has the architecture {architecture}, but only {', '.join(_ARCHITECTURES)} can be built"
            )

        def number(name: str) -> Any:
            return self.field(f"{architecture}.{name}")

        return Sizes(
            architecture=architecture,
            layers=int(number("block_count")),
            dims=int(number("embedding_length")),
            heads=int(number("attention.head_count")),
            kv_heads=int(number("attention.head_count_kv")),
            feed_forward_dims=int(number("feed_forward_length")),
            norm_epsilon=float(number("attention.layer_norm_rms_epsilon")),
            rope_base=float(number("rope.freq_base")),
            context_tokens=int(number("context_length")),
            vocabulary=len(self.field("tokenizer.ggml.tokens")),
        )


def make_tokenizer(weights: JudgeWeights) -> Tokenizer:
    """Return a byte-level BPE tokenizer with the file's vocabulary, merges and special tokens.

    The tokenizer returns the same ids as llama.cpp. It does not normalise a text or put a special token before it. It
    recognises special tokens in a text; for a user's text, set ``encode_special_tokens = True`` to treat them as plain
    text.

    Raises:
        BuildError: The file's vocabulary is not byte-level BPE, or splits words in an unsupported way.
    """
    if weights.field("tokenizer.ggml.model") != "gpt2":
        raise BuildError("the vocabulary of this GGUF file is not byte-level BPE")
    tokens, kinds = weights.field("tokenizer.ggml.tokens"), weights.field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in weights.field("tokenizer.ggml.merges")]
    # Skip ids without text, which only pad the embedding.
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
    """Write tokenizer.json. The same vocabulary gives the same bytes.

    Raises:
        OSError: The file is not writable.
        BuildError: See `make_tokenizer`.
    """
    path.write_text(make_tokenizer(weights).to_str(pretty=False), encoding="utf-8")


def _words(kind: str) -> pre_tokenizers.PreTokenizer:
    if kind == "qwen2":
        cut: pre_tokenizers.PreTokenizer = pre_tokenizers.Split(Regex(_QWEN2_WORDS), "isolated")
        return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if kind == "smollm":
        cut = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    raise BuildError(f"the GGUF file splits words by the rules {kind!r}, which are not supported")
