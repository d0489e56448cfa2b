"""What a model says that reads question, reference and answer together."""
