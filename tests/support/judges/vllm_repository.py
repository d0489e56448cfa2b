"""A model repository as Triton's vLLM backend has it, around SmolLM2 for the emulated backend."""

import json
import re
from pathlib import Path
from typing import Final

from tests.support.judges.smollm2 import smollm2_gguf

GPU_REPOSITORY: Final = Path(__file__).parents[3] / "model_repo" / "vllm"
GPU_MODEL: Final = "qwen2.5-7b-instruct-awq"
SEEING_GPU_MODEL: Final = "qwen2.5-vl-7b-instruct-awq"


def vllm_repository(
    directory: Path, name: str, *, max_model_len: int = 256, max_num_seqs: int = 2, sees_images: bool = False
) -> Path:
    """Writes a repository with one model, its config.pbtxt that of a GPU's but for the name; returns it."""
    model = directory / "repository" / name
    (model / "1").mkdir(parents=True)
    there = SEEING_GPU_MODEL if sees_images else GPU_MODEL
    config = (GPU_REPOSITORY / there / "config.pbtxt").read_text(encoding="utf-8")
    (model / "config.pbtxt").write_text(re.sub(f'"{re.escape(there)}"', f'"{name}"', config), encoding="utf-8")
    engine = {
        "model": str(smollm2_gguf()),
        "max_model_len": max_model_len,
        "max_num_seqs": max_num_seqs,
        "num_threads": 1,
        "enable_prefix_caching": True,
    }
    (model / "1" / "model.json").write_text(json.dumps(engine), encoding="utf-8")
    return model.parent
