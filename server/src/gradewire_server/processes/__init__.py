"""Several server processes on one port, their supervisor, and the connections between them."""
