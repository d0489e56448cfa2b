"""Read, build and verify the models that gradewire runs.

`catalog` and `repository` are cheap to import. `build` needs onnx and onnxruntime.
"""
