"""Run judges' graphs on ONNX Runtime, in a worker of the server or in Triton, which gets a copy of this package."""
