"""Question, reference and answer to one logit: what differs from texts to vectors."""
