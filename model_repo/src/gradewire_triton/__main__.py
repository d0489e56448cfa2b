"""Run `gradewire triton` as `python -m gradewire_triton`, the process of a detached server."""

from gradewire_triton.cli import triton

triton(prog_name="gradewire triton")
