"""Judges on Triton's vLLM backend."""
