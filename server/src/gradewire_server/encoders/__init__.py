"""Encoders compute vectors for metrics: cache, single flight, second level, batcher and model."""
