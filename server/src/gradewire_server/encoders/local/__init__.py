"""Encoders in this process, on ONNX Runtime."""
