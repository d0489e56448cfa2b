"""The model repository: what models there are, which of them are built, and how to build them.

Reading (`catalog`, `repository`) is light and imports neither onnx nor onnxruntime; everything that builds or checks a
model lives in `gradewire_models.build`.
"""
