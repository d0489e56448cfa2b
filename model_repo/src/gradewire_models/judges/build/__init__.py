"""Build and check judges: from a GGUF file to a tokenizer and an 8-bit ONNX graph, without torch."""
