"""Trains SFVE's encoders. Only the training itself needs the extra ``train``: making examples needs no torch."""
