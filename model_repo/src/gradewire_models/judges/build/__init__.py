"""Builds and checks judges: from a GGUF file to a tokenizer and an 8-bit ONNX graph, without torch."""

from gradewire_models.judges.build.install import JudgeResult, build_judge, usual_forms
from gradewire_models.judges.build.verify import verify_judge

__all__ = ["JudgeResult", "build_judge", "usual_forms", "verify_judge"]
