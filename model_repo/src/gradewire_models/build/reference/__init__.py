"""The encoder in plain numpy, and the golden vectors that it gives."""
