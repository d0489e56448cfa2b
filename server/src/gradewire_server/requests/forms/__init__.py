"""What differs between calls that score items and calls that compare pairs."""
