"""Encoders, from needs of metrics to vectors: in-process cache, single flight, second level, batcher, encoder."""
