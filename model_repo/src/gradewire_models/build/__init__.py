"""Builds and verifies models. Heavy: imports onnx, onnxruntime and safetensors; the server never does."""

from gradewire_models.build.adapters import user_adapted
from gradewire_models.build.fitted import forget_calibrations, store_calibration
from gradewire_models.build.install import BuildResult, build_model
from gradewire_models.build.progress import Progress, Report
from gradewire_models.build.quality import check_quality
from gradewire_models.build.renew import renew_exported
from gradewire_models.build.verify import Check, verify_built

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
