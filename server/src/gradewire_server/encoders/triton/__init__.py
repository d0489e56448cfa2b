"""Encoders that run in NVIDIA Triton."""
