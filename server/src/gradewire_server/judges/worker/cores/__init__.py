"""What computes inside a judge's worker process."""
