"""Build and verify models; needs onnx, onnxruntime and safetensors."""
