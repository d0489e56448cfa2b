"""Builds and verifies models. Heavy: imports onnx, onnxruntime and safetensors; the server never does."""

from gradewire_models.build.check.quality_gate import check_quality
from gradewire_models.build.check.verify import Check, verify_built
from gradewire_models.build.install import BuildResult, build_model
from gradewire_models.build.progress import Progress, Report
from gradewire_models.build.publish.fitted import forget_calibrations, store_calibration
from gradewire_models.build.publish.renew import renew_exported
from gradewire_models.build.weights.user_adapter import user_adapted

__all__ = [
    "BuildResult",
    "Check",
    "Progress",
    "Report",
    "build_model",
    "check_quality",
    "forget_calibrations",
    "renew_exported",
    "store_calibration",
    "user_adapted",
    "verify_built",
]
