"""Writes encoders as ONNX graphs of standard operators."""
