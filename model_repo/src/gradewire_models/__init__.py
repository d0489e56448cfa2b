"""The model repository: lists, reads and builds models.

`catalog` and `repository` are light: they import neither onnx nor onnxruntime. `gradewire_models.build` builds and
checks models.
"""
