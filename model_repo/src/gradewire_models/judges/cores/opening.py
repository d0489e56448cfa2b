"""Open the core for a judge's graph, and import only the libraries that this core needs."""

from pathlib import Path

from gradewire_models.judges.cores.rows import PADDED_FORMS, Core, CoreError


def open_core(path: Path, form: str, *, threads: int, device: str) -> Core:
    """Open a judge's graph.

    Args:
        path: The file model.onnx, with the weights next to it.
        form: ``"int8"``, ``"fp16"`` or ``"int4"``.
        threads: Number of threads on a CPU.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; int8 needs ``"cpu"``.

    Raises:
        CoreError: The graph or the device cannot be used.
    """
    if form in PADDED_FORMS:
        from gradewire_models.judges.cores.padded import open_padded  # noqa: PLC0415 - only this core needs the module

        return open_padded(path, threads=threads, device=device)
    if form != "int8":
        raise CoreError(f"ONNX Runtime has no core for the form {form}")
    if device != "cpu":
        raise CoreError(f"the form int8 runs on CPUs only, but the device is {device}. Build the form fp16 or int4")
    from gradewire_models.judges.cores.int8 import Int8Core  # noqa: PLC0415 - as above

    return Int8Core(path, threads=threads)
