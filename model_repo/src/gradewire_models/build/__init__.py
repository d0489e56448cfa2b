"""Build and verify models. The server never imports this package, which needs onnx, onnxruntime and safetensors."""
