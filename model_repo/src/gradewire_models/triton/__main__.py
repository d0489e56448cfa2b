"""`python -m gradewire_models.triton`: what a detached server's process runs."""

from gradewire_models.triton.cli import triton

triton(prog_name="gradewire triton")
