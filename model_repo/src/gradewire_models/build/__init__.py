"""Build and verify models. Imports onnx, onnxruntime and safetensors, so the server never imports it."""
