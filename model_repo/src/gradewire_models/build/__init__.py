"""Build and verify models. This package needs onnx, onnxruntime and safetensors."""
