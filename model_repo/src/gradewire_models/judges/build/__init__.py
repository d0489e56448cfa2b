"""Build and check judges: turn a GGUF file into a tokenizer and an 8-bit ONNX graph."""
