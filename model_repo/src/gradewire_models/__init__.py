"""Read, build and verify the models that gradewire runs.

`catalog` and `repository` are cheap to import, because they need neither onnx nor onnxruntime. `build` needs both
packages.
"""
