"""From what metrics need to vectors: in-process cache, single flight, second level, batcher, encoder."""
