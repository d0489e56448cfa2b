"""Statistics of evaluation, usable alone: arrays in, numbers out; no files, no terminal, nothing of the client."""

from importlib.util import find_spec

if find_spec("numpy") is None:
    raise ModuleNotFoundError("gradewire_stats needs numpy: pip install 'gradewire[agree]'", name="numpy")
