"""Encoders of this process on an NVIDIA GPU, by ONNX Runtime's CUDA provider. Never run on a GPU yet."""
