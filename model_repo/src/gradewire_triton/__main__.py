"""`python -m gradewire_triton`: what a detached server's process runs."""

from gradewire_triton.cli import triton

triton(prog_name="gradewire triton")
