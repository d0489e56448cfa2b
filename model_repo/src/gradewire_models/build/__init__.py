"""Builds and verifies models. Heavy: imports onnx, onnxruntime and safetensors; the server never does."""
