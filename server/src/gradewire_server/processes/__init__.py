"""Several server processes on one port, and their supervisor."""
