"""Single calls become batches, on streams that each take several batches one after the other."""
