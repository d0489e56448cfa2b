"""Makes graphs that compute in 8 bits."""
