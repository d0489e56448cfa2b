"""Queues and batches of texts on their way to an encoder."""
