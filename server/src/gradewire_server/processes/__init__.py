"""Several server processes on one port: their supervisor, and what each of them knows of it."""
