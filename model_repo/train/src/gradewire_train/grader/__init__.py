"""Trains graders: cross-encoders that read question, reference and answer together and say how right the answer is."""
